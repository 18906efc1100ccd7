#include "cases/cases.h"

#include <algorithm>
#include <limits>
#include <set>

#include "engine/call/facts.h"
#include "cases/ranges.h"
#include "engine/reference/structure.h"

namespace fovea::cases {
namespace {

using engine::DType;
using engine::View;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string join(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : "+") + name;
  return all;
}

template <class Row>
const Row& find(const std::vector<Row>& rows, const std::string& name, const char* table) {
  std::string known;
  for (const Row& row : rows) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  throw InvalidArgument(std::string(table) + ": '" + name + "', expected one of " + known);
}

// The arrays of queries and of keys: [B, H, L, E], or (total, H, E) where the structure packs them.
struct Sides {
  bool packed = false;
  int64_t total_queries = 0, total_keys = 0;
};

Sides sides_of(const engine::Structure& structure, const Shape& shape) {
  Sides sides;
  for (const auto& kind : structure.all_of) {
    if (const auto* ragged = std::get_if<engine::Ragged>(&kind)) {
      const auto last = [](const View& offsets) {
        return static_cast<int64_t>(Storage::get(offsets, offsets.size[0] - 1));
      };
      sides = {true, last(ragged->query_offsets), last(ragged->key_offsets)};
    }
    if (std::holds_alternative<engine::Graph>(kind)) sides = {true, shape.queries, shape.keys};
  }
  return sides;
}

View operand(Storage& storage, const Case& c, const Shape& shape, const Sides& sides, bool query,
             int64_t width, Range range) {
  const int64_t heads = query ? shape.heads : shape.key_heads;
  const int64_t length = query ? shape.queries : shape.keys;
  const int64_t total = query ? sides.total_queries : sides.total_keys;
  View view;
  if (c.layout == Layout::kStrided) {
    view = sides.packed ? storage.interleaved_packed(c.dtype, total, heads, width)
                        : storage.interleaved(c.dtype, shape.batch, heads, length, width);
  } else {
    view = sides.packed ? storage.zeros(c.dtype, {total, heads, width})
                        : storage.zeros(c.dtype, {shape.batch, heads, length, width});
  }
  Storage::each(
      view, [&](int64_t at) { Storage::set(view, at, storage.uniform(range.low, range.high)); });
  return view;
}

void fill_row(const View& view, bool packed, int64_t batch, int64_t head, int64_t position) {
  const int64_t start =
      packed ? position * view.stride[0] + head * view.stride[1]
             : batch * view.stride[0] + head * view.stride[1] + position * view.stride[2];
  for (int64_t c = 0; c < view.size[view.rank - 1]; ++c) Storage::set(view, start + c, kNaN);
}

// NaN wherever no query looks.
void poison(engine::Problem& problem, const Shape& shape) {
  const reference::Structure structure(problem);
  const int64_t group = shape.heads / shape.key_heads;
  for (const reference::Sequence& sequence : structure.sequences()) {
    for (int64_t key_head = 0; key_head < shape.key_heads; ++key_head) {
      std::set<int64_t> seen;
      for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
        for (int64_t i = 0; i < sequence.queries; ++i) {
          const std::vector<int64_t> keys = structure.keys(sequence, head, i);
          seen.insert(keys.begin(), keys.end());
          if (keys.empty()) {
            fill_row(problem.query, structure.packed(), sequence.batch, head,
                     sequence.first_query + i);
          }
          for (const auto& modifier : problem.score.modifiers) {
            const auto* bias = std::get_if<engine::Bias>(&modifier);
            if (!bias || bias->bias.rank != 4 || bias->bias.size[2] == 1) continue;
            for (int64_t j = 0; j < sequence.keys; ++j) {
              if (std::find(keys.begin(), keys.end(), j) != keys.end()) continue;
              const auto& stride = bias->bias.stride;
              Storage::set(
                  bias->bias,
                  sequence.batch * stride[0] + head * stride[1] + i * stride[2] + j * stride[3],
                  kNaN);
            }
          }
        }
      }
      for (int64_t j = 0; j < sequence.keys; ++j) {
        if (seen.contains(j)) continue;
        fill_row(problem.key, structure.packed(), sequence.batch, key_head, sequence.first_key + j);
        fill_row(problem.value, structure.packed(), sequence.batch, key_head,
                 sequence.first_key + j);
      }
    }
  }
}

// Places for the gradients of a choice's arrays, in the arithmetic type.
template <class Choice>
void place_gradients(Storage& storage, Choice& choice, DType dtype) {
  choice.fields([&](const char*, auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, View>) {
      if (field) field = storage.zeros_like(field, dtype);
    }
  });
}

// One number (or `last` of them) for each query and head.
View per_row(Storage& storage, const View& query, DType dtype, int64_t last) {
  const auto& n = query.size;
  if (query.rank == 3) {
    return last ? storage.zeros(dtype, {n[0], n[1], last}) : storage.zeros(dtype, {n[0], n[1]});
  }
  return last ? storage.zeros(dtype, {n[0], n[1], n[2], last})
              : storage.zeros(dtype, {n[0], n[1], n[2]});
}

void fill(Storage& storage, const View& view) {
  Storage::each(view, [&](int64_t at) { Storage::set(view, at, storage.uniform(-1, 1)); });
}

