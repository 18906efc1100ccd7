// Sparsemax, 1.5-entmax and top-k on dot scores, beside libtorch's sorts.
#include "bench/rows/operands.h"
#include "bench/peers/peers.h"

namespace fovea::bench {
namespace {

constexpr int64_t kK = 16;

using Normalise = at::Tensor (*)(const at::Tensor& scores);

struct ThresholdCase {
  std::string name;
  Normaliser normaliser;
  Normalise by_sort, by_selection = nullptr;
};

constexpr const char* kBySort = "sort-based eager";

Row threshold_row(const ThresholdCase& threshold, Pass pass) {
  const Shape shape{.queries = 1024, .keys = 1024};
  std::vector<Figure> figures = {
      times_this_peer_at_least(pass == Pass::kForward ? 25 : 15, kBySort)};
  if (threshold.name == "sparsemax" && pass == Pass::kForward)
    figures.push_back(times_yardstick_at_most(1.1, "softmax"));
  return {.name = row_name("dot-" + threshold.name, "1024", "dense", pass),
          .pass = pass,
          .work = dot_work(pass, shape, pairs_dense(1024, 1024)),
          .make =
              [=] {
                const Operands x(shape);
                const auto peer = [&](const std::string& name, Normalise normalise) {
                  return x.peer_with(pass, name, {}, [normalise](const Operands& y) {
                    return peers::with_normaliser(y.query, y.key, y.value, normalise);
                  });
                };
                Instance instance{.ours = x.ours(pass, {.normaliser = threshold.normaliser}),
                                  .peers = {peer(kBySort, threshold.by_sort)},
                                  .yardsticks = {x.ours(pass, {}, "softmax")}};
                if (threshold.by_selection)
                  instance.peers.push_back(peer("eager with topk", threshold.by_selection));
                return instance;
              },
          .figures = std::move(figures),
          .tensor_bytes = tensor_bytes(shape)};
}

}  // namespace

std::vector<Row> threshold_rows() {
  const ThresholdCase cases[] = {
      {"sparsemax", Sparsemax{}, peers::sparsemax},
      {"entmax15", Entmax{1.5, {}}, peers::entmax15},
      {"top-k", TopK{kK}, [](const at::Tensor& scores) { return peers::top_k_sorted(scores, kK); },
       [](const at::Tensor& scores) { return peers::top_k_selected(scores, kK); }}};
  std::vector<Row> rows;
  for (const ThresholdCase& threshold : cases) {
    for (Pass pass : {Pass::kForward, Pass::kForwardBackward})
      rows.push_back(threshold_row(threshold, pass));
  }
  return rows;
}

}  // namespace fovea::bench
