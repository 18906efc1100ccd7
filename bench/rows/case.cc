// Every row of the case table's four tables at a size worth timing, the other three held to dot,
// softmax and dense, straight on the engine. No peers: the plain reference says whether it is
// right, the roof how far it is from a matrix product.
#include <ATen/ATen.h>

#include <memory>

#include "bench/rows/row.h"
#include "bench/threads.h"
#include "cases/cases.h"
#include "engine/reference/reference.h"

namespace fovea::bench {
namespace {

constexpr cases::Shape kShape{.batch = 2,
                              .heads = 4,
                              .key_heads = 4,
                              .queries = 256,
                              .keys = 256,
                              .width = 64,
                              .value_width = 64};

at::IntArrayRef sizes(const auto& array) {
  return {array.size.data(), static_cast<size_t>(array.rank)};
}

at::Tensor tensor_of(const engine::View& view) {
  return at::from_blob(view.data, sizes(view), at::kFloat).clone();
}

at::Tensor tensor_of(reference::Tensor<double>& tensor) {
  return at::from_blob(tensor.data.data(), sizes(tensor), at::kDouble).clone();
}

using Problem = std::shared_ptr<cases::Built>;

Tensors run_engine(Pass pass, const Problem& built) {
  const engine::Parallel threads = torch_threads();
  engine::forward(built->problem, built->result, threads);
  if (pass == Pass::kForwardBackward)
    engine::backward(built->problem, built->result, built->gradients, threads);
  return {};
}

Tensors results_of(Pass pass, const Problem& built) {
  run_engine(pass, built);
  Tensors results = {tensor_of(built->result.output)};
  if (pass == Pass::kForward) return results;
  for (const engine::View* view :
       {&built->gradients.query, &built->gradients.key, &built->gradients.value}) {
    results.push_back(tensor_of(*view));
  }
  return results;
}

Tensors expected(Pass pass, const Problem& built) {
  auto forward = reference::forward<double>(built->problem);
  Tensors results = {tensor_of(forward.output)};
  if (pass == Pass::kForward) return results;
  auto backward =
      reference::backward<double>(built->problem, built->gradients.output, built->gradients.lse);
  for (auto* tensor : {&backward.query, &backward.key, &backward.value})
    results.push_back(tensor_of(*tensor));
  return results;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += "+" + name;
  return text;
}

// Backward computes the scores again, then twice as much for each of the two products: as for dot.
Work work_of(Pass pass, const cases::Case& c, const engine::Problem& problem) {
  const double forward = cases::flops(c, problem);
  return {.pairs = static_cast<double>(cases::pairs(problem)),
          .flops = pass == Pass::kForward ? forward : 3.5 * forward};
}

Row case_row(const cases::Case& c, Pass pass) {
  return {.name = "case/" + c.score + joined(c.modifiers) + "/" + c.normaliser + "/" +
                  c.structure[0] + "/" + name(pass),
          .pass = pass,
          .make =
              [=] {
                const auto built = std::make_shared<cases::Built>(cases::build(c));
                return Instance{.ours = {"fovea", [=] { return run_engine(pass, built); }},
                                .tolerance = 1e-3,
                                .ours_to_check = [=] { return results_of(pass, built); },
                                .expected = [=] { return expected(pass, built); },
                                .work = work_of(pass, c, built->problem)};
              },
          .seconds = 0.1};
}

}  // namespace

std::vector<Row> case_rows() {
  std::vector<cases::Case> table;
  for (const auto& row : cases::scores()) {
    // Kernels as Nadaraya and Watson use them; not all have a logarithm for a softmax.
    table.push_back({.score = row.name,
                     .normaliser = row.kind == "kernel" ? "kernel_ratio" : "softmax",
                     .shape = kShape});
  }
  for (const auto& row : cases::modifiers())
    table.push_back({.modifiers = {row.name}, .shape = kShape});
  for (const auto& row : cases::normalisers()) {
    if (row.name != "softmax") table.push_back({.normaliser = row.name, .shape = kShape});
  }
  for (const auto& row : cases::structures()) {
    if (row.name != "dense") table.push_back({.structure = {row.name}, .shape = kShape});
  }
  std::vector<Row> rows;
  for (const cases::Case& c : table) {
    for (Pass pass : {Pass::kForward, Pass::kForwardBackward}) rows.push_back(case_row(c, pass));
  }
  return rows;
}

}  // namespace fovea::bench
