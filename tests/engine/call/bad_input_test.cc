// Every wrong argument is an InvalidArgument that names it, what was expected and what was got;
// nothing is read out of bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using engine::DType;
using engine::View;

struct Bad {
  std::string name;
  Case good;  // the case before it is spoiled
  std::function<void(Built&)> spoil;
  std::vector<std::string> says;  // argument, got, expected: all in the message
};

const Case kDot{.shape = {2, 4, 2, 5, 7, 4, 3}};
const Case kRagged{.structure = {"ragged"}, .shape = {2, 2, 2, 5, 7, 4, 3}};
const Case kGraph{.structure = {"graph"}, .shape = {1, 2, 2, 5, 7, 4, 3}};

Case with_score(const char* score) {
  Case c = kDot;
  c.score = score;
  return c;
}
Case with_normaliser(const char* normaliser) {
  Case c = kDot;
  c.normaliser = normaliser;
  return c;
}
Case with_structure(const char* structure) {
  Case c = kDot;
  c.structure = {structure};
  return c;
}
Case with_modifier(const char* modifier) {
  Case c = kDot;
  c.modifiers = {modifier};
  return c;
}

template <class Choice>
Choice& structure_of(Built& b) {
  return std::get<Choice>(b.problem.structure.all_of.at(0));
}
void set(const View& view, int64_t at, double value) { cases::Storage::set(view, at, value); }

