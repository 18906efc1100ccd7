#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/arguments.h"
#include "cli/output/streams.h"
#include "cli/verbs/verbs.h"
#include "cli/workers.h"
#include "data/files/lines.h"
#include "systems/run/rank_answers.h"
#include "train/answers.h"
#include "train/interrupt.h"

namespace fovea::cli {
namespace {

struct PredictOptions {
  std::string run, input = "-", output = "-", device = "cpu";
  int threads = 0;
  std::vector<std::string> set;
  bool json = false;
  RankOptions ranks;
};

int start_workers(const PredictOptions& options) {
  // Ranks have process groups of their own, and the terminal lets only one of them read.
  if (options.input == "-" && isatty(STDIN_FILENO))
    throw UsageError("--workers: standard input is a terminal, expected --input FILE or a pipe");
  std::vector<std::string> arguments = {"fovea",
                                        "predict",
                                        options.run,
                                        "--input",
                                        options.input,
                                        "--output",
                                        options.output,
                                        "--device",
                                        options.device,
                                        "--threads",
                                        std::to_string(std::max(1, options.threads)),
                                        "--timeout",
                                        fmt::format("{}", options.ranks.timeout)};
  for (const std::string& one : options.set) arguments.insert(arguments.end(), {"--set", one});
  if (options.json) arguments.emplace_back("--json");
  train::Progress silent(train::Progress::Style::kSilent);
  return run_workers({.count = options.ranks.workers}, arguments, silent);
}

int run_rank(const PredictOptions& options, const train::Place& place) {
  const auto predicted = systems::predict_as_rank(
      {options.run, options.device, std::max(1, options.threads), options.set, options.json}, place,
      options.ranks.timeout, [&]() -> systems::GivenText {
        InputFile file(options.input);
        const Input input = file.input();
        return {input.name, data::read_stream(input.stream, input.name)};
      });
  if (!predicted) return kDone;
  OutputFile output(options.output);
  output.stream() << predicted->answers;
  output.finish();
  for (const auto* messages : {&predicted->refused, &predicted->noted})
    for (const std::string& one : *messages) std::cerr << "fovea: " << one << std::endl;
  return predicted->refused.empty() ? kDone : kFailed;
}

int run(const PredictOptions& options) {
  const train::InterruptGuard guard;
  const train::ExitWhenAsked exits;  // without the unfinished file of --output
  const auto place = place_of(options.ranks.workers);
  if (options.ranks.workers > 0) return start_workers(options);
  if (place && place->size > 1) return run_rank(options, *place);
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
  lines.noted = [](const std::string& note) { std::cerr << "fovea: " << note << std::endl; };
  if (options.json) {
    JsonLines objects(output.stream().rdbuf());
    objects.exceptions(output.stream().exceptions());
    systems::predict(run, lines, objects);
  } else {
    systems::predict(run, lines, output.stream());
  }
  if (code == kDone) input.check_read();
  output.finish();
  return code;
}

}  // namespace

Verb predict_verb() {
  return {"predict", "predictions for new items, each a line or a row of a table",
          "printf 'times\\n10\\n20\\n' | fovea predict out/curve\n"
          "printf 'times\\n10\\n' | fovea predict out/curve --json",
          [](CLI::App& app) {
            auto options = std::make_shared<PredictOptions>();
            add_path(app, "run", options->run, "a folder that `fovea train` wrote")->required();
            add_path(app, "--input", options->input, "a file, or - for standard input");
            add_path(app, "--output", options->output, "a file, or - for standard output");
            add_settings(app, options->set,
                         "an option of the system to change for this use, name=value");
            add_threads(app, options->threads);
            add_device(app, options->device);
            add_ranks(app, options->ranks);
            app.add_flag(
                "--json", options->json,
                "print a JSON object for each line: its number, the answer, the probability "
                "of every class");
            app.add_flag_callback(
                "--align", [options] { options->set.push_back("align=true"); },
                "translation: print the alignment of each line after ` ||| `, source-target in "
                "Pharaoh format");
            return [options] { return run(*options); };
          }};
}

}  // namespace fovea::cli
