// One list of paths: what each serves, what it leaves to others, and that the explanation names the
// path that is taken.
#include "engine/dispatch.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "cases/cases.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;
using engine::Task;

constexpr cases::Shape kManyWeights{
    .heads = 4, .key_heads = 4, .queries = 40, .keys = 600, .width = 16, .value_width = 16};

std::string forward_path(const cases::Built& built) {
  return path_of(built.problem, Task::kForward, &built.result);
}
std::string backward_path(const cases::Built& built) {
  return path_of(built.problem, Task::kBackward, &built.result, &built.gradients);
}
std::string backward_path(const Case& c) {
  cases::Built built = cases::build(c);
  run_forward(built);
  return backward_path(built);
}

TEST(Dispatch, NamesOfPathsAreUnique) {
  std::set<std::string> ids;
  for (const engine::Path* path : engine::paths()) {
    EXPECT_TRUE(ids.insert(path->id).second) << path->id;
    EXPECT_NE(std::string(path->summary), "");
  }
}

// Every row of the table's scores, normalisers and structures has a path for every task.
TEST(Dispatch, EveryProblemHasAPath) {
  for (const auto& structure : cases::structures()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
      const cases::Built built = cases::build({.structure = {structure.name}, .dtype = dtype});
      const bool graph = structure.kind == "graph";
      for (const Task task : {Task::kForward, Task::kBackward, Task::kWeights}) {
        const std::string id = path_of(built.problem, task);
        EXPECT_EQ(id == "graph" || id == "rank_one_graph", graph) << structure.name << " " << id;
      }
    }
  }
}

TEST(Dispatch, ExplanationNamesThePathsTaken) {
  for (const Case& c :
       {Case{.shape = {.queries = 1, .keys = 3000}}, Case{.shape = {.queries = 70, .keys = 300}},
        Case{.normaliser = "sparsemax", .shape = kManyWeights},
        Case{.score = "rank_one",
        .structure = {"graph"},
        .shape = {.queries = 9, .keys = 9, .width = 1, .value_width = 4}}}) {
    const cases::Built built = cases::build(c);
    const std::string text = engine::explain_dispatch(built.problem);
    const size_t backward = text.find("\nbackward\n");
    ASSERT_EQ(text.find("forward\n"), 0u) << text;
    ASSERT_NE(backward, std::string::npos) << text;
    const auto taken = [](const std::string& part) {
      const size_t end = part.find(": taken, "), begin = part.rfind("\n  ", end) + 3;
      return part.substr(begin, end - begin);
    };
    EXPECT_EQ(taken(text.substr(0, backward)), path_of(built.problem, Task::kForward)) << text;
    EXPECT_EQ(taken(text.substr(backward)), path_of(built.problem, Task::kBackward)) << text;
    EXPECT_NE(text.find("\nsimd: "), std::string::npos) << text;
  }
}

// Reasons carry what was expected and what was got.
TEST(Dispatch, ExplanationSaysWhyFasterPathsDecline) {
  const cases::Built built = cases::build({.shape = {.queries = 70, .keys = 300}});
  const std::string text = engine::explain_dispatch(built.problem);
  EXPECT_NE(text.find("  decode: 70 query rows share a key head, at most 16\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  decode: it has no backward in this type\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  support: it has no forward in this type\n"), std::string::npos) << text;
}

// A call that wants what backward needs goes on to the next path, which is named too.
TEST(Dispatch, ExplanationNamesThePathOfInferenceAndThatOfTraining) {
  cases::Built built = cases::build({.shape = {.queries = 40, .keys = 40}});
  const std::string text = engine::explain_dispatch(built.problem);
  EXPECT_NE(text.find("  short: taken where nothing is saved for backward, "), std::string::npos)
      << text;
  EXPECT_NE(text.find("; otherwise: 1600 pairs per head, at most 800\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  tiles: taken, "), std::string::npos) << text;
  EXPECT_EQ(path_of(built.problem, Task::kForward), "short");
  EXPECT_EQ(forward_path(built), "tiles");
  run_forward(built);
  EXPECT_EQ(backward_path(built), "tiles");
}

// Forward and backward of a call: what one saves the other reads.
TEST(Dispatch, ShortCallsTakeOnePathBothWays) {
  for (int64_t length = 1; length <= 70; ++length) {
    for (const char* structure : {"dense", "causal"}) {
      cases::Built built =
          cases::build({.structure = {structure}, .shape = {.queries = length, .keys = length}});
      run_forward(built);
      EXPECT_EQ(forward_path(built) == "short", backward_path(built) == "short") << length;
      EXPECT_EQ(forward_path(built) == "short", length <= (structure[0] == 'd' ? 28 : 39))
          << structure << " " << length;
    }
  }
}

