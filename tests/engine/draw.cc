#include "tests/engine/draw.h"

#include <array>
#include <string>

#include "engine/call/meaning.h"

namespace fovea {
namespace {

using cases::Case;

template <class Row>
std::string any(const Draw& draw, const std::vector<Row>& rows) {
  return rows[static_cast<size_t>(draw(0, static_cast<int64_t>(rows.size()) - 1))].name;
}

}  // namespace

Case draw_case(const Draw& draw, uint64_t seed) {
  const auto one_in = [&](int64_t n) { return draw(0, n - 1) == 0; };
  Case c{.score = any(draw, cases::scores()),
         .normaliser = any(draw, cases::normalisers()),
         .structure = {},
         .seed = seed};
  const int64_t structures = draw(1, 3);
  for (int64_t n = 0; n < structures; ++n) c.structure.push_back(any(draw, cases::structures()));
  // The table of modifiers is in the order they are applied.
  for (const auto& modifier : cases::modifiers()) {
    if (one_in(8)) c.modifiers.push_back(modifier.name);
  }
  const int64_t key_heads = draw(1, 2);
  c.shape = {.batch = draw(1, 3),
             .heads = key_heads * draw(1, 3),
             .key_heads = key_heads,
             .queries = draw(0, 40),
             .keys = draw(0, 90),
             .width = draw(1, 40),
             .value_width = draw(1, 40)};
  c.dtype = std::array{engine::DType::kFloat32, engine::DType::kFloat64, engine::DType::kBFloat16,
                       engine::DType::kFloat16}[static_cast<size_t>(draw(0, 3))];
  c.key_lengths = one_in(3);
  c.dropout_p = one_in(3) ? 0.25 : 0;
  c.content = one_in(3) ? cases::Content::kPoison : cases::Content::kPlain;
  c.layout = one_in(3) ? cases::Layout::kStrided : cases::Layout::kContiguous;
  c.query_offset = one_in(3);
  return c;
}

bool well_formed(const Case& c) {
  int packings = 0, tables = 0;
  for (const auto& name : c.structure) {
    packings += name == "ragged" || name.starts_with("graph");
  }
  for (const auto& name : c.modifiers) tables += name.starts_with("relative");
  return packings <= 1 && tables <= 1;
}

bool is_refused(const engine::Problem& problem) {
  for (const auto& refusal : engine::refusals()) {
    if (refusal.applies(problem)) return true;
  }
  return false;
}

}  // namespace fovea
