// Sets to shuffle, with functions of them small enough to be worked out here as well.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/page/sample_parts.h"
#include "tests/page/samples.h"

namespace fovea::explain::samples {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// torch.nn.GRU's cell with a state of one number, every gate with weights and biases of its own.
struct SmallGru {
  std::array<float, 3> from_input{0.4f, -0.3f, 0.25f}, from_state{0.2f, 0.6f, -0.8f},
      input_bias{0.1f, 0.3f, -0.2f}, state_bias{0.05f, -0.1f, 0.7f};

  double last_state(const std::vector<float>& inputs) const {
    double h = 0;
    for (const float x : inputs) {
      const auto now = [&](size_t g) { return double{from_input[g]} * x + input_bias[g]; };
      const auto before = [&](size_t g) { return from_state[g] * h + state_bias[g]; };
      const double reset = sigmoid(now(0) + before(0)), update = sigmoid(now(1) + before(1));
      h = (1 - update) * std::tanh(now(2) + reset * before(2)) + update * h;
    }
    return h;
  }
  Gru written() const {
    const auto list = [](const std::array<float, 3>& a) {
      return std::vector<float>(a.begin(), a.end());
    };
    return {list(from_input), list(from_state), list(input_bias), list(state_bias)};
  }
};

}  // namespace

Explanation shuffled_set() {
  Explanation e = labelled("deep-sets", "Shuffle six digits", View::kShuffle);
  e.normaliser = "none (sum)";
  e.key_label = "digit";
  const std::vector<int> digits = {3, 9, 1, 7, 2, 5};
  Shuffle shuffle{.answer = "sum", .width = 1};
  for (size_t i = 0; i < digits.size(); ++i) {
    e.keys.push_back(
        {.text = std::to_string(digits[i]), .picture = digit(digits[i], static_cast<uint32_t>(i))});
    shuffle.vectors.push_back(static_cast<float>(digits[i]) / 10 - 1);
  }
  // Counted from nothing and ten times each: the sum of the digits, and two layers that keep it.
  shuffle.readers.push_back(
      {.label = "Deep Sets",
       .kind = Reader::Kind::kSum,
       .shift = 1,
       .layers = {{{1, -1}, {0, 0}, Layer::Activation::kRelu}, {{10, 10}, {0}}},
       .given = 27});
  const SmallGru gru;
  shuffle.readers.push_back({.label = "GRU",
                             .kind = Reader::Kind::kGru,
                             .gru = gru.written(),
                             .layers = {{{20}, {12}}},
                             .given = 20 * gru.last_state(shuffle.vectors) + 12});
  e.shuffle = shuffle;
  e.tables.push_back({.title = "The same set in two orders",
                      .columns = {"order", "Deep Sets"},
                      .rows = {{"3 9 1 7 2 5", "27"}, {"5 2 7 1 9 3", "27"}}});
  return e;
}

Explanation point_cloud() {
  Explanation e = labelled("deep-sets-points", "Shuffle twelve points", View::kShuffle);
  e.normaliser = "hard";
  e.key_label = "point";
  Shuffle shuffle{.answer = "p of “wide”", .width = 2};
  for (int i = 0; i < 12; ++i) {
    const double x = 2 * std::cos(i * 0.55), y = std::sin(i * 0.55);
    e.keys.push_back({.text = std::to_string(i + 1), .position = {x, y}});
    shuffle.vectors.push_back(static_cast<float>(x));
    shuffle.vectors.push_back(static_cast<float>(y));
  }
  std::vector<int> order(12);
  for (int i = 0; i < 12; ++i) order[static_cast<size_t>(i)] = i;
  for (int i = 0; i < 3; ++i) {
    shuffle.orders.push_back(order);
    std::swap(order[static_cast<size_t>(i)], order[11]);
  }
  shuffle.chosen = 0;
  float right = shuffle.vectors[0], top = shuffle.vectors[1];
  for (size_t i = 0; i < 12; ++i) {
    right = std::max(right, shuffle.vectors[2 * i]);
    top = std::max(top, shuffle.vectors[2 * i + 1]);
  }
  shuffle.readers.push_back({.label = "Deep Sets",
                             .kind = Reader::Kind::kMax,
                             .layers = {{{1, 0, 0, 1}, {0, 0}}},
                             .given = sigmoid(right - top)});
  shuffle.readers.push_back({.label = "too large",
                             .kind = Reader::Kind::kDrawn,
                             .answers = {0.5, 0.25, 0.75},
                             .given = 0.5});
  e.shuffle = shuffle;
  return e;
}

}  // namespace fovea::explain::samples
