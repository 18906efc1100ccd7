#include "tests/page/sample_parts.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <string>

namespace fovea::explain::samples {

std::vector<Item> words(const std::string& text) {
  std::vector<Item> items;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) items.push_back({.text = word});
  return items;
}

std::vector<float> softmax_rows(std::vector<float> scores, size_t columns) {
  for (size_t row = 0; row < scores.size(); row += columns) {
    float top = scores[row], sum = 0;
    for (size_t j = 0; j < columns; ++j) top = std::max(top, scores[row + j]);
    for (size_t j = 0; j < columns; ++j) sum += scores[row + j] = std::exp(scores[row + j] - top);
    for (size_t j = 0; j < columns; ++j) scores[row + j] /= sum;
  }
  return scores;
}

std::vector<float> peaked(const std::vector<int>& favourite, size_t columns, float height,
                          uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise(0, 0.7f);
  std::vector<float> scores(favourite.size() * columns);
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = noise(random) + (int(i % columns) == favourite[i / columns] ? height : 0);
  return softmax_rows(scores, columns);
}

Explanation labelled(const char* system, const char* title, View view) {
  Explanation e;
  e.system = system;
  e.title = title;
  e.view = view;
  e.score = "scaled dot product";
  e.normaliser = "softmax";
  e.structure = "dense";
  e.scale = "1/√64 = 0.125";
  return e;
}

Picture digit(int value, uint32_t seed) {
  static constexpr int kBars[10] = {0b1110111, 0b0100100, 0b1011101, 0b1101101, 0b0101110,
                                    0b1101011, 0b1111011, 0b0100101, 0b1111111, 0b1101111};
  static constexpr int kAt[7][4] = {{8, 4, 12, 2}, {7, 5, 2, 9},   {19, 5, 2, 9}, {8, 13, 12, 2},
                                    {7, 14, 2, 9}, {19, 14, 2, 9}, {8, 22, 12, 2}};
  static constexpr int kBit[7] = {0, 1, 2, 3, 4, 5, 6};
  std::mt19937 random(seed);
  Picture p{28, 28, 1, std::vector<uint8_t>(784)};
  for (int b = 0; b < 7; ++b) {
    if (!(kBars[value] >> kBit[b] & 1)) continue;
    for (int y = 0; y < kAt[b][3]; ++y)
      for (int x = 0; x < kAt[b][2]; ++x)
        p.pixels[(kAt[b][1] + y) * 28 + kAt[b][0] + x] = 200 + random() % 56;
  }
  return p;
}

}  // namespace fovea::explain::samples
