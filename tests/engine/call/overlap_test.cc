// Places for results that are an input's memory, or another result's, are refused by name at any
// length; slices of one array that do not meet are not.
#include <gtest/gtest.h>

#include <functional>

#include "engine/call/overlap.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using engine::DType;
using engine::View;

// In place was right at 300 and wrong at 600, where keys are met in two runs.
constexpr int64_t kLengths[] = {300, 600};

Case case_of(int64_t length) {
  return {.modifiers = {"bias", "alibi"},
          .normaliser = "softmax_sink",
          .structure = {"causal"},
          .shape = {2, 2, 2, length, length, 8, 8},
          .key_lengths = true};
}

template <class Run>
void expect_refusal(const Run& run, const std::string& place, const std::string& with) {
  try {
    run();
    ADD_FAILURE() << place << ": no error beside " << with;
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find(place + ": "), 0u) << text;
    EXPECT_NE(text.find(with), std::string::npos) << text;
  }
}

// Memory of another array seen in the shape of `place`.
View over(const View& place, const View& other) {
  View view = place;
  view.data = other.data;
  return view;
}

TEST(Overlap, OfAResultWithAnInputIsRefusedByName) {
  for (const int64_t length : kLengths) {
    Built built = cases::build(case_of(length));
    const engine::Problem& p = built.problem;
    const auto& bias = std::get<engine::Bias>(p.score.modifiers[0]).bias;
    const auto refuse = [&](View engine::Result::*place, const char* name, const View& input,
                            const char* with) {
      engine::Result result = built.result;
      result.*place = over(result.*place, input);
      expect_refusal([&] { engine::forward(p, result, serial()); }, name,
                     std::string("shares memory with ") + with);
    };
    refuse(&engine::Result::output, "output", p.query, "query");
    refuse(&engine::Result::output, "output", p.key, "key");
    refuse(&engine::Result::output, "output", p.value, "value");
    refuse(&engine::Result::output, "output", bias, "score.bias");
    refuse(&engine::Result::lse, "lse", p.query, "query");
    refuse(&engine::Result::statistics, "statistics", p.value, "value");
    refuse(&engine::Result::lse, "output", built.result.output, "lse");
    refuse(&engine::Result::lse, "lse", built.result.statistics, "statistics");
    EXPECT_NO_THROW(engine::forward(p, built.result, serial()));
    // Small inputs that lie in a place.
    engine::Problem small = p;
    std::get<engine::Softmax>(small.normaliser).sink.data = built.result.lse.data;
    expect_refusal([&] { engine::forward(small, built.result, serial()); }, "lse",
                   "shares memory with normaliser.sink");
    small = p;
    small.key_lengths.data = built.result.output.data;
    assign(small.key_lengths, {1, 2});
    expect_refusal([&] { engine::forward(small, built.result, serial()); }, "output",
                   "shares memory with key_lengths");
    small = p;
    small.query_offset = small.key_lengths;
    small.query_offset.each.data = built.result.statistics.data;
    expect_refusal([&] { engine::forward(small, built.result, serial()); }, "statistics",
                   "shares memory with query_offset");
  }
}

TEST(Overlap, ByOneNumberIsRefused) {
  for (const int64_t length : kLengths) {
    Built built = cases::build(case_of(length));
    engine::Result result = built.result;
    const auto bytes = static_cast<size_t>(2 * 2 * length * 8) * sizeof(float);
    result.output.data = static_cast<char*>(built.problem.query.data) + bytes - sizeof(float);
    expect_refusal([&] { engine::forward(built.problem, result, serial()); }, "output", "query");
  }
}

