// A modifier alone: the tile it sees, and what it makes of scores and gradients.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/registry.h"
#include "engine/call/view.h"
#include "tests/engine/targets.h"

namespace fovea::engine::testing {

template <class T>
View view_of(std::vector<T>& data, std::initializer_list<int64_t> shape) {
  return View::of(data.data(), dtype_of<T>(), shape);
}

template <class T>
std::vector<T> random_vector(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<T> normal;
  std::vector<T> x(n);
  for (T& value : x) value = normal(random);
  return x;
}

// A stage of one modifier on a dot score, and a tile at an odd place of two batches and two heads.
template <class T>
struct ModifierRig {
  static constexpr size_t kBatches = 2, kHeads = 2, kBatch = 1, kHead = 1, kFirstQuery = 3,
                          kFirstKey = 5;
  Geometry geometry;
  Problem problem;
  Gradients wanted;
  std::unique_ptr<ModifierStage<T>> stage;
  size_t nq, nk, stride;
  std::vector<T> s, ds, saved, scratch, partial;
  Tile<T> tile;

  ModifierRig(size_t queries, size_t keys, const Modifier& choice, const Modifier& gradient,
              ModifierPointer<T> (*make)(const StageContext&, size_t), size_t width = 3,
              size_t value_width = 2)
      : nq(queries),
        nk(keys),
        stride((keys + kRowPadding - 1) / kRowPadding * kRowPadding + kRowPadding) {
    geometry.storage = dtype_of<T>();
    geometry.batches = kBatches;
    geometry.heads = geometry.key_heads = kHeads;
    geometry.max_queries = kFirstQuery + nq;
    geometry.max_keys = kFirstKey + nk;
    geometry.query_width = geometry.key_width = width;
    geometry.value_width = value_width;
    problem.score.modifiers.push_back(choice);
    wanted.score.modifiers.push_back(gradient);
    stage = make({.problem = problem, .geometry = geometry, .gradients = &wanted}, 0);
    s = random_vector<T>(nq * stride, 1);
    ds = random_vector<T>(nq * stride, 2);
    saved.resize(nq * stride);
    scratch.resize(nq * stage->row_scratch() + 1);
    partial.assign(stage->partial_size() + 1, T(0));
    tile.batch = kBatch, tile.head = kHead;
    tile.q0 = kFirstQuery, tile.nq = nq, tile.k0 = kFirstKey, tile.nk = nk;
    tile.s = s.data(), tile.ds = ds.data(), tile.s_stride = stride;
  }
  T* partial_or_null() { return stage->partial_size() ? partial.data() : nullptr; }
  void store() {
    if (stage->partial_size()) stage->store_parameters(kBatch, kHead, partial.data());
  }
};

inline std::vector<std::pair<size_t, size_t>> modifier_sizes() {
  return {{1, 1}, {3, 15}, {4, 16}, {2, 17}, {5, 67}};
}

}  // namespace fovea::engine::testing
