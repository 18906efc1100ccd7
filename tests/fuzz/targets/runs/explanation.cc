// The JSON of a picture, and the page made of it.
#include "explain/explanation.h"

#include "explain/report.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_explanation(std::string_view bytes) {
  explain::Explanation read;
  if (!reads("a.json", [&] { read = explain::from_json(bytes, "a.json"); })) return;
  const std::string written = explain::to_json(read);
  require(explain::to_json(explain::from_json(written, "a.json")) == written,
          "an explanation survives being written");
  const std::string page = explain::html_report({{.title = read.title, .explanations = {read}}});
  require(page.find("</html>") != std::string::npos, "a page is whole");
}
const Registration explanation{"explanation", fuzz_explanation};

}  // namespace
}  // namespace fovea::fuzz
