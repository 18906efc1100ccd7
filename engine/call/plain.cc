#include "engine/call/plain.h"

#include <cmath>

#include "engine/call/view.h"

namespace fovea::engine {
namespace {

bool has_plain_choices(const Problem& problem) {
  const auto* dot = std::get_if<Dot>(&problem.score.kind);
  const auto* softmax = std::get_if<Softmax>(&problem.normaliser);
  return dot && (!dot->scale || std::isfinite(*dot->scale)) && problem.score.modifiers.empty() &&
         softmax && !softmax->sink && !problem.key_lengths && !problem.query_offset.each &&
         problem.query_offset.number == 0 && problem.dropout_p == 0;
}

// Where the queries stand among the keys: at the first ones or at the last ones. Unknown: the
// structure is neither dense nor causal.
enum class Place { kFirst, kLast, kUnknown };
Place place_of(const Structure& structure) {
  if (structure.all_of.empty()) return Place::kFirst;
  if (structure.all_of.size() > 1) return Place::kUnknown;
  const auto& part = structure.all_of.front();
  if (std::holds_alternative<Dense>(part)) return Place::kFirst;
  const auto* causal = std::get_if<Causal>(&part);
  if (!causal) return Place::kUnknown;
  return causal->alignment == choice::Alignment::kTopLeft ? Place::kFirst : Place::kLast;
}

// An array of rank 4 with elements, the last dimension contiguous, no stride negative.
bool is_plain(const View& view, DType dtype) {
  return view && view.rank == 4 && view.dtype == dtype && view.size[0] > 0 && view.size[1] > 0 &&
         view.size[2] > 0 && view.size[3] > 0 && view.stride[0] >= 0 && view.stride[1] >= 0 &&
         view.stride[2] >= 0 && view.stride[3] == 1;
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat16;
}

// The first three sizes.
bool same_rows(const View& a, const View& b) {
  return a.size[0] == b.size[0] && a.size[1] == b.size[1] && a.size[2] == b.size[2];
}

bool has_plain_arrays(const Problem& problem) {
  const View &q = problem.query, &k = problem.key, &v = problem.value;
  return is_float(q.dtype) && is_plain(q, q.dtype) && is_plain(k, q.dtype) &&
         is_plain(v, q.dtype) && same_rows(k, v) && k.size[0] == q.size[0] &&
         k.size[3] == q.size[3] && (q.size[1] == k.size[1] || q.size[1] % k.size[1] == 0);
}

// The bytes from the first element of a plain array to its last, modulo the size of an address space,
// where every array lies.
struct Bytes {
  uintptr_t low, high;

  Bytes(const View& view, uintptr_t element) : low(reinterpret_cast<uintptr_t>(view.data)) {
    const auto reach = [&](int d) {
      return static_cast<uintptr_t>(view.stride[d]) * static_cast<uintptr_t>(view.size[d] - 1);
    };
    high = low + element * (reach(0) + reach(1) + reach(2) + static_cast<uintptr_t>(view.size[3]));
  }
  bool meets(const Bytes& other) const { return low < other.high && other.low < high; }
};

// Whether each step of a plain array goes past all that the dimensions after it reach, so that every
// element has a place of its own.
bool has_own_places(const View& view) {
  int64_t reached = view.size[3];
  for (const int d : {2, 1, 0}) {
    if (view.size[d] == 1) continue;
    if (view.stride[d] < reached) return false;
    reached += view.stride[d] * (view.size[d] - 1);
  }
  return true;
}

// Of a problem with plain arrays. Slices of one array, which lie between each other, are left to the
// full checks.
bool has_plain_places(const Problem& problem, const Result& result) {
  const View &q = problem.query, &v = problem.value, &o = result.output, &s = result.statistics;
  if (result.lse || !is_plain(o, q.dtype) || !same_rows(o, q) || o.size[3] != v.size[3] ||
      !has_own_places(o))
    return false;
  const uintptr_t element = size_of(q.dtype);
  const Bytes query(q, element), key(problem.key, element), value(v, element), output(o, element);
  if (output.meets(query) || output.meets(key) || output.meets(value)) return false;
  if (!s) return true;
  const DType arithmetic = arithmetic_of(q.dtype);
  if (!is_plain(s, arithmetic) || !same_rows(s, q) || s.size[3] != kStatistics ||
      !has_own_places(s))
    return false;
  const Bytes statistics(s, size_of(arithmetic));
  return !statistics.meets(query) && !statistics.meets(key) && !statistics.meets(value) &&
         !statistics.meets(output);
}

}  // namespace

bool resolve_plain(const Problem& problem, const Result& result, Geometry* geometry) {
  const Place place = place_of(problem.structure);
  if (place == Place::kUnknown || !has_plain_choices(problem) || !has_plain_arrays(problem) ||
      !has_plain_places(problem, result))
    return false;
  const View &q = problem.query, &k = problem.key, &v = problem.value;
  Geometry& g = *geometry;
  g.storage = q.dtype;
  g.batches = static_cast<size_t>(q.size[0]);
  g.heads = static_cast<size_t>(q.size[1]);
  g.key_heads = static_cast<size_t>(k.size[1]);
  g.group = g.heads == g.key_heads ? 1 : g.heads / g.key_heads;
  g.query_width = g.key_width = static_cast<size_t>(q.size[3]);
  g.value_width = static_cast<size_t>(v.size[3]);
  g.max_queries = static_cast<size_t>(q.size[2]);
  g.max_keys = static_cast<size_t>(k.size[2]);
  g.query_start.assign(g.batches, 0);
  g.key_start.assign(g.batches, 0);
  g.query_count.assign(g.batches, g.max_queries);
  g.key_count.assign(g.batches, g.max_keys);
  g.key_limit.assign(g.batches, g.max_keys);
  g.query_offset.assign(g.batches, place == Place::kLast ? k.size[2] - q.size[2] : 0);
  return true;
}

}  // namespace fovea::engine
