// Scaled dot-product softmax against libtorch's fused attention: three sizes, one head, AVX2,
// modifiers, bf16.
#include <ATen/ATen.h>

#include "bench/rows/operands.h"
#include "bench/peers/peers.h"
#include "bench/roofs/kernels.h"

namespace fovea::bench {
namespace {

enum class Mask { kDense, kCausal };

Row dot_row(const std::string& size, const Shape& shape, Mask mask, Pass pass,
            std::vector<Figure> figures) {
  const bool causal = mask == Mask::kCausal;
  const double pairs =
      causal ? pairs_causal(shape.queries) : pairs_dense(shape.queries, shape.keys);
  Choices choices;
  if (causal) choices.structure = Causal{};
  return {.name = row_name("dot", size, causal ? "causal" : "dense", pass),
          .pass = pass,
          .work = dot_work(pass, shape, pairs),
          .make =
              [=] {
                const Operands x(shape);
                return Instance{
                    .ours = x.ours(pass, choices),
                    .peers = {causal ? x.peer(pass, "sdpa", peers::sdpa_causal)
                                     : x.peer(pass, "sdpa", [](auto& q, auto& k, auto& v) {
                                         return peers::sdpa(q, k, v);
                                       })}};
              },
          .figures = std::move(figures),
          .tensor_bytes = tensor_bytes(shape)};
}

Shape square(int64_t heads, int64_t length) {
  return {.heads = heads, .key_heads = heads, .queries = length, .keys = length};
}

void add_sizes(std::vector<Row>& rows) {
  struct Size {
    std::string name;
    Shape shape;
    double dense, causal,
        both;  // x_peer to reach: forward dense, forward causal, forward + backward dense
    bool judged_by_roof;
  };
  const Size sizes[] = {{"2048", square(8, 2048), 1.25, 1.5, 1.3, true},
                        {"512", square(16, 512), 1.35, 2.3, 1.4, false},
                        {"128", square(64, 128), 1.7, 2.6, 1.6, false}};
  for (const Size& s : sizes) {
    std::vector<Figure> dense = {times_peer_at_least(s.dense)},
                        both = {times_peer_at_least(s.both)};
    std::vector<Figure> causal = {times_peer_at_least(s.causal)};
    if (s.judged_by_roof) {
      dense.push_back(percent_roof_at_least(87, 80));
      causal.push_back(percent_roof_at_least(87, 80));
      both.push_back(percent_roof_at_least(86, 80));
    }
    rows.push_back(dot_row(s.name, s.shape, Mask::kDense, Pass::kForward, dense));
    rows.push_back(dot_row(s.name, s.shape, Mask::kCausal, Pass::kForward, causal));
    rows.push_back(dot_row(s.name, s.shape, Mask::kDense, Pass::kForwardBackward, both));
    rows.push_back(dot_row(s.name, s.shape, Mask::kCausal, Pass::kForwardBackward,
                           {times_peer_of_row_at_least(
                               1.2, row_name("dot", s.name, "dense", Pass::kForwardBackward))}));
  }
  rows.push_back(dot_row("2048-one-head", square(1, 2048), Mask::kDense, Pass::kForwardBackward,
                         {times_peer_at_least(1.4)}));
}

// libtorch is not held: only the roof is compared.
void add_avx2(std::vector<Row>& rows) {
  const std::string best = engine::simd_target();
  if (best != "AVX3" && best != "AVX2") return;
  for (Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
    Row row = dot_row("2048", square(8, 2048), Mask::kDense, pass, {percent_roof_at_least(80)});
    row.name = row_name("dot", "2048", "dense-avx2", pass);
    row.simd_target = "AVX2";
    rows.push_back(row);
  }
}

// A modifier's price: the plain forward takes turns with it.
Row modifier_row(const std::string& variant, double bound,
                 std::function<Instance(const Operands&)> make) {
  const Shape shape = square(8, 2048);
  return {.name = row_name("dot", "2048", variant, Pass::kForward),
          .work = dot_work(Pass::kForward, shape, pairs_dense(2048, 2048)),
          .make =
              [=] {
                const Operands x(shape);
                Instance instance = make(x);
                instance.yardsticks = {x.ours(Pass::kForward, {}, "plain")};
                return instance;
              },
          .figures = {times_yardstick_at_most(bound, "plain")},
          .tensor_bytes = tensor_bytes(shape)};
}

void add_modifiers(std::vector<Row>& rows) {
  constexpr Pass kPass = Pass::kForward;
  rows.push_back(modifier_row("soft-cap", 1.12, [](const Operands& x) {
    return Instance{.ours = x.ours(kPass, {.score = Score(Dot{}).soft_cap(20.0)}),
                    .peers = {x.peer(kPass, "eager", [](auto& q, auto& k, auto& v) {
                      return peers::soft_cap(q, k, v, 20.0);
                    })}};
  }));
  rows.push_back(modifier_row("alibi", 1.05, [](const Operands& x) {
    const int64_t heads = x.query.size(1), length = x.query.size(2);
    const at::Tensor slopes = at::pow(2.0, -at::arange(1, heads + 1, at::kFloat));
    const at::Tensor positions = at::arange(length, at::kFloat);
    const at::Tensor mask =
        -slopes.view({heads, 1, 1}) * (positions.view({-1, 1}) - positions).abs();
    return Instance{.ours = x.ours(kPass, {.score = Score(Dot{}).alibi(slopes)}),
                    .peers = {x.peer_with(kPass, "sdpa with a mask", {}, [mask](const Operands& y) {
                      return peers::sdpa(y.query, y.key, y.value, mask.unsqueeze(0));
                    })}};
  }));
  rows.push_back(modifier_row("bias", 1.15, [](const Operands& x) {
    const at::Tensor bias = normal({x.query.size(1), x.query.size(2), x.key.size(2)}, 5).detach();
    return Instance{.ours = x.ours(kPass, {.score = Score(Dot{}).bias(bias)}),
                    .peers = {x.peer_with(kPass, "sdpa with a mask", {}, [bias](const Operands& y) {
                      return peers::sdpa(y.query, y.key, y.value, bias.unsqueeze(0));
                    })}};
  }));
}

void add_bf16(std::vector<Row>& rows) {
  const std::string instruction = bf16_unit().name;
  if (instruction.empty()) return;
  hold_libtorch_to_what_runs();
  const Shape shape = square(8, 2048);
  constexpr Pass kPass = Pass::kForward;
  rows.push_back({.name = row_name("dot-bf16", "2048", "dense", kPass),
                  .roof = Roof::kBf16,
                  .work = dot_work(kPass, shape, pairs_dense(2048, 2048), 2),
                  .make =
                      [=] {
                        const Operands x = Operands(shape).to(at::kBFloat16);
                        return Instance{.ours = x.ours(kPass, {}),
                                        .peers = {x.peer(kPass, "sdpa",
                                                         [](auto& q, auto& k, auto& v) {
                                                           return peers::sdpa(q, k, v);
                                                         })},
                                        .tolerance = 2e-2};
                      },
                  .figures = {times_peer_at_least(instruction == "AMX" ? 1.5 : 2.1)},
                  .tensor_bytes = tensor_bytes(shape, 2)});
}

}  // namespace

std::vector<Row> dot_rows() {
  std::vector<Row> rows;
  add_sizes(rows);
  add_avx2(rows);
  add_modifiers(rows);
  add_bf16(rows);
  return rows;
}

}  // namespace fovea::bench
