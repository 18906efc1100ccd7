// Choices with a field that is wrong, or that cannot go together.
#include <cmath>

#include "tests/engine/call/bad_input.h"

namespace fovea::bad_input {

std::vector<Bad> bad_choices() {
  return {
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
  };
}

}  // namespace fovea::bad_input