TEST(Dispatch, DecodingHasNoBackwardOfItsOwn) {
  const Case c{.shape = {.queries = 1, .keys = 3000}};
  EXPECT_EQ(forward_path(cases::build(c)), "decode");
  EXPECT_EQ(backward_path(c), "tiles");
}

// Heads side by side without gaps is what the kernels of rank-one scores write and read.
TEST(Dispatch, RankOneLeavesResultsWithGapsToTheGraph) {
  const Case c{.score = "rank_one",
               .structure = {"graph"},
               .shape = {.queries = 9, .keys = 9, .width = 1, .value_width = 4}};
  cases::Built built = cases::build(c);
  EXPECT_EQ(forward_path(built), "rank_one_graph");
  EXPECT_EQ(backward_path(built), "rank_one_graph");
  EXPECT_EQ(path_of(built.problem, Task::kWeights), "graph");
  built.gradients.value = built.storage.interleaved_packed(
      DType::kFloat32, built.problem.value.size[0], built.problem.value.size[1], 4);
  EXPECT_EQ(forward_path(built), "rank_one_graph");
  EXPECT_EQ(backward_path(built), "graph");
  built.result.output = built.storage.interleaved_packed(
      DType::kFloat32, built.problem.query.size[0], built.problem.query.size[1], 4);
  EXPECT_EQ(forward_path(built), "graph");
}

TEST(Dispatch, KernelMeansLeaveWhatIsNotFiniteToTheTiles) {
  const Case c{.score = "kernel_gaussian",
               .normaliser = "kernel_ratio",
               .shape = {.queries = 9, .keys = 40, .width = 2, .value_width = 1}};
  const auto with = [&](const auto& change) {
    cases::Built built = cases::build(c);
    change(built);
    return std::pair{forward_path(built), backward_path(built)};
  };
  const auto set = [](const engine::View& view, int64_t at, double value) {
    cases::Storage::set(view, at, value);
  };
  const std::pair<std::string, std::string> mean = {"kernel_mean", "kernel_mean"},
                                            tiles = {"tiles", "tiles"},
                                            half = {"kernel_mean", "tiles"};
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with([](cases::Built&) {}), mean);
  EXPECT_EQ(with([&](cases::Built& b) { set(b.problem.value, 5, infinity); }), tiles);
  EXPECT_EQ(with([&](cases::Built& b) { set(b.problem.key, 3, 1e25); }), tiles);
  EXPECT_EQ(with([&](cases::Built& b) { set(b.problem.query, 1, -infinity); }), tiles);
  EXPECT_EQ(with([&](cases::Built& b) { set(b.gradients.output, 2, infinity); }), half);
}

TEST(Dispatch, StridedBackwardLeavesLengthsDropoutAndOtherTypesToTheTiles) {
  const Case c{.structure = {"strided"},
               .shape = {.queries = 300, .keys = 300, .width = 8, .value_width = 8}};
  const auto with = [](Case changed) {
    const cases::Built built = cases::build(changed);
    engine::Problem problem = built.problem;
    std::get<engine::Strided>(problem.structure.all_of[0]).stride = 17;
    EXPECT_EQ(path_of(problem, Task::kForward), "strided");
    return path_of(problem, Task::kBackward);
  };
  EXPECT_EQ(with(c), "strided");
  Case other = c;
  other.key_lengths = true;
  EXPECT_EQ(with(other), "tiles");
  other = c;
  other.dropout_p = 0.5;
  EXPECT_EQ(with(other), "tiles");
  other = c;
  other.dtype = DType::kBFloat16;
  EXPECT_EQ(with(other), "tiles");
  other = c;
  other.shape.keys = 299;
  EXPECT_EQ(with(other), "tiles");
}

TEST(Dispatch, BackwardGoesByTheSupportWhereForwardFoundFewWeights) {
  for (const char* normaliser : {"sparsemax", "entmax", "top_k"}) {
    EXPECT_EQ(
        backward_path(Case{
            .normaliser = normaliser, .shape = kManyWeights, .content = cases::Content::kLarge}),
        "support")
        << normaliser;
    // The row of top_k keeps a few keys: of 7 that is not few.
    EXPECT_EQ(backward_path(Case{.normaliser = normaliser,
                                 .shape = {.heads = 4, .key_heads = 4, .queries = 40, .keys = 7}}),
              "tiles")
        << normaliser;
  }
  EXPECT_EQ(backward_path(Case{
                .normaliser = "softmax", .shape = kManyWeights, .content = cases::Content::kLarge}),
            "tiles");
}

}  // namespace
}  // namespace fovea
