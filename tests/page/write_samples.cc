// write_samples DIR: samples.html with every view, large.html with the large matrices, each sample's
// JSON, and each as a still picture.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "explain/drawing/drawing.h"
#include "explain/report.h"
#include "io/write.h"
#include "tests/page/samples.h"

namespace {

using namespace fovea::explain;

Section section(const Explanation& e) {
  Section s;
  s.title = e.title;
  s.prose = "A sample of the view, with `code` in its prose.";
  s.equation =
      "<math "
      "display=\"block\"><mi>o</mi><mo>=</mo><munder><mo>∑</mo><mi>j</mi></munder><msub><mi>a</"
      "mi><mi>j</mi></msub>"
      "<msub><mi>v</mi><mi>j</mi></msub></math>";
  s.code = "auto out = fovea::attend(query, key, value);";
  s.command = "fovea explain RUN --out report.html";
  s.figures = {{"accuracy", "0.95", "≥ 0.9", true},
               {"AER", "0.12", "< 0.10", false},
               {"seconds", "3", "—", std::nullopt}};
  s.explanations = {e};
  return s;
}

void write_picture(const std::filesystem::path& folder, const Explanation& e) {
  static int count = 0;
  fovea::io::write_file(folder / (std::to_string(++count) + "-" + e.system + ".svg"),
                        picture_svg(e));
}

void write(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<Section> sections;
  for (const Explanation& e : samples::all()) {
    sections.push_back(section(e));
    fovea::io::write_file(folder / (std::to_string(sections.size()) + "-" + e.system + ".json"),
                          to_json(e));
  }
  fovea::io::write_file(
      folder / "samples.html",
      html_report(sections, {.title = "Every view",
                             .subtitle = "One sample of each, for tests and for the eye.",
                             .introduction = {.prose = "Score, normalise, aggregate."},
                             .demonstration = true}));
  for (const Explanation& e : samples::all()) write_picture(folder, e);
  for (const Explanation& e : {samples::million(), samples::far_apart()}) write_picture(folder, e);
  fovea::io::write_file(folder / "large.html",
                        html_report({section(samples::million()), section(samples::far_apart())},
                                    {.title = "Large"}));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("write_samples DIR\n", stderr), 2;
  try {
    write(arguments[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_samples: %s\n", error.what());
    return 1;
  }
}
