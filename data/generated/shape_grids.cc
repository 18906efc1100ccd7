#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "data/pictures/picture_questions.h"
#include "data/random.h"

namespace fovea::data {
namespace {

constexpr int64_t kSide = kGridCells * kCellPixels, kCells = kGridCells * kGridCells;
constexpr std::array<const char*, 4> kShapes = {"circle", "square", "triangle", "cross"};
constexpr std::array<const char*, 5> kColours = {"red", "green", "blue", "yellow", "purple"};
constexpr std::array<std::array<int, 3>, 5> kRgb = {
    {{220, 40, 40}, {40, 190, 60}, {50, 90, 230}, {230, 210, 50}, {170, 60, 200}}};
struct Relation {
  const char* words;
  int64_t row, column;  // from the referent to the thing asked about
};
constexpr std::array<Relation, 4> kRelations = {
    {{"left of", 0, -1}, {"right of", 0, 1}, {"above", -1, 0}, {"below", 1, 0}}};
// At least one other: with two things alone, the one that is not the referent is the answer, and one
// look finds it. Such pictures teach to look away from the referent.
constexpr uint64_t kFewestOthers = 1, kMostOthers = 4;

// x and y from -1 to 1 within the cell.
bool inside(size_t shape, double x, double y) {
  switch (shape) {
    case 0:
      return x * x + y * y < 0.6;
    case 1:
      return std::max(std::fabs(x), std::fabs(y)) < 0.7;
    case 2:
      return y < 0.7 && y > 2 * std::fabs(x) - 0.8;
    default:
      return std::min(std::fabs(x), std::fabs(y)) < 0.26 &&
             std::max(std::fabs(x), std::fabs(y)) < 0.9;
  }
}

void draw(std::vector<uint8_t>& picture, int64_t cell, size_t shape, size_t colour,
          Random& random) {
  const int64_t top = cell / kGridCells * kCellPixels, left = cell % kGridCells * kCellPixels;
  // A small random shift, so that no two things of a kind stand at the same place.
  const double dx = random.uniform(-0.15, 0.15), dy = random.uniform(-0.15, 0.15);
  for (int64_t v = 0; v < kCellPixels; ++v)
    for (int64_t u = 0; u < kCellPixels; ++u) {
      const auto at = [&](int64_t pixel) {
        return (2 * static_cast<double>(pixel) + 1) / static_cast<double>(kCellPixels) - 1;
      };
      if (!inside(shape, at(u) - dx, at(v) - dy)) continue;
      for (size_t c = 0; c < 3; ++c)
        picture[static_cast<size_t>(((top + v) * kSide + left + u) * 3) + c] =
            static_cast<uint8_t>(std::clamp<int64_t>(
                kRgb[colour][c] + static_cast<int64_t>(random.below(41)) - 20, 0, 255));
    }
}

std::vector<uint8_t> ground(Random& random) {
  std::vector<uint8_t> out(static_cast<size_t>(kSide * kSide * 3));
  for (uint8_t& pixel : out) pixel = static_cast<uint8_t>(20 + random.below(21));
  return out;
}

// The referent of its shape, the thing next to it, and others of other shapes.
void add_picture(PictureQuestions& set, Random& random) {
  const Relation& relation = kRelations[random.below(kRelations.size())];
  int64_t referent = 0, row = 0, column = 0;
  do {
    referent = static_cast<int64_t>(random.below(kCells));
    row = referent / kGridCells + relation.row;
    column = referent % kGridCells + relation.column;
  } while (row < 0 || row >= kGridCells || column < 0 || column >= kGridCells);
  const int64_t thing = row * kGridCells + column;
  const size_t shape = random.below(kShapes.size());
  const auto other_shape = [&] {
    return (shape + 1 + random.below(kShapes.size() - 1)) % kShapes.size();
  };
  std::vector<uint8_t> picture = ground(random);
  const size_t colour = random.below(kColours.size());
  draw(picture, referent, shape, random.below(kColours.size()), random);
  draw(picture, thing, other_shape(), colour, random);
  std::vector<int64_t> free;
  for (int64_t cell = 0; cell < kCells; ++cell)
    if (cell != referent && cell != thing) free.push_back(cell);
  random.shuffle(free);
  const uint64_t others = kFewestOthers + random.below(kMostOthers - kFewestOthers + 1);
  for (uint64_t i = 0; i < others; ++i)
    draw(picture, free[i], other_shape(), random.below(kColours.size()), random);
  const std::string name = fmt::format("pictures.idx#{}", set.questions.size());
  set.questions.push_back({.picture = name,
                           .question = fmt::format("what colour is the thing {} the {}",
                                                   relation.words, kShapes[shape]),
                           .answers = {kColours[colour]},
                           .cells = {referent, thing}});
  set.pictures.push_back(std::move(picture));
}

}  // namespace

PictureQuestions generate_shape_grids(int64_t pictures, uint64_t seed) {
  PictureQuestions out;
  Random random(mix(seed, 0x6121));
  for (const auto& [part, count] :
       {std::pair(Split::kTrain, pictures), std::pair(Split::kValidation, pictures / 8),
        std::pair(Split::kTest, pictures / 4)})
    for (int64_t i = 0; i < count; ++i) {
      out.splits.of(part).push_back(static_cast<int64_t>(out.questions.size()));
      add_picture(out, random);
    }
  return out;
}

}  // namespace fovea::data
