// The composed formula against the reference: every score with every normaliser and structure of
// the case table, in double, forward and backward, with NaN wherever no query looks.
#include "torch/composed/composed.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/torch/against_reference.h"

namespace fovea {
namespace {

// A ratio whose sum is zero counts as empty here and in the engine; the reference counts rows
// without keys.
const Form kComposed{.forward = [](const Call& call, bool) -> std::optional<Form::Results> {
                       const auto got = composed::attend(call);
                       return Form::Results{got.output, got.lse, got.empty_rows};
                     },
                     .backward =
                         [](const Call& call, const Form::Results&, const at::Tensor& d_output,
                            const at::Tensor& d_lse, const std::vector<int64_t>& wanted) {
                           return composed::backward(call, d_output, d_lse, wanted);
                         },
                     .counts_otherwise = "kernel_ratio"};

bool check(
    const Case& c, const std::function<void(cases::Built&)>& change = [](auto&) {}) {
  return fovea::check(kComposed, c, change);
}

TEST(Composed, IsTheReferenceForTheWholeProduct) {
  int ran = 0, refused = 0;
  for (const auto& score : cases::scores()) {
    for (const auto& normaliser : cases::normalisers()) {
      for (const auto& structure : cases::structures()) {
        Case c = with(score.name, normaliser.name, structure.name);
        c.content = cases::Content::kPoison;
        c.seed = static_cast<uint64_t>(++ran);
        refused += !check(c);
      }
    }
  }
  std::cout << "composed formula: " << ran << " combinations, " << refused << " refused\n";
}

TEST(Composed, IsTheReferenceWithModifiersLengthsGroupsAndDropout) {
  for (const auto& modifier : cases::modifiers()) {
    for (const auto& normaliser : cases::normalisers()) {
      for (const char* structure : {"dense", "causal_bottom_right", "ragged", "graph"}) {
        Case c = with("dot", normaliser.name, structure);
        c.modifiers = {modifier.name};
        c.key_lengths = std::string(structure) != "graph";
        c.shape.heads = 4;
        c.dropout_p = 0.3;
        check(c);
      }
    }
  }
}

// A kernel masks what is outside of it, which a cap or a user's function must not bring back.
TEST(Composed, IsTheReferenceWithModifiersOnEveryScore) {
  for (const auto& score : cases::scores()) {
    for (const auto& modifier : cases::modifiers()) {
      for (const char* normaliser : {"softmax", "sparsemax"}) {
        Case c = with(score.name, normaliser, "causal");
        c.modifiers = {modifier.name};
        check(c);
      }
    }
  }
}

TEST(Composed, IsTheReferenceForQueriesThatStartAnywhere) {
  for (const auto& structure : cases::structures()) {
    for (const auto& modifier : cases::modifiers()) {
      Case c = with("dot", "hard_sample", structure.name);
      c.query_offset = true;
      c.modifiers = {modifier.name};
      check(c);
      c.normaliser = "softmax";
      c.dropout_p = 0.3;
      c.key_lengths = true;
      check(c);
    }
  }
}

TEST(Composed, IsTheReferenceWhereAScoreIsNotANumber) {
  for (const auto& normaliser : cases::normalisers()) {
    for (const auto& structure : cases::structures()) {
      Case c = with("dot", normaliser.name, structure.name);
      c.modifiers = {"bias"};
      c.content = cases::Content::kPoison;
      for (const double bad : {double(NAN), double(INFINITY)})
        check(c, [bad](cases::Built& built) { spoil(built, bad); });
    }
  }
}

TEST(Composed, NamesTheFirstRowThatIsNotANumber) {
  auto built = cases::build({.shape = {2, 3, 3, 5, 7, 4, 3}, .dtype = DType::kFloat64});
  Call call = canonical(call_of(built.problem));
  call.query[1][2][3].fill_(NAN);
  EXPECT_NO_THROW(composed::attend(call));
  call.check_finite = true;
  for (const bool weights : {false, true}) {
    try {
      if (weights)
        composed::weights(call, {});
      else
        composed::attend(call);
      ADD_FAILURE() << "no error";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("batch 1, head 2, query 3"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace fovea
