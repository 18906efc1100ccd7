// fovea bench: the table of rows, each beside its peers and the machine's roof.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/report/report.h"
#include "cli/verbs/verbs.h"
#include "io/write.h"

namespace fovea::cli {
namespace {

struct BenchOptions {
  bench::Options run;
  std::string json, html;
  bool cold = false, quick = false, list = false, no_memory = false;
};

// On a terminal a line that replaces itself, elsewhere one line after another.
void show_progress(const std::string& what) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  std::cerr << (terminal ? "\r\033[K" : "") << what << (terminal ? "" : "\n") << std::flush;
}

int bench_command(BenchOptions& options) {
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
            app.add_option("--filter", options->run.filter, "rows whose name matches this glob")
                ->type_name("GLOB");
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
