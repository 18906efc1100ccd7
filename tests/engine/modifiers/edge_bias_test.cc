// A bias of the edges of a graph against the reference, forward and backward.
#include <gtest/gtest.h>

#include "cases/cases.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;

// Adds one, [edges] or [edges, H], with a place for its gradient.
void add_edge_bias(Built& built, bool by_head) {
  const auto& graph = std::get<engine::Graph>(built.problem.structure.all_of[0]);
  const int64_t edges = graph.columns.size[0], heads = built.problem.query.size[1];
  const auto dtype = built.problem.query.dtype;
  const engine::View bias = by_head ? built.storage.floats(dtype, {edges, heads}, -1, 1)
                                    : built.storage.floats(dtype, {edges}, -1, 1);
  built.problem.score.modifiers.emplace_back(engine::EdgeBias{bias});
  built.gradients.score.modifiers.emplace_back(
      engine::EdgeBias{built.storage.zeros_like(bias, dtype)});
}

TEST(EdgeBias, AgreesForEveryNormaliserOnEveryGraph) {
  for (const auto& normaliser : cases::normalisers()) {
    for (const char* structure : {"graph", "graph_shuffled"}) {
      for (const bool by_head : {false, true}) {
        for (const auto dtype : {engine::DType::kFloat32, engine::DType::kFloat64}) {
          const Case c{.normaliser = normaliser.name, .structure = {structure}, .dtype = dtype};
          SCOPED_TRACE(c.name());
          Built built = cases::build(c);
          add_edge_bias(built, by_head);
          expect_agreement(built, serial());
        }
      }
    }
  }
}

// Edges of a row beyond a tile of keys, some of them masked, after a soft cap.
TEST(EdgeBias, AgreesOnLongRowsThatAnotherStructureMasks) {
  Built built = cases::build({.modifiers = {"soft_cap"},
                              .structure = {"graph", "window_left"},
                              .shape = {.heads = 4, .key_heads = 2, .queries = 5, .keys = 1300}});
  add_edge_bias(built, true);
  expect_agreement(built, threads(3));
}

TEST(EdgeBias, WhatIsWrongIsNamed) {
  const auto message_of = [](Built& built) -> std::string {
    try {
      run_forward(built);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "none";
  };
  Built dense = cases::build({});
  dense.problem.score.modifiers.emplace_back(
      engine::EdgeBias{dense.storage.zeros(engine::DType::kFloat32, {3})});
  EXPECT_NE(message_of(dense).find("edge_bias without a graph"), std::string::npos);
  Built graph = cases::build({.structure = {"graph"}});
  graph.problem.score.modifiers.emplace_back(
      engine::EdgeBias{graph.storage.zeros(engine::DType::kFloat32, {3, 3})});
  EXPECT_NE(message_of(graph).find("score.bias: shape [3, 3], expected ["), std::string::npos);
}

}  // namespace
}  // namespace fovea
