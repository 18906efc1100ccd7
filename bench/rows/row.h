// A row of the benchmark: what to run, against which peers and roof, and the figures it is to
// reach.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/figure.h"
#include "bench/roofs/roof.h"
#include "bench/rows/work.h"

namespace fovea::bench {

using Tensors = std::vector<at::Tensor>;

struct Contender {
  std::string name;
  std::function<Tensors()> run;  // the output, then the gradients where the row has them
  double pairs = 0;              // yardsticks: their own work
};

// A row made ready to run: its inputs exist.
struct Instance {
  Contender ours;
  std::vector<Contender> peers =
      {};  // the same results by other means: checked against ours, then timed
  std::vector<Contender> yardsticks = {};  // ours doing other work, to compare with: not checked
  double tolerance = 2e-4;  // largest difference allowed, relative to the largest value of a result
  // Brings a peer's results into the layout of ours before they are compared; empty: they have it.
  std::function<Tensors(const Tensors&)> comparable = {};
  // Results to compare before the clock starts, where no peer gives them: ours, and what a slow and
  // plain computation says.
  std::function<Tensors()> ours_to_check = {}, expected = {};
  std::optional<Work> work =
      std::nullopt;  // where only the inputs say how much there is; replaces the row's
};

// Rows of one series differ in n only: the page draws time and memory against n.
struct Series {
  std::string name;
  double n = 0;
  double time_slope = 2;  // predicted, on log axes
  double memory_slope = 1;
};

enum class Measure : uint8_t { kTimeAndMemory, kMemory };

struct Row {
  std::string name;  // mechanism/size/structure/pass
  Pass pass = Pass::kForward;
  Roof roof = Roof::kFma;
  Work work = {};
  std::function<Instance()> make;
  std::vector<Figure> figures = {};
  std::string simd_target = {};  // held while the row runs; empty: the machine's best
  double tensor_bytes = 0;  // query, key, value and output together: the unit of memory figures
  Measure measure = Measure::kTimeAndMemory;
  double seconds = 1.5;  // of timing, or what the run's protocol says where that is less
  std::optional<Series> series = std::nullopt;
};

// Every row, in the order of the table.
std::vector<Row> all_rows();
std::vector<Row> dot_rows();
std::vector<Row> width_rows();
std::vector<Row> decoding_rows();
std::vector<Row> structure_rows();
std::vector<Row> additive_rows();
std::vector<Row> kernel_rows();
std::vector<Row> graph_rows();
std::vector<Row> threshold_rows();
std::vector<Row> module_rows();
std::vector<Row> translation_rows();
std::vector<Row> memory_rows();
std::vector<Row> case_rows();

// Calls `attention` on leaves as the pass requires: under no-grad, or followed by the gradients of
// every leaf for `gradient`.
std::function<Tensors()> runner(Pass pass, Tensors leaves, at::Tensor gradient,
                                std::function<at::Tensor()> attention);

// Unit-normal float32, the same for the same seed; a leaf that wants gradients.
at::Tensor normal(at::IntArrayRef size, uint64_t seed);
const char* name(Pass pass);

}  // namespace fovea::bench