std::vector<Bad> bad_inputs() {
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
      // Scores.
      {"scale_nan",
       kDot,
       [](Built& b) { b.problem.score = engine::Dot{.scale = NAN}; },
       {"scale", "nan", "expected"}},
      {"bandwidth_nan",
       with_score("kernel_gaussian"),
       [](Built& b) { set(std::get<engine::Kernel>(b.problem.score.kind).bandwidth, 0, NAN); },
       {"bandwidth", "nan", "expected"}},
      {"bandwidth_zero",
       with_score("kernel_gaussian"),
       [](Built& b) { set(std::get<engine::Kernel>(b.problem.score.kind).bandwidth, 0, 0); },
       {"bandwidth", "0", "expected a positive"}},
      {"bandwidth_missing",
       with_score("kernel_gaussian"),
       [](Built& b) { std::get<engine::Kernel>(b.problem.score.kind).bandwidth = {}; },
       {"bandwidth", "missing"}},
      {"bandwidth_shape",
       with_score("kernel_gaussian"),
       [](Built& b) {
         std::get<engine::Kernel>(b.problem.score.kind).bandwidth =
             b.storage.floats(DType::kFloat32, {3}, 1, 2);
       },
       {"bandwidth", "[3]", "expected"}},
      {"metric_shape",
       with_score("kernel_gaussian_diagonal"),
       [](Built& b) {
         std::get<engine::Kernel>(b.problem.score.kind).metric =
             b.storage.zeros(DType::kFloat32, {5});
       },
       {"metric", "[5]", "expected [4]"}},
      {"weight_missing",
       with_score("additive"),
       [](Built& b) { std::get<engine::Additive>(b.problem.score.kind).weight = {}; },
       {"weight", "missing"}},
      {"weight_shape",
       with_score("additive"),
       [](Built& b) {
         std::get<engine::Additive>(b.problem.score.kind).weight =
             b.storage.zeros(DType::kFloat32, {5});
       },
       {"weight", "[5]", "expected [4]"}},
      {"bilinear_shape",
       with_score("bilinear"),
       [](Built& b) {
         std::get<engine::Bilinear>(b.problem.score.kind).weight =
             b.storage.zeros(DType::kFloat32, {4, 4});
       },
       {"weight", "[4, 4]", "expected [4, 5]"}},
      {"gated_odd",
       kDot,
       [](Built& b) {
         b.problem.query = b.storage.zeros(DType::kFloat32, {2, 4, 5, 3});
         b.problem.key = b.storage.zeros(DType::kFloat32, {2, 2, 7, 3});
         b.problem.score = engine::GatedAdditive{b.storage.zeros(DType::kFloat32, {1})};
       },
       {"query", "width 3", "expected an even"}},
      {"rank_one_width",
       kDot,
       [](Built& b) { b.problem.score = engine::RankOne{}; },
       {"query", "width 4", "expected 1"}},
      {"location_width",
       kDot,
       [](Built& b) { b.problem.score = engine::Location{}; },
       {"query", "width 4", "expected 7"}},
      {"beta_shape",
       with_score("cosine"),
       [](Built& b) {
         std::get<engine::Cosine>(b.problem.score.kind).beta =
             b.storage.zeros(DType::kFloat32, {3});
       },
       {"beta", "[3]", "expected"}},
      // Modifiers.
      {"bias_shape",
       with_modifier("bias"),
       [](Built& b) {
         b.problem.score.modifiers[0] = engine::Bias{b.storage.zeros(DType::kFloat32, {5, 6})};
       },
       {"bias", "[5, 6]", "expected"}},
      {"bias_bool",
       with_modifier("bias"),
       [](Built& b) {
         b.problem.score.modifiers[0] = engine::Bias{b.storage.zeros(DType::kBool, {5, 7})};
       },
       {"bias", "bool", "expected a floating-point"}},
      {"slopes_shape",
       with_modifier("alibi"),
       [](Built& b) {
         b.problem.score.modifiers[0] = engine::Alibi{b.storage.zeros(DType::kFloat32, {3})};
       },
       {"slopes", "3", "expected 4"}},
      {"table_rows",
       with_modifier("relative"),
       [](Built& b) { std::get<engine::Relative>(b.problem.score.modifiers[0]).clip = 3; },
       {"key_table", "5", "expected 7"}},
      {"clip_negative",
       with_modifier("relative"),
       [](Built& b) { std::get<engine::Relative>(b.problem.score.modifiers[0]).clip = -1; },
       {"clip", "-1", "expected at least 0"}},
      {"clip_past_32_bits",
       with_modifier("relative"),
       [](Built& b) { std::get<engine::Relative>(b.problem.score.modifiers[0]).clip = INT64_MAX; },
       {"clip", "9223372036854775807", "expected at most 2147483647"}},
      // 2 clip + 1 of it is 5 in 64 bits, as many rows as the tables have.
      {"clip_that_wraps",
       with_modifier("relative"),
       [](Built& b) {
         std::get<engine::Relative>(b.problem.score.modifiers[0]).clip = (int64_t{1} << 62) + 2;
       },
       {"clip", "4611686018427387906", "expected at most 2147483647"}},
      {"cap_zero",
       with_modifier("soft_cap"),
       [](Built& b) { b.problem.score.modifiers[0] = engine::SoftCap{0}; },
       {"cap", "0", "expected a positive"}},
      {"custom_empty",
       with_modifier("custom"),
       [](Built& b) { b.problem.score.modifiers[0] = engine::Custom{}; },
       {"custom", "float32"}},
      // Normalisers.
      {"k_zero",
       with_normaliser("top_k"),
       [](Built& b) { b.problem.normaliser = engine::TopK{0}; },
       {"k: 0", "expected at least 1"}},
      {"alpha_below_one",
       with_normaliser("entmax"),
       [](Built& b) {
         b.problem.normaliser = engine::Entmax{0.99, {}};
       },
       {"alpha: 0.99", "expected a finite number, at least 1"}},
      {"alpha_tensor_nan",
       with_normaliser("entmax_alpha"),
       [](Built& b) {
         const View& alpha = std::get<engine::Entmax>(b.problem.normaliser).alpha_tensor;
         *static_cast<float*>(alpha.data) = NAN;
       },
       {"alpha: nan", "expected a finite number"}},
      {"alpha_nan",
       with_normaliser("entmax"),
       [](Built& b) {
         b.problem.normaliser = engine::Entmax{NAN, {}};
       },
       {"alpha", "nan", "expected"}},
      {"sink_shape",
       with_normaliser("softmax_sink"),
       [](Built& b) {
         b.problem.normaliser = engine::Softmax{b.storage.zeros(DType::kFloat32, {3})};
       },
       {"sink", "[3]", "expected"}},
      // Structures.
      {"window_left",
       with_structure("window"),
       [](Built& b) {
         b.problem.structure = engine::Window{-2, 0};
       },
       {"left", "-2", "expected at least -1"}},
      {"prefix_negative",
       with_structure("prefix"),
       [](Built& b) { b.problem.structure = engine::Prefix{-1}; },
       {"length", "-1", "expected at least 0"}},
      {"prefix_lengths_count",
       with_structure("prefix_per_item"),
       [](Built& b) {
         structure_of<engine::Prefix>(b).lengths = b.storage.values(DType::kInt32, {1, 2, 3});
       },
       {"structure.lengths", "3", "expected 2"}},
      {"prefix_lengths_negative",
       with_structure("prefix_per_item"),
       [](Built& b) {
         structure_of<engine::Prefix>(b).lengths = b.storage.values(DType::kInt32, {1, -2});
       },
       {"structure.lengths[1]", "-2", "expected at least 0"}},
      {"ids_count",
       with_structure("documents"),
       [](Built& b) {
         structure_of<engine::Documents>(b).key_ids = b.storage.zeros(DType::kInt32, {5});
       },
       {"key_ids", "5", "expected 7"}},
      {"ids_dtype",
       with_structure("documents"),
       [](Built& b) {
         structure_of<engine::Documents>(b).query_ids = b.storage.zeros(DType::kFloat32, {5});
       },
       {"query_ids", "float32", "expected int32"}},
      {"mask_additive",
       with_structure("keep"),
       [](Built& b) {
         structure_of<engine::Keep>(b).mask = b.storage.zeros(DType::kFloat32, {5, 7});
       },
       {"mask", "float32", "expected bool"}},
      {"mask_shape",
       with_structure("keep"),
       [](Built& b) {
         structure_of<engine::Keep>(b).mask = b.storage.zeros(DType::kBool, {7, 5});
       },
       {"mask", "[7, 5]", "expected"}},
      {"block_mask_shape",
       with_structure("blocks"),
       [](Built& b) {
         structure_of<engine::Blocks>(b).mask = b.storage.zeros(DType::kBool, {2, 2});
       },
       {"mask", "[2, 2]", "expected"}},
      {"block_size",
       with_structure("blocks"),
       [](Built& b) { structure_of<engine::Blocks>(b).size = 0; },
       {"size", "0", "expected at least 1"}},
      {"stride_zero",
       with_structure("strided"),
       [](Built& b) { b.problem.structure = engine::Strided{0}; },
       {"stride", "0", "expected at least 1"}},
      {"summary_too_long",
       with_structure("fixed"),
       [](Built& b) {
         b.problem.structure = engine::Fixed{3, 4};
       },
       {"summary", "4", "expected between 0 and 3"}},
      {"offsets_go_back",
       kRagged,
       [](Built& b) {
         structure_of<engine::Ragged>(b).query_offsets = b.storage.values(
             DType::kInt32, {0, 4, 3, static_cast<double>(b.problem.query.size[0])});
       },
       {"query_offsets[2]", "3", "expected at least 4"}},
      {"offsets_past_end",
       kRagged,
       [](Built& b) {
         structure_of<engine::Ragged>(b).key_offsets = b.storage.values(DType::kInt32, {0, 7, 99});
       },
       {"key_offsets[2]", "99", "expected at most"}},
      {"offsets_short",
       kRagged,
       [](Built& b) {
         structure_of<engine::Ragged>(b).key_offsets = b.storage.values(DType::kInt32, {0, 1, 2});
       },
       {"key_offsets", "2", "expected"}},
      {"offsets_start",
       kRagged,
       [](Built& b) {
         structure_of<engine::Ragged>(b).key_offsets = b.storage.values(DType::kInt32, {1, 2, 7});
       },
       {"key_offsets[0]", "1", "expected 0"}},
      {"offsets_batches",
       kRagged,
       [](Built& b) {
         structure_of<engine::Ragged>(b).key_offsets =
             b.storage.values(DType::kInt32, {0, static_cast<double>(b.problem.key.size[0])});
       },
       {"key_offsets", "1", "expected 2"}},
      {"offsets_none",
       kRagged,
       [](Built& b) {
         structure_of<engine::Ragged>(b).key_offsets = b.storage.values(DType::kInt32, {});
       },
       {"key_offsets"}},
      {"column_out_of_range",
       kGraph,
       [](Built& b) { set(structure_of<engine::Graph>(b).columns, 1, 7); },
       {"columns[1]", "7", "expected between 0 and 6"}},
      {"column_negative",
       kGraph,
       [](Built& b) { set(structure_of<engine::Graph>(b).columns, 0, -1); },
       {"columns[0]", "-1", "expected between 0 and 6"}},
      {"row_offsets_go_back",
       kGraph,
       [](Built& b) { set(structure_of<engine::Graph>(b).row_offsets, 1, -3); },
       {"row_offsets[1]", "-3", "expected"}},
      {"row_offsets_count",
       kGraph,
       [](Built& b) {
         structure_of<engine::Graph>(b).row_offsets = b.storage.values(DType::kInt32, {0, 1});
       },
       {"row_offsets", "2", "expected 6"}},
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

INSTANTIATE_TEST_SUITE_P(All, BadInput, testing::ValuesIn(bad_inputs()),
                         [](const auto& info) { return info.param.name; });

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
