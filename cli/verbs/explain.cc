#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/output/browser.h"
#include "cli/output/streams.h"
#include "cli/verbs/verbs.h"
#include "explain/drawing/drawing.h"
#include "explain/report.h"
#include "io/write.h"
#include "systems/pages/lecture.h"
#include "systems/pages/own_data.h"
#include "systems/run/session.h"

namespace fovea::cli {
namespace {

struct ExplainOptions {
  std::string run, input, out, device = "cpu";
  int threads = 0;
  int64_t picture = 1;
  std::vector<std::string> set;
};

// One explanation is an object, several are an array of them.
std::string json_text(const std::vector<explain::Explanation>& explanations) {
  if (explanations.size() == 1) return explain::to_json(explanations[0]) + "\n";
  std::string text = "[";
  for (const explain::Explanation& one : explanations)
    text += (text.size() > 1 ? ",\n" : "\n") + explain::to_json(one);
  return text + "\n]\n";
}

// The pictures first, how the run learned last. A page on a user's files has its figures too, unless it
// is about other items.
std::string html_text(systems::Run& run, std::vector<explain::Explanation> explanations,
                      const ExplainOptions& options) {
  const std::string own = systems::own_data(run.config);
  const Json report = own.empty() || !options.input.empty() ? Json() : systems::own_report(run);
  const std::string& title = run.system->info.title;
  return explain::html_report({systems::lecture(run, std::move(explanations), report, {})},
                              {.title = own.empty() ? title : title + ": " + own});
}

enum class Form { kPage, kJson, kSvg, kPng };

Form form_of(const std::string& out) {
  if (out == "-" || out.ends_with(".html")) return Form::kPage;
  if (out.ends_with(".json")) return Form::kJson;
  if (out.ends_with(".svg")) return Form::kSvg;
  if (out.ends_with(".png")) return Form::kPng;
  throw UsageError(
      "--out " + out +
      ": expected a name that ends in .html, .json, .svg or .png, or - for the page on "
      "standard output");
}

// The one that `--picture` asks for.
std::string svg_text(const ExplainOptions& options,
                     const std::vector<explain::Explanation>& explanations) {
  const auto count = static_cast<int64_t>(explanations.size());
  if (options.picture > count)
    throw UsageError(fmt::format("--picture {}: there {} {}, expected 1 to {}", options.picture,
                                 count == 1 ? "is" : "are", count, count));
  return explain::picture_svg(explanations[static_cast<size_t>(options.picture - 1)]);
}

void write_text(const std::string& out, const std::string& text) {
  if (out == "-")
    std::cout << text;
  else
    io::write_file(out, text);
}

int run(const ExplainOptions& options) {
  const Form form = form_of(options.out);
  if (options.picture != 1 && (form == Form::kPage || form == Form::kJson))
    throw UsageError("--picture: a page shows all pictures, expected --out with .svg or .png");
  systems::Run run =
      systems::open(options.run, options.device, options.threads, options.set, Use::kExplain);
  say_which(run, options.run);
  std::vector<explain::Explanation> explanations;
  ExitCode code = kDone;
  if (options.input.empty()) {
    explanations = systems::explain(run, nullptr);
  } else {
    InputFile file(options.input);
    Input input = file.input();
    input.refused = [&](const std::string& error) {
      std::cerr << "fovea: " << error << std::endl;
      code = kFailed;
    };
    explanations = systems::explain(run, &input);
    file.check_read();
  }
  if (explanations.empty())
    throw InvalidArgument((options.input.empty() ? options.run : "--input " + options.input) +
                          ": nothing in it to show");
  switch (form) {
    case Form::kPage:
      write_text(options.out, html_text(run, explanations, options));
      break;
    case Form::kJson:
      write_text(options.out, json_text(explanations));
      break;
    case Form::kSvg:
      write_text(options.out, svg_text(options, explanations));
      break;
    case Form::kPng:
      write_png(svg_text(options, explanations), options.out);
      break;
  }
  return code;
}

}  // namespace

Verb explain_verb() {
  return {
      "explain", "pictures of the attention of a RUN",
      "fovea explain out/curve --out out/curve.html\n"
      "fovea explain out/curve --out out/curve.svg",
      [](CLI::App& app) {
        auto options = std::make_shared<ExplainOptions>();
        add_path(app, "run", options->run, "a folder that `fovea train` wrote")->required();
        add_path(app, "--input", options->input,
                 "items to explain, a file or - for standard input; default: test items");
        add_path(
            app, "--out", options->out,
            "file to write: a page (.html, or - for standard output), all numbers (.json), or one "
            "picture (.svg; .png needs Chromium)")
            ->required();
        add_integer(
            app, "--picture", [options](int64_t n) { options->picture = n; }, 1, 1'000'000,
            "number of the picture for .svg and .png; 1 is the first of the page");
        add_settings(app, options->set,
                     "an option of the system to change for this use, name=value");
        add_threads(app, options->threads);
        add_device(app, options->device);
        return [options] { return run(*options); };
      }};
}

}  // namespace fovea::cli
