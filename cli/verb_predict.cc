#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/streams.h"
#include "cli/verbs.h"
#include "systems/session.h"

namespace fovea::cli {
namespace {

struct PredictOptions {
  std::string run, input = "-", output = "-", device = "cpu";
  int threads = 0;
  std::vector<std::string> set;
};

int run(const PredictOptions& options) {
  systems::Run run = systems::open(options.run, options.device, options.threads, options.set);
  say_which(run, options.run);
  InputFile input(options.input);
  OutputFile output(options.output);
  ExitCode code = kDone;
  Input lines = input.input();
  lines.refused = [&](const std::string& error) {
    std::cerr << "fovea: " << error << std::endl;
    code = kFailed;
  };
  systems::predict(run, lines, output.stream());
  output.finish();
  return code;
}

}  // namespace

Verb predict_verb() {
  return {"predict", "answers for new items: a line, or a row of a table, each",
          "printf 'times\\n10\\n20\\n' | fovea predict out/curve", [](CLI::App& app) {
            auto options = std::make_shared<PredictOptions>();
            app.add_option("run", options->run, "a folder that `fovea train` wrote")->required();
            app.add_option("--input", options->input, "a file, or - for standard input");
            app.add_option("--output", options->output, "a file, or - for standard output");
            app.add_option("--set", options->set,
                           "an option of the system to change for this use, name=value")
                ->allow_extra_args(false);
            app.add_option("--threads", options->threads, "0: as many as there are");
            app.add_option("--device", options->device, "cpu, cuda or cuda:N");
            app.add_flag_callback(
                "--align", [options] { options->set.push_back("align=true"); },
                "translation: the alignment of each line after ` ||| `, source-target in Pharaoh "
                "format");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
