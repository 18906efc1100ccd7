// Every wrong argument is an InvalidArgument that names it, what was expected and what was got;
// nothing is read out of bounds.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/call/bad_input.h"

namespace fovea {
namespace {

using namespace bad_input;  // NOLINT: the words of the table

std::vector<Bad> bad_operands() {
  const auto lengths = [](double first) {
    return [first](Built& b) {
      b.problem.key_lengths = b.storage.values(DType::kInt32, {first, 7});
    };
  };
  return {
      // Operands.
      {"query_rank",
       kDot,
       [](Built& b) { b.problem.query.rank = 3; },
       {"query", "rank 3", "expected 4", "ragged or graph"}},
      {"key_rank",
       kRagged,
       [](Built& b) { b.problem.key.rank = 4; },
       {"key", "rank 4", "expected 3", "packs"}},
      {"dtype_unknown",
       kDot,
       [](Built& b) {
         for (View* x : {&b.problem.query, &b.problem.key, &b.problem.value})
           x->dtype = static_cast<DType>(99);
       },
       {"query: unknown type 99", "expected float32, float64, bfloat16 or float16"}},
      {"dtype_unknown_of_query",
       kDot,
       [](Built& b) { b.problem.query.dtype = static_cast<DType>(99); },
       {"query: unknown type 99", "expected float32, float64, bfloat16 or float16"}},
      {"rank_of_nothing",
       kDot,
       [](Built& b) {
         b.problem.key.data = nullptr;
         b.problem.key.rank = 7;
       },
       {"key: missing"}},
      {"query_missing",
       kDot,
       [](Built& b) { b.problem.query.data = nullptr; },
       {"query", "missing"}},
      {"value_missing", kDot, [](Built& b) { b.problem.value = {}; }, {"value"}},
      {"dtype_mix",
       kDot,
       [](Built& b) {
         b.problem.key = b.storage.zeros(DType::kFloat64, {2, 2, 7, 4});
       },
       {"key", "float64", "expected float32"}},
      {"value_dtype",
       kDot,
       [](Built& b) {
         b.problem.value = b.storage.zeros(DType::kBFloat16, {2, 2, 7, 3});
       },
       {"value", "bfloat16", "expected float32"}},
      {"integers",
       kDot,
       [](Built& b) {
         b.problem.query = b.storage.zeros(DType::kInt32, {2, 4, 5, 4});
         b.problem.key = b.storage.zeros(DType::kInt32, {2, 2, 7, 4});
         b.problem.value = b.storage.zeros(DType::kInt32, {2, 2, 7, 3});
       },
       {"query", "int32", "expected float32"}},
      {"key_width",
       kDot,
       [](Built& b) {
         b.problem.key = b.storage.zeros(DType::kFloat32, {2, 2, 7, 6});
       },
       {"key", "width 6", "expected 4"}},
      {"value_rows",
       kDot,
       [](Built& b) {
         b.problem.value = b.storage.zeros(DType::kFloat32, {2, 2, 6, 3});
       },
       {"value", "6", "expected 7"}},
      {"value_heads",
       kDot,
       [](Built& b) {
         b.problem.value = b.storage.zeros(DType::kFloat32, {2, 4, 7, 3});
       },
       {"value", "4", "expected 2"}},
      {"key_batch",
       kDot,
       [](Built& b) {
         b.problem.key = b.storage.zeros(DType::kFloat32, {1, 2, 7, 4});
       },
       {"key", "1", "expected 2"}},
      {"key_heads",
       kDot,
       [](Built& b) {
         b.problem.key = b.storage.zeros(DType::kFloat32, {2, 3, 7, 4});
         b.problem.value = b.storage.zeros(DType::kFloat32, {2, 3, 7, 3});
       },
       {"key", "3 heads", "expected a divisor of 4"}},
      {"last_stride",
       kDot,
       [](Built& b) { b.problem.key.stride[3] = 2; },
       {"key", "stride 2", "expected 1"}},
      {"negative_size",
       kDot,
       [](Built& b) { b.problem.query.size[2] = -1; },
       {"query", "-1", "expected"}},
      // Lengths, dropout.
      {"length_negative", kDot, lengths(-1), {"key_lengths[0]", "-1", "expected between 0 and 7"}},
      {"length_past_end", kDot, lengths(8), {"key_lengths[0]", "8", "expected between 0 and 7"}},
      {"lengths_count",
       kDot,
       [](Built& b) { b.problem.key_lengths = b.storage.values(DType::kInt32, {7}); },
       {"key_lengths", "1", "expected 2"}},
      {"lengths_dtype",
       kDot,
       [](Built& b) {
         b.problem.key_lengths = b.storage.values(DType::kFloat32, {7, 7});
       },
       {"key_lengths", "float32", "expected int32"}},
      {"offset_count",
       kDot,
       [](Built& b) {
         b.problem.query_offset = b.storage.values(DType::kInt32, {1, 2, 3});
       },
       {"query_offset", "3", "expected 2"}},
      {"offset_dtype",
       kDot,
       [](Built& b) {
         b.problem.query_offset = b.storage.values(DType::kFloat32, {1, 2});
       },
       {"query_offset", "float32", "expected int32"}},
      {"offset_rank",
       kDot,
       [](Built& b) {
         b.problem.query_offset = b.storage.zeros(DType::kInt32, {2, 1});
       },
       {"query_offset", "rank 2", "expected 1"}},
      {"offset_size",
       kDot,
       [](Built& b) { b.problem.query_offset = int64_t{1} << 31; },
       {"query_offset", "2147483648", "expected a number of 32 bits"}},
      {"dropout_one",
       kDot,
       [](Built& b) { b.problem.dropout_p = 1; },
       {"dropout_p", "1", "expected"}},
      {"dropout_nan",
       kDot,
       [](Built& b) { b.problem.dropout_p = NAN; },
       {"dropout_p", "nan", "expected"}},
      {"dropout_negative",
       kDot,
       [](Built& b) { b.problem.dropout_p = -0.1; },
       {"dropout_p", "-0.1", "expected"}},
      // Results.
      {"output_dtype",
       kDot,
       [](Built& b) {
         b.result.output = b.storage.zeros(DType::kFloat64, {2, 4, 5, 3});
       },
       {"output", "float64", "expected float32"}},
      {"output_shape",
       kDot,
       [](Built& b) {
         b.result.output = b.storage.zeros(DType::kFloat32, {2, 4, 5, 4});
       },
       {"output", "4", "expected 3"}},
      {"lse_shape",
       kDot,
       [](Built& b) {
         b.result.lse = b.storage.zeros(DType::kFloat32, {2, 4, 6});
       },
       {"lse", "6", "expected 5"}},
  };
}

class BadInput : public testing::TestWithParam<Bad> {};

TEST_P(BadInput, IsRefusedByName) {
  const Bad& bad = GetParam();
  Built built = cases::build(bad.good);
  ASSERT_NO_THROW(run_forward(built));
  bad.spoil(built);
  try {
    engine::forward(built.problem, built.result, serial());
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    for (const std::string& word : bad.says) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << error.what() << "' does not say '" << word << "'";
    }
  }
}

const auto name_of = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Operands, BadInput, testing::ValuesIn(bad_operands()), name_of);
INSTANTIATE_TEST_SUITE_P(Choices, BadInput, testing::ValuesIn(bad_choices()), name_of);

