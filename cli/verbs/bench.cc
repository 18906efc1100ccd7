// fovea bench: the table of rows, each beside its peers and the machine's roof.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/peers/cuda_peers.h"
#include "bench/report/report.h"
#include "cli/verbs/verbs.h"
#include "io/write.h"
#include "systems/run/machine.h"

namespace fovea::cli {
namespace {

struct BenchOptions {
  bench::Options run;
  std::string json, html, device = "cpu";
  bool cold = false, quick = false, list = false, no_memory = false;
};

// On a terminal a line that replaces itself, elsewhere one line after another.
void show_progress(const std::string& what) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  std::cerr << (terminal ? "\r\033[K" : "") << what << (terminal ? "" : "\n") << std::flush;
}

// Replaces the process by python3 with the script of these rows.
int bench_on_cuda(const BenchOptions& options) {
  for (const auto& [given, name] : {std::pair{!options.html.empty(), "--html"},
                                    {!options.run.simd_target.empty(), "--target"},
                                    {options.run.threads > 0, "--threads"},
                                    {options.cold, "--cold"},
                                    {options.quick, "--quick"},
                                    {options.list, "--list"},
                                    {options.no_memory, "--no-memory"}}) {
    if (given)
      throw UsageError(std::string(name) + ": is for --device cpu; --device " + options.device +
                       " takes --filter and --json");
  }
  systems::device_of(options.device);  // says what is wrong with it
  std::vector<std::string> words{"python3", "-c", bench::kCudaPeers, "--device", options.device};
  if (!options.json.empty()) words.insert(words.end(), {"--json", options.json});
  if (options.run.filter != "*") words.push_back(options.run.filter);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp("python3", arguments.data());
  throw std::runtime_error(
      std::string("python3: ") + std::strerror(errno) +
      "; the rows on CUDA are a Python script, beside peers that are Python's");
}

int bench_command(BenchOptions& options) {
  if (options.device != "cpu") return bench_on_cuda(options);
  const std::vector<bench::Row> rows = bench::select(bench::all_rows(), options.run.filter);
  if (rows.empty())
    throw UsageError("--filter: no row matches '" + options.run.filter +
                     "'; fovea bench --list shows them");
  if (options.list) {
    for (const bench::Row& row : rows) {
      std::cout << row.name << '\n';
      for (const bench::Figure& figure : row.figures) std::cout << "  " << figure.text << '\n';
    }
    return kDone;
  }
  if (options.cold) options.run.protocol.cache = bench::Cache::kCold;
  if (options.quick)
    options.run.protocol = {.minimum_rounds = 2, .maximum_rounds = 2, .seconds = 0};
  options.run.memory = !options.no_memory;
  const bench::Report report = bench::run(rows, options.run, show_progress);
  show_progress("");
  std::cout << bench::table(report);
  if (!options.json.empty()) io::write_file(options.json, bench::to_json(report).dump(1) + "\n");
  if (!options.html.empty()) io::write_file(options.html, bench::to_html(report));
  return kDone;
}

}  // namespace

Verb bench_verb() {
  return {"bench", "time Fovea, other libraries and the machine's limits, in turns",
          "fovea bench --filter 'dot/128/*' --quick", [](CLI::App& app) {
            auto options = std::make_shared<BenchOptions>();
            app.add_option("--filter", options->run.filter,
                           "rows whose name matches this glob; on CUDA a part, or PART:TEXT for "
                           "the rows of it that contain a text")
                ->type_name("GLOB");
            app.add_option("--device", options->device,
                           "cpu (default), or cuda or cuda:N: other rows, by python3, whose torch "
                           "must see the device and which must have fovea");
            app.add_option("--json", options->json, "write the results to this file")
                ->type_name("FILE");
            app.add_option("--html", options->html, "write a page with charts to this file")
                ->type_name("FILE");
            app.add_option("--target", options->run.simd_target,
                           "run the engine on this SIMD target, for example AVX2")
                ->type_name("NAME");
            app.add_option("--threads", options->run.threads,
                           "threads of both sides; default: all that the process may use")
                ->type_name("N")
                ->check(CLI::PositiveNumber);
            app.add_flag("--cold", options->cold, "empty the caches before every run");
            app.add_flag("--quick", options->quick,
                         "two rounds for each row: shows that every row runs, not how fast");
            app.add_flag("--no-memory", options->no_memory,
                         "do not measure peak memory, which runs every row once more");
            app.add_flag("--list", options->list, "print the rows and their figures, run nothing");
            return [options] { return bench_command(*options); };
          }};
}

}  // namespace fovea::cli
