// One query against many keys: every key and value is read once, so memory is the roof.
#include "bench/rows/operands.h"
#include "bench/peers/peers.h"

namespace fovea::bench {
namespace {

Row decoding_row(const std::string& size, int64_t keys, int64_t key_heads) {
  const Shape shape{.heads = 8, .key_heads = key_heads, .queries = 1, .keys = keys};
  const bool grouped = key_heads != shape.heads;
  constexpr Pass kPass = Pass::kForward;
  return {.name = row_name("decode", size, grouped ? "grouped" : "dense", kPass),
          .roof = Roof::kTriad,
          .work = dot_work(kPass, shape, pairs_dense(1, keys)),
          .make =
              [=] {
                const Operands x(shape);
                return Instance{
                    .ours = x.ours(kPass, {}),
                    .peers = {grouped ? x.peer(kPass, "sdpa", peers::sdpa_grouped)
                                      : x.peer(kPass, "sdpa", [](auto& q, auto& k, auto& v) {
                                          return peers::sdpa(q, k, v);
                                        })}};
              },
          .figures = {percent_roof_at_least(85)},
          .tensor_bytes = tensor_bytes(shape)};
}

}  // namespace

std::vector<Row> decoding_rows() {
  return {decoding_row("4096", 4096, 8), decoding_row("65536", 65536, 8),
          decoding_row("4096", 4096, 2), decoding_row("65536", 65536, 2)};
}

}  // namespace fovea::bench