TEST(Overlap, OfAGradientIsRefusedByName) {
  for (const int64_t length : kLengths) {
    Built built = cases::build(case_of(length));
    run_forward(built);
    const auto refuse = [&](const std::function<void(engine::Gradients&)>& spoil, const char* name,
                            const char* with) {
      engine::Gradients gradients = built.gradients;
      spoil(gradients);
      expect_refusal([&] { engine::backward(built.problem, built.result, gradients, serial()); },
                     name, std::string("shares memory with ") + with);
    };
    using G = engine::Gradients;
    const engine::Problem& p = built.problem;
    refuse([&](G& g) { g.query.data = p.query.data; }, "gradients.query", "query");
    refuse([&](G& g) { g.key.data = p.value.data; }, "gradients.key", "value");
    refuse([&](G& g) { g.value.data = built.result.output.data; }, "gradients.value", "output");
    refuse([&](G& g) { g.query.data = g.output.data; }, "gradients.query", "gradients.output");
    refuse([&](G& g) { g.key.data = g.value.data; }, "gradients.key", "gradients.value");
    refuse([&](G& g) { g.key.data = std::get<engine::Bias>(g.score.modifiers[0]).bias.data; },
           "gradients.key", "gradients.score.bias");
    refuse([&](G& g) { std::get<engine::Softmax>(g.normaliser).sink.data = p.query.data; },
           "gradients.normaliser.sink", "query");
    EXPECT_NO_THROW(engine::backward(p, built.result, built.gradients, serial()));
  }
}

TEST(Overlap, OfSelectedWeightsIsRefusedByName) {
  Built built = cases::build({.shape = {1, 2, 2, 16, 16, 16, 4}});
  const View weights = View::of(built.problem.query.data, DType::kFloat32, {1, 2, 16, 16});
  expect_refusal(
      [&] {
        engine::weights(built.problem, {}, {weights, {}}, serial());
      },
      "weights", "query");
}

TEST(Overlap, AnExpandedPlaceIsRefused) {
  for (const int64_t length : kLengths) {
    Built built = cases::build(case_of(length));
    for (int d = 0; d < 3; ++d) {
      engine::Result result = built.result;
      result.output.stride[d] = 0;
      expect_refusal([&] { engine::forward(built.problem, result, serial()); }, "output",
                     "stride 0 in dimension " + std::to_string(d));
      result = built.result;
      result.lse.stride[d] = 0;
      expect_refusal([&] { engine::forward(built.problem, result, serial()); }, "lse", "stride 0");
      engine::Gradients gradients = built.gradients;
      run_forward(built);
      gradients.key.stride[d] = 0;
      expect_refusal([&] { engine::backward(built.problem, built.result, gradients, serial()); },
                     "gradients.key", "stride 0");
    }
    engine::Result result = built.result;
    result.output.stride[2] = 4;  // rows of 8, one every 4
    expect_refusal([&] { engine::forward(built.problem, result, serial()); }, "output",
                   "elements overlap");
  }
}

TEST(Overlap, AnExpandedInputIsNone) {
  Built built = cases::build({.shape = {2, 2, 2, 5, 7, 4, 3}});
  built.problem.query.stride[0] = built.problem.key.stride[1] = 0;
  EXPECT_NO_THROW(run_forward(built));
}

