// ONNX's Attention and FlexAttention cases through the engine. The adapter below is what the
// operators add to attention: heads folded into the last axis, a cache put before the keys, and
// masks of three sorts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fovea/engine.h"
#include "tests/conformance/case_file.h"
#include "tests/engine/run.h"

namespace fovea::conformance {
namespace {

using cases::Storage;
using engine::DType;
using engine::View;

// [B, L, H * E] seen as [B, H, L, E].
View heads_of(View view, int64_t heads) {
  if (view.rank == 4) return view;
  const int64_t width = view.size[2] / heads, row = view.size[2];
  view.rank = 4;
  view.size = {view.size[0], heads, view.size[1], width};
  view.stride = {view.size[2] * row, width, row, 1};
  return view;
}

// The past, then the new, along the sequence.
View joined(Storage& storage, const View& past, const View& present) {
  View all = storage.zeros(present.dtype, {present.size[0], present.size[1],
                                           past.size[2] + present.size[2], present.size[3]});
  View first = all, second = all;
  first.size[2] = past.size[2];
  second.size[2] = present.size[2];
  assign(first, numbers(past));
  const Numbers values = numbers(present);
  size_t n = 0;
  const int64_t start = past.size[2] * all.stride[2];
  Storage::each(second, [&](int64_t at) { Storage::set(all, start + at, values[n++]); });
  return all;
}

// A mask whose last axis is shorter than the keys hides the rest of them.
View widened(Storage& storage, const View& mask, int64_t keys) {
  const int last = mask.rank - 1;
  if (mask.size[last] == keys || mask.size[last] == 1) return mask;
  View shape = mask;
  shape.size[last] = keys;
  View wide = storage.zeros_like(shape, mask.dtype);
  const Numbers values = numbers(mask);
  int64_t n = 0;
  Storage::each(wide, [&](int64_t at) {
    const int64_t row = n / keys, j = n % keys, given = mask.size[last];
    const double hidden = mask.dtype == DType::kBool ? 0 : -INFINITY;
    Storage::set(wide, at, j < given ? values[row * given + j] : hidden);
    ++n;
  });
  return wide;
}

class Adapter {
 public:
  explicit Adapter(const std::filesystem::path& folder) : file_(folder) {
    engine::Problem& p = problem_;
    p.query = heads_of(file_.input("Q"), heads("q_num_heads"));
    p.key = heads_of(file_.input("K"), heads("kv_num_heads"));
    p.value = heads_of(file_.input("V"), heads("kv_num_heads"));
    if (file_.has_input("past_key")) {
      past_ = file_.input("past_key").size[2];
      p.key = joined(file_.storage, file_.input("past_key"), p.key);
      p.value = joined(file_.storage, file_.input("past_value"), p.value);
    }
    engine::Dot dot;
    if (!file_.meta["attributes"]["scale"].is_null()) dot.scale = file_.attribute("scale", 0);
    p.score = dot;
    if (const double cap = file_.attribute("softcap", 0); cap > 0) {
      p.score.modifiers.push_back(engine::SoftCap{cap});
    }
    if (file_.has_input("attn_mask")) add_mask();
    if (file_.has_input("nonpad_kv_seqlen")) p.key_lengths = file_.input("nonpad_kv_seqlen");
    if (file_.attribute("is_causal", 0) != 0) add_causal();
    add_window();
    add_score_function();
  }

  void check() {
    const engine::Problem& p = problem_;
    const View output = file_.storage.zeros(
        p.query.dtype, {p.query.size[0], p.query.size[1], p.query.size[2], p.value.size[3]});
    engine::Result result;
    result.output = output;
    engine::forward(p, result, engine::default_parallel());
    multiply_weights(output);
    const View expected = heads_of(file_.expected("Y"), p.query.size[1]);
    const auto& tolerance = file_.meta["tolerance"];
    expect_close(output, expected, tolerance, "Y");
    if (file_.has_output("present_key")) {
      expect_close(p.key, file_.expected("present_key"), tolerance, "present_key");
      expect_close(p.value, file_.expected("present_value"), tolerance, "present_value");
    }
    if (file_.has_output("qk_matmul_output")) {
      expect_close(products(), file_.expected("qk_matmul_output"), tolerance, "qk_matmul_output");
    }
  }

 private:
  int64_t heads(const char* name) const { return static_cast<int64_t>(file_.attribute(name, 1)); }
  int64_t keys() const { return problem_.key.size[2]; }

  void add_mask() {
    const View mask = widened(file_.storage, file_.input("attn_mask"), keys());
    if (mask.dtype == DType::kBool) {
      problem_.structure.all_of.push_back(engine::Keep{mask});
      return;
    }
    problem_.score.modifiers.push_back(engine::Bias{mask});
  }

  // j <= i + offset: the past, or the keys that are there less the queries.
  void add_causal() {
    if (problem_.key_lengths && past_ == 0) {
      problem_.structure.all_of.push_back(engine::Causal{choice::Alignment::kBottomRight});
    } else {
      problem_.structure.all_of.push_back(engine::Window{-1, past_});
    }
  }