TEST(BadInputOf, BackwardIsRefusedByName) {
  const auto expect = [](const std::function<void(Built&)>& spoil, const char* says) {
    Built built = cases::build(kDot);
    run_forward(built);
    spoil(built);
    try {
      engine::backward(built.problem, built.result, built.gradients, serial());
      ADD_FAILURE() << "no error: " << says;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  expect(
      [](Built& b) {
        b.gradients.query = b.storage.zeros(DType::kFloat32, {2, 4, 5, 5});
      },
      "query");
  expect(
      [](Built& b) {
        b.gradients.value = b.storage.zeros(DType::kFloat64, {2, 2, 7, 3});
      },
      "value");
  expect([](Built& b) { b.gradients.output = {}; }, "output");
  expect([](Built& b) { b.result.statistics = {}; }, "statistics");
}

TEST(BadInputOf, WeightsIsRefusedByName) {
  const auto expect = [](engine::Selection selection, std::initializer_list<int64_t> size,
                         const char* says, Built& built) {
    try {
      const View weights = built.storage.zeros(DType::kFloat32, size);
      const View indices = built.storage.zeros(DType::kInt32, size);
      engine::weights(built.problem, selection, {weights, selection.top_k ? indices : View{}},
                      serial());
      ADD_FAILURE() << "no error: " << says;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  Built b = cases::build(kDot);
  engine::Selection rows, heads, top;
  rows.rows = b.storage.values(DType::kInt32, {5});
  heads.heads = b.storage.values(DType::kInt32, {-1});
  top.top_k = -1;
  expect(rows, {2, 4, 1, 7}, "rows[0]: 5", b);
  expect(heads, {2, 1, 5, 7}, "heads[0]: -1", b);
  expect(top, {2, 4, 5, 7}, "top_k: -1", b);
  expect({}, {2, 4, 5, 6}, "weights", b);
}

}  // namespace
}  // namespace fovea