void place_results(Built& built, DType storage_type, DType arithmetic_type) {
  Storage& storage = built.storage;
  engine::Problem& p = built.problem;
  const int64_t value_width = p.value.size[p.value.rank - 1];
  built.result.output = per_row(storage, p.query, storage_type, value_width);
  built.result.statistics = per_row(storage, p.query, arithmetic_type, engine::kStatistics);
  built.gradients.output = storage.zeros_like(built.result.output, storage_type);
  fill(storage, built.gradients.output);
  if (engine::has_lse<View>(p.normaliser)) {
    built.result.lse = per_row(storage, p.query, arithmetic_type, 0);
    built.gradients.lse = storage.zeros_like(built.result.lse, arithmetic_type);
    fill(storage, built.gradients.lse);
  }
  built.gradients.query = storage.zeros_like(p.query, storage_type);
  built.gradients.key = storage.zeros_like(p.key, storage_type);
  built.gradients.value = storage.zeros_like(p.value, storage_type);
  built.gradients.score = p.score;
  built.gradients.normaliser = p.normaliser;
  const auto place = [&](auto& choice) { place_gradients(storage, choice, arithmetic_type); };
  std::visit(place, built.gradients.score.kind);
  for (auto& modifier : built.gradients.score.modifiers) std::visit(place, modifier);
  std::visit(place, built.gradients.normaliser);
}

}  // namespace

std::string Case::name() const {
  const auto number = [](const char* letter, int64_t n) { return letter + std::to_string(n); };
  std::string text = score;
  if (!modifiers.empty()) text += "+" + join(modifiers);
  text += "/" + normaliser + "/" + join(structure) + "/";
  text += number("b", shape.batch) + number("h", shape.heads) + number("k", shape.key_heads) +
          number("l", shape.queries) + number("s", shape.keys) + number("e", shape.width) +
          number("v", shape.value_width) + "/" + name_of(dtype);
  if (key_lengths) text += "/lengths";
  if (query_offset) text += "/offset";
  if (dropout_p > 0) text += "/dropout";
  if (content == Content::kLarge) text += "/large";
  if (content == Content::kPoison) text += "/poison";
  if (layout == Layout::kStrided) text += "/strides";
  return text + "/seed" + std::to_string(seed);
}

Built build(const Case& c) {
  Built built{Storage(c.seed), {}, {}, {}};
  Storage& storage = built.storage;
  engine::Problem& p = built.problem;
  Shape shape = c.shape;
  for (const std::string& name : c.structure) {
    if (structure(name).kind == "graph") shape.batch = 1;
  }
  for (const std::string& name : c.structure) {
    p.structure = p.structure & structure(name).make(storage, c, shape);
  }
  const ScoreRow& row = score(c.score);
  const Sides sides = sides_of(p.structure, shape);
  const Range range = operand_range(c);
  p.query = operand(storage, c, shape, sides, true, row.query_width(shape), range);
  p.key = operand(storage, c, shape, sides, false, row.key_width(shape), range);
  p.value = operand(storage, c, shape, sides, false, shape.value_width, {-1, 1});
  p.score = row.make(storage, c, shape);
  for (const std::string& name : c.modifiers) {
    p.score.modifiers.push_back(modifier(name).make(storage, c, shape));
  }
  p.normaliser = normaliser(c.normaliser).make(storage, c, shape);
  if (c.key_lengths) {
    // The first item sees two thirds of its keys, the second none, each other a number drawn at random.
    std::vector<double> lengths;
    const reference::Structure whole(p);
    for (const auto& sequence : whole.sequences()) {
      const int64_t length = lengths.empty()       ? sequence.keys * 2 / 3
                             : lengths.size() == 1 ? 0
                                                   : storage.integer(0, sequence.keys);
      lengths.push_back(static_cast<double>(length));
    }
    p.key_lengths = storage.values(DType::kInt32, lengths);
  }
  if (c.query_offset) {
    // A step at the end of the keys, one before their first, then any.
    std::vector<double> offsets;
    const reference::Structure whole(p);
    for (const auto& sequence : whole.sequences()) {
      const int64_t offset = offsets.empty()       ? sequence.keys - sequence.queries
                             : offsets.size() == 1 ? -sequence.queries / 2
                                                   : storage.integer(0, sequence.keys);
      offsets.push_back(static_cast<double>(offset));
    }
    p.query_offset = storage.values(DType::kInt32, offsets);
  }
  p.dropout_p = c.dropout_p;
  p.seed = c.seed;
  if (c.content == Content::kPoison) poison(p, shape);
  place_results(built, c.dtype, engine::arithmetic_of(c.dtype));
  return built;
}

const ScoreRow& score(const std::string& name) { return find(scores(), name, "score"); }
const ModifierRow& modifier(const std::string& name) { return find(modifiers(), name, "modifier"); }
const NormaliserRow& normaliser(const std::string& name) {
  return find(normalisers(), name, "normaliser");
}
const StructureRow& structure(const std::string& name) {
  return find(structures(), name, "structure");
}

int64_t pairs(const engine::Problem& problem) {
  const reference::Structure structure(problem);
  int64_t count = 0;
  for (const auto& sequence : structure.sequences()) {
    for (int64_t head = 0; head < problem.query.size[1]; ++head) {
      for (int64_t i = 0; i < sequence.queries; ++i) {
        count += static_cast<int64_t>(structure.keys(sequence, head, i).size());
      }
    }
  }
  return count;
}

double flops(const Case& c, const engine::Problem& problem) {
  return static_cast<double>(pairs(problem)) *
         (score(c.score).flops(c.shape) + 2.0 * static_cast<double>(c.shape.value_width));
}

}  // namespace fovea::cases