  // p - left <= j <= p + right, p = i + offset. An offset that differs by batch makes it a mask.
  void add_window() {
    const auto left = static_cast<int64_t>(file_.attribute("left_window_size", -1));
    const auto right = static_cast<int64_t>(file_.attribute("right_window_size", -1));
    if (left < 0 && right < 0) return;
    if (!problem_.key_lengths && past_ == 0) {
      problem_.structure.all_of.push_back(engine::Window{left, right});
      return;
    }
    const int64_t batch = problem_.query.size[0], queries = problem_.query.size[2];
    Numbers lengths(batch, static_cast<double>(past_ + queries));
    if (problem_.key_lengths && past_ == 0) lengths = numbers(problem_.key_lengths);
    const View mask = file_.storage.zeros(DType::kBool, {batch, 1, queries, keys()});
    int64_t n = 0;
    Storage::each(mask, [&](int64_t at) {
      const int64_t j = n % keys(), i = n / keys() % queries, b = n / keys() / queries;
      const int64_t p = i + static_cast<int64_t>(lengths[b]) - queries;
      Storage::set(mask, at, (left < 0 || j >= p - left) && (right < 0 || j <= p + right));
      ++n;
    });
    problem_.structure.all_of.push_back(engine::Keep{mask});
  }

  // FlexAttention's modifier of scores.
  void add_score_function() {
    const auto found = file_.meta.find("score_mod");
    if (found == file_.meta.end() || found->is_null()) return;
    const std::string kind = (*found)["kind"];
    if (kind == "causal") {
      problem_.structure.all_of.push_back(engine::Causal{});
    } else if (kind == "soft_cap_tanh") {
      problem_.score.modifiers.push_back(engine::SoftCap{(*found)["value"].get<double>()});
    } else if (kind == "add_constant") {
      problem_.score.modifiers.push_back(
          engine::Bias{file_.storage.values(DType::kFloat32, {(*found)["value"].get<double>()})});
    } else if (kind == "add_relative_position_q_minus_k") {
      problem_.score.modifiers.push_back(engine::Custom{.value_f32 = add_offset<float>,
                                                        .derivative_f32 = nullptr,
                                                        .value_f64 = add_offset<double>,
                                                        .derivative_f64 = nullptr,
                                                        .context = nullptr});
    } else {
      FAIL() << "score_mod '" << kind << "' is not known";
    }
  }
  template <class T>
  static void add_offset(const void*, T* scores, size_t n, choice::RowPosition at) {
    for (size_t c = 0; c < n; ++c) {
      scores[c] += static_cast<T>(at.query - at.key - static_cast<int64_t>(c));
    }
  }

  // FlexAttention's modifier of weights: constant, so it moves to the output.
  void multiply_weights(const View& output) {
    const auto found = file_.meta.find("prob_mod");
    if (found == file_.meta.end() || found->is_null()) return;
    ASSERT_EQ((*found)["kind"], "multiply_constant");
    Numbers y = numbers(output);
    for (double& x : y) x *= (*found)["value"].get<double>();
    assign(output, y);
  }

  View all_weights(const engine::Problem& p) {
    const View weights = file_.storage.zeros(
        DType::kFloat32, {p.query.size[0], p.query.size[1], p.query.size[2], keys()});
    engine::weights(p, {}, {.weights = weights, .indices = {}}, engine::default_parallel());
    return weights;
  }

  // Scores after the product, the soft cap or the masks, or weights: as many steps as the mode
  // says.
  View products() {
    const auto mode = static_cast<int>(file_.attribute("qk_matmul_output_mode", 0));
    if (mode == 3) return all_weights(problem_);
    engine::Problem p = problem_;
    p.normaliser = engine::Unnormalised{};
    std::erase_if(p.score.modifiers, [&](const engine::Modifier& modifier) {
      return mode == 0 || (mode == 1 && !std::holds_alternative<engine::SoftCap>(modifier));
    });
    if (mode < 2) {
      p.structure = {};
      p.key_lengths = {};
    }
    const View scores = all_weights(p);
    if (mode < 2) return scores;
    p.score = engine::Constant{};  // 1 where a key is seen
    const Numbers seen = numbers(all_weights(p));
    size_t n = 0;
    Storage::each(scores, [&](int64_t at) {
      if (seen[n++] == 0) Storage::set(scores, at, -INFINITY);
    });
    return scores;
  }

  CaseFile file_;
  engine::Problem problem_;
  int64_t past_ = 0;
};

class Onnx : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Onnx, Agrees) { Adapter(GetParam()).check(); }

const auto kName = [](const auto& info) { return info.param.filename().string(); };
INSTANTIATE_TEST_SUITE_P(Attention, Onnx, testing::ValuesIn(cases_of("onnx_attention")), kName);
INSTANTIATE_TEST_SUITE_P(Window, Onnx, testing::ValuesIn(cases_of("onnx_attention_window")), kName);
INSTANTIATE_TEST_SUITE_P(Flex, Onnx, testing::ValuesIn(cases_of("onnx_flex_attention")), kName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Onnx);

TEST(OnnxSuites, AreComplete) {
  if (!std::filesystem::is_directory(root())) {
    GTEST_SKIP() << "no conformance cases: set FOVEA_CONFORMANCE";
  }
  EXPECT_EQ(cases_of("onnx_attention").size(), 50u);
  EXPECT_EQ(cases_of("onnx_attention_window").size(), 7u);
  EXPECT_EQ(cases_of("onnx_flex_attention").size(), 7u);
}

}  // namespace
}  // namespace fovea::conformance