// Query, key, value and output side by side in every row, [B, L, 4, H, E], in every head,
// [B, L, H, 4, E], or one after another along the length, [B, H, 4 L, E].
TEST(Overlap, SlicesOfOneArraySideBySideAreTakenAndRight) {
  for (const int64_t n : {int64_t{5}, int64_t{300}, int64_t{600}}) {
    const int64_t heads = 2, width = 8, batch = 2;
    const Case c{.structure = {"causal"}, .shape = {batch, heads, heads, n, n, width, width}};
    Built plain = cases::build(c);
    const Numbers expected = run_forward(plain).output;
    const auto gradients = run_backward(plain);
    struct Layout {
      int64_t part;                   // elements from one part to the next
      std::array<int64_t, 4> stride;  // of [B, H, L, E]
    };
    const int64_t row = heads * width;
    for (const Layout& layout :
         {Layout{row, {n * 4 * row, width, 4 * row, 1}},
          Layout{width, {n * 4 * row, 4 * width, 4 * row, 1}},
          Layout{n * width, {heads * 4 * n * width, 4 * n * width, width, 1}}}) {
      Built built = cases::build(c);
      const auto part_of = [&](const View& all, int64_t part) {
        View view = all;
        view.data = static_cast<float*>(all.data) + part * layout.part;
        view.rank = 4;
        view.size = {batch, heads, n, width};
        view.stride = layout.stride;
        return view;
      };
      const View all = built.storage.zeros(DType::kFloat32, {batch * n * 4 * row}),
                 d_all = built.storage.zeros(DType::kFloat32, {batch * n * 4 * row});
      int64_t part = 0;
      for (View engine::Problem::*input :
           {&engine::Problem::query, &engine::Problem::key, &engine::Problem::value}) {
        built.problem.*input = part_of(all, part++);
        assign(built.problem.*input, numbers(plain.problem.*input));
      }
      built.result.output = part_of(all, 3);
      built.gradients.query = part_of(d_all, 0);
      built.gradients.key = part_of(d_all, 1);
      built.gradients.value = part_of(d_all, 2);
      built.gradients.output = part_of(d_all, 3);
      assign(built.gradients.output, numbers(plain.gradients.output));
      expect_same(run_forward(built).output, expected, 0, "output");
      const auto got = run_backward(built);
      for (size_t a = 0; a < 3; ++a) expect_same(got[a], gradients[a], 0, "gradient");
      built.result.output = part_of(all, 2);
      expect_refusal([&] { engine::forward(built.problem, built.result, serial()); }, "output",
                     "value");
    }
  }
}

TEST(Overlap, IsExactForSlicesAndNeverMissed) {
  float memory[64] = {};
  const auto view = [&](int64_t at, std::array<int64_t, 2> size, std::array<int64_t, 2> stride) {
    View v = View::of(memory + at, DType::kFloat32, {size[0], size[1]});
    v.stride = {stride[0], stride[1]};
    return v;
  };
  using engine::may_share;
  EXPECT_FALSE(may_share(view(0, {4, 4}, {8, 1}), view(4, {4, 4}, {8, 1})));
  EXPECT_TRUE(may_share(view(0, {4, 5}, {8, 1}), view(4, {4, 4}, {8, 1})));
  EXPECT_TRUE(may_share(view(0, {4, 4}, {8, 1}), view(4, {4, 5}, {8, 1})));   // round the end
  EXPECT_FALSE(may_share(view(0, {8, 2}, {8, 2}), view(1, {8, 2}, {8, 2})));  // every other one
  EXPECT_FALSE(may_share(view(0, {0, 4}, {8, 1}), view(0, {4, 4}, {8, 1})));  // nothing there
  EXPECT_FALSE(may_share(view(9, {0, 4}, {8, 1}), view(0, {4, 4}, {8, 1})));  // in its midst
  EXPECT_FALSE(may_share(view(24, {4, 4}, {-8, 1}), view(4, {4, 4}, {8, 1})));
  EXPECT_TRUE(may_share(view(28, {4, 4}, {-8, 1}), view(4, {4, 4}, {8, 1})));
  // Against every element of every pair of small views: no pair that shares is missed.
  for (int64_t at = 0; at < 12; ++at) {
    for (int64_t stride = 1; stride < 7; ++stride) {
      for (int64_t count = 1; count < 5; ++count) {
        const View a = view(3, {3, 2}, {5, 1}), b = view(at, {count, 2}, {stride, 1});
        bool shares = false;
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 0; j < count * 2; ++j)
            shares |= 3 + i / 2 * 5 + i % 2 == at + j / 2 * stride + j % 2;
        EXPECT_TRUE(may_share(a, b) || !shares) << at << " " << stride << " " << count;
      }
    }
  }
}

}  // namespace
}  // namespace fovea
