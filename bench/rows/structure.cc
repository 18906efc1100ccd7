// Structures: time follows the pairs kept. A window, documents and strides at 16,384, each beside
// itself at half the length and beside a dense forward; the ragged batch beside libtorch's padded
// one.
#include <ATen/ATen.h>

#include <random>

#include "bench/rows/operands.h"
#include "bench/peers/peers.h"

namespace fovea::bench {
namespace {

constexpr Pass kForward = Pass::kForward;
constexpr int64_t kWindow = 256, kDocument = 512, kStride = 128;

struct Pattern {
  std::string name;
  Structure (*structure)(int64_t length);
  double (*pairs)(int64_t length);
};

at::Tensor document_ids(int64_t length) {
  return at::arange(length, at::kInt).div(kDocument, "floor").to(at::kInt);
}

const Pattern kPatterns[] = {
    {"window",
     [](int64_t) -> Structure {
       return Window{kWindow - 1, 0};
     },
     [](int64_t n) { return pairs_window(n, kWindow - 1, 0); }},
    {"documents",
     [](int64_t n) -> Structure {
       return Documents{document_ids(n), document_ids(n)};
     },
     [](int64_t n) {
       return pairs_documents(std::vector<int64_t>(static_cast<size_t>(n / kDocument), kDocument));
     }},
    {"strided", [](int64_t) -> Structure { return Strided{kStride}; },
     [](int64_t n) { return pairs_strided(n, kStride); }}};

Shape square(int64_t length) { return {.queries = length, .keys = length}; }

Row pattern_row(const Pattern& pattern, int64_t length) {
  const Shape shape = square(length);
  return {
      .name = row_name("dot", std::to_string(length), pattern.name, kForward),
      .work = dot_work(kForward, shape, pattern.pairs(length)),
      .make =
          [=] {
            const Operands x(shape), half(square(length / 2)), dense(square(2048));
            Instance instance{.ours = x.ours(kForward, {.structure = pattern.structure(length)})};
            instance.yardsticks = {half.ours(kForward, {.structure = pattern.structure(length / 2)},
                                             "half the length"),
                                   dense.ours(kForward, {}, "dense 2048")};
            instance.yardsticks[0].pairs = 8 * pattern.pairs(length / 2);
            instance.yardsticks[1].pairs = 8 * pairs_dense(2048, 2048);
            return instance;
          },
      .figures = {proportional_to("half the length", 0.15),
                  time_per_pair_at_most(1.15, "dense 2048")},
      .tensor_bytes = tensor_bytes(shape)};
}

// The same pattern where libtorch can hold a mask of it: checked, and timed beside SDPA with that
// mask.
at::Tensor kept(const Pattern& pattern, int64_t length) {
  const at::Tensor i = at::arange(length).view({-1, 1}), j = at::arange(length).view({1, -1});
  if (pattern.name == "window") return (j <= i).logical_and(j >= i - (kWindow - 1));
  if (pattern.name == "documents") return i.div(kDocument, "floor") == j.div(kDocument, "floor");
  return (j <= i).logical_and((i - j <= kStride).logical_or((i - j).remainder(kStride) == 0));
}

Row masked_row(const Pattern& pattern, int64_t length) {
  const Shape shape = square(length);
  return {.name = row_name("dot", std::to_string(length), pattern.name, kForward),
          .work = dot_work(kForward, shape, pattern.pairs(length)),
          .make =
              [=] {
                const Operands x(shape);
                const at::Tensor mask = kept(pattern, length);
                return Instance{.ours = x.ours(kForward, {.structure = pattern.structure(length)}),
                                .peers = {x.peer_with(
                                    kForward, "sdpa with a mask", {}, [mask](const Operands& y) {
                                      return peers::sdpa(y.query, y.key, y.value, mask);
                                    })}};
              },
          .tensor_bytes = tensor_bytes(shape)};
}

// 256 sentences of 5 to 60 words; libtorch sees them padded to 60, already laid out, with a mask.
std::vector<int64_t> sentence_lengths() {
  std::mt19937 generator(7);
  std::vector<int64_t> lengths(256);
  for (int64_t& length : lengths) length = 5 + static_cast<int64_t>(generator() % 56);
  return lengths;
}

at::Tensor offsets_of(const std::vector<int64_t>& lengths) {
  at::Tensor offsets = at::zeros({static_cast<int64_t>(lengths.size()) + 1}, at::kInt);
  for (size_t i = 0; i < lengths.size(); ++i) {
    offsets[static_cast<int64_t>(i) + 1] =
        offsets[static_cast<int64_t>(i)].item<int>() + lengths[i];
  }
  return offsets;
}

struct RaggedBatch {
  std::vector<int64_t> lengths = sentence_lengths();
  at::Tensor offsets = offsets_of(lengths);
  at::Tensor inside;  // bool [256, 60]
  RaggedBatch() {
    const at::Tensor length = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
    inside = at::arange(60, at::kInt).unsqueeze(0) < length.unsqueeze(1);
  }
  // [256, 60, H, E] -> (total, H, E)
  at::Tensor pack(const at::Tensor& padded) const {
    return padded.detach().transpose(1, 2).index({inside}).contiguous();
  }
};

Row ragged_row(Pass pass) {
  const Shape padded{.batch = 256, .queries = 60, .keys = 60};
  const double pairs = 8 * pairs_documents(sentence_lengths());
  return {.name = row_name("dot", "256x5-60", "ragged", pass),
          .pass = pass,
          .work = {.pairs = pairs, .flops = dot_flops(pass, pairs, 64, 64), .elements = pairs},
          .make =
              [=] {
                const Operands x(padded);
                const RaggedBatch batch;
                const at::Tensor mask = batch.inside.view({256, 1, 1, 60});
                Operands packed = x;
                for (at::Tensor* t : {&packed.query, &packed.key, &packed.value, &packed.gradient})
                  *t = batch.pack(*t);
                for (at::Tensor* t : {&packed.query, &packed.key, &packed.value})
                  t->requires_grad_(true);
                const Contender ours =
                    packed.ours(pass, {.structure = Ragged{batch.offsets, batch.offsets}});
                // Rows that are padding: no output to compare, no gradient to feed in.
                Operands given = x;
                given.gradient = x.gradient * batch.inside.view({256, 1, 60, 1});
                Contender peer =
                    given.peer_with(pass, "padded sdpa with a mask", {}, [mask](const Operands& y) {
                      return peers::sdpa(y.query, y.key, y.value, mask);
                    });
                return Instance{
                    .ours = ours, .peers = {peer}, .comparable = [batch](const Tensors& results) {
                      Tensors packed_results;
                      for (const at::Tensor& t : results) packed_results.push_back(batch.pack(t));
                      return packed_results;
                    }};
              },
          .figures = {times_peer_at_least(2.0)},
          .tensor_bytes = tensor_bytes(padded)};
}

}  // namespace

std::vector<Row> structure_rows() {
  std::vector<Row> rows;
  for (const Pattern& pattern : kPatterns) {
    rows.push_back(masked_row(pattern, 2048));
    rows.push_back(pattern_row(pattern, 16384));
  }
  rows.push_back(ragged_row(Pass::kForward));
  rows.push_back(ragged_row(Pass::kForwardBackward));
  return rows;
}

}  // namespace fovea::bench
