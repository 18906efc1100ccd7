#include "data/generated/plates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "data/random.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

struct Colour {
  double red, green, blue;
};

constexpr Colour kTable{96, 70, 48};
constexpr std::array<Colour, 2> kPlates{{{34, 34, 40}, {36, 62, 150}}};
const std::vector<std::string> kPlateNames = {"black", "blue"};

bool in_disc(double x, double y, double cx, double cy, double rx, double ry) {
  const double dx = (x - cx) / rx, dy = (y - cy) / ry;
  return dx * dx + dy * dy <= 1;
}

constexpr std::array<std::pair<double, double>, 6> kPeas{
    {{-0.5, -0.3}, {0.1, -0.5}, {0.5, 0.1}, {-0.2, 0.2}, {0.1, 0.6}, {-0.6, 0.5}}};

// The colour of an ingredient at a point of its box, from -1 to 1 each way; nothing: the plate shows.
std::optional<Colour> food(int64_t ingredient, double x, double y) {
  const double radius = std::hypot(x, y);
  switch (ingredient) {
    case 0:  // tomato
      if (radius < 0.28) return Colour{60, 150, 50};
      return radius < 0.8 ? std::optional<Colour>({214, 48, 36}) : std::nullopt;
    case 1:  // onion, in rings
      if (radius > 0.8) return std::nullopt;
      return std::fmod(radius, 0.28) < 0.14 ? Colour{150, 60, 140} : Colour{238, 226, 240};
    case 2:  // carrot
      if (y < -0.55 && std::abs(x) < 0.35 && y > -0.95) return Colour{60, 160, 60};
      if (y >= -0.55 && y < 0.95 && std::abs(x) < 0.42 * (0.95 - y) / 1.5)
        return Colour{236, 128, 32};
      return std::nullopt;
    case 3:  // peas
      for (const auto& [cx, cy] : kPeas)
        if (in_disc(x, y, cx, cy, 0.24, 0.24)) return Colour{104, 190, 60};
      return std::nullopt;
    case 4:  // egg
      if (in_disc(x, y, 0.1, 0.05, 0.32, 0.32)) return Colour{248, 190, 40};
      return in_disc(x, y, 0, 0, 0.85, 0.68) ? std::optional<Colour>({246, 244, 236})
                                             : std::nullopt;
    case 5:  // cheese, a wedge with holes
      if (y > 0.6 || y < -0.7 || std::abs(x) > 0.9 * (y + 0.7) / 1.3) return std::nullopt;
      return in_disc(x, y, -0.2, 0.3, 0.15, 0.15) || in_disc(x, y, 0.35, 0.35, 0.13, 0.13)
                 ? Colour{190, 140, 20}
                 : Colour{246, 210, 70};
    case 6:  // bread
      if (std::max(std::abs(x), std::abs(y)) > 0.8) return std::nullopt;
      return std::max(std::abs(x), std::abs(y)) > 0.6 ? Colour{140, 88, 40} : Colour{232, 206, 160};
    case 7:  // fish
      if (in_disc(x, y, -0.15, 0, 0.65, 0.38)) return Colour{140, 168, 190};
      return x > 0.4 && x < 0.95 && std::abs(y) < (x - 0.3) * 0.8
                 ? std::optional<Colour>({110, 140, 166})
                 : std::nullopt;
    case 8:  // mushroom
      if (y < 0.05 && in_disc(x, y, 0, 0.05, 0.8, 0.75)) return Colour{190, 160, 126};
      return y >= 0.05 && y < 0.8 && std::abs(x) < 0.25 ? std::optional<Colour>({236, 226, 210})
                                                        : std::nullopt;
    default:  // chili, a crescent
      return in_disc(x, y, 0, 0, 0.85, 0.85) && !in_disc(x, y, 0.3, -0.25, 0.75, 0.75)
                 ? std::optional<Colour>({200, 24, 30})
                 : std::nullopt;
  }
}

using At = std::function<std::optional<Colour>(double x, double y)>;  // in the box

// A drawing turned, stretched and tinted at random.
At drawn(int64_t ingredient, Random& random) {
  const double angle = random.uniform(-0.6, 0.6), stretch = random.uniform(0.85, 1.15),
               light = random.uniform(0.8, 1.1);
  return [=](double x, double y) -> std::optional<Colour> {
    const double u = (x * std::cos(angle) + y * std::sin(angle)) * stretch,
                 v = (-x * std::sin(angle) + y * std::cos(angle)) / stretch;
    const std::optional<Colour> colour = food(ingredient, u, v);
    if (!colour) return std::nullopt;
    return Colour{colour->red * light, colour->green * light, colour->blue * light};
  };
}

// A grey picture; its dark pixels let the plate show.
At pasted(const Digits& from, int64_t which) {
  return [&from, which](double x, double y) -> std::optional<Colour> {
    const auto column = static_cast<int64_t>((x + 1) / 2 * static_cast<double>(from.width)),
               row = static_cast<int64_t>((y + 1) / 2 * static_cast<double>(from.height));
    if (row < 0 || column < 0 || row >= from.height || column >= from.width) return std::nullopt;
    const double grey =
        from.pixels[static_cast<size_t>((which * from.height + row) * from.width + column)];
    if (grey < 24) return std::nullopt;
    return Colour{grey, grey, grey};
  };
}

class Board {
 public:
  Board(int64_t side, const Colour& plate, Random& random)
      : side_(side), pixels_(static_cast<size_t>(side * side * 3)), random_(random) {
    const double middle = static_cast<double>(side) / 2;
    for (int64_t y = 0; y < side; ++y)
      for (int64_t x = 0; x < side; ++x) {
        const double far = std::hypot(static_cast<double>(x) + 0.5 - middle,
                                      static_cast<double>(y) + 0.5 - middle);
        set(x, y, far < middle * 0.98 ? plate : kTable);
      }
  }
  // In the box of `size` pixels at (left, top).
  void draw(const At& what, double left, double top, double size) {
    for (auto y = static_cast<int64_t>(top); y < static_cast<int64_t>(top + size); ++y)
      for (auto x = static_cast<int64_t>(left); x < static_cast<int64_t>(left + size); ++x) {
        if (x < 0 || y < 0 || x >= side_ || y >= side_) continue;
        const auto colour = what((static_cast<double>(x) + 0.5 - left) / size * 2 - 1,
                                 (static_cast<double>(y) + 0.5 - top) / size * 2 - 1);
        if (colour) set(x, y, *colour);
      }
  }
  std::vector<uint8_t> take() { return std::move(pixels_); }

 private:
  void set(int64_t x, int64_t y, const Colour& colour) {
    const double noise = random_.normal() * 5;
    const double of[] = {colour.red, colour.green, colour.blue};
    for (size_t c = 0; c < 3; ++c)
      pixels_[static_cast<size_t>(y * side_ + x) * 3 + c] =
          static_cast<uint8_t>(std::clamp(of[c] + noise, 0.0, 255.0));
  }

  int64_t side_;
  std::vector<uint8_t> pixels_;
  Random& random_;
};

// Two to four; k and (k + 3) mod 10 come together more often than others.
std::vector<int64_t> menu(Random& random) {
  const auto count = static_cast<size_t>(2 + random.below(3));
  std::vector<int64_t> out = {static_cast<int64_t>(random.below(kIngredients))};
  while (out.size() < count) {
    const int64_t next = random.below(2) ? (out.back() + 3) % kIngredients
                                         : static_cast<int64_t>(random.below(kIngredients));
    if (std::find(out.begin(), out.end(), next) == out.end()) out.push_back(next);
  }
  return out;
}

using Sprite = std::function<At(int64_t ingredient, Random&)>;

Plate plate(int64_t side, uint64_t seed, const Sprite& sprite) {
  Random random(seed);
  const size_t colour = random.below(kPlates.size());
  std::vector<int64_t> items = menu(random);
  Board canvas(side, kPlates[colour], random);
  std::vector<int64_t> quarters = {0, 1, 2, 3};
  random.shuffle(quarters);
  const double half = static_cast<double>(side) / 2;
  Plate out{.pixels = {},
            .recipe = recipe_of(items, kPlateNames[colour], random.next()),
            .boxes = std::vector<Box>(items.size())};
  std::vector<int64_t> sorted = items;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < items.size(); ++i) {
    const double size = half * random.uniform(0.78, 0.92), room = half - size;
    const double left = static_cast<double>(quarters[i] % 2) * half + random.uniform(0, room),
                 top = static_cast<double>(quarters[i] / 2) * half + random.uniform(0, room);
    canvas.draw(sprite(items[i], random), left, top, size);
    const auto place = std::find(sorted.begin(), sorted.end(), items[i]) - sorted.begin();
    const double all = static_cast<double>(side);
    out.boxes[static_cast<size_t>(place)] = {left / all, top / all, size / all, size / all};
  }
  out.pixels = canvas.take();
  return out;
}

// `sprite_of` says where the plates of a part take their ingredients from.
Plates set_table(const PlatePlan& plan, const std::function<Sprite(Split)>& sprite_of) {
  if (plan.side < 16)
    throw InvalidArgument("side: " + std::to_string(plan.side) + ", expected at least 16");
  Plates out{.side = plan.side, .items = {}, .splits = in_order(plan.parts)};
  for (const Split part : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const Sprite sprite = sprite_of(part);
    for (const int64_t i : out.splits.of(part))
      out.items.push_back(
          plate(plan.side, mix(plan.seed, 0x9147E + static_cast<uint64_t>(i)), sprite));
  }
  return out;
}

}  // namespace

const std::vector<std::string>& plate_colours() { return kPlateNames; }

Plates generate_plates(const PlatePlan& plan) {
  return set_table(plan, [](Split) -> Sprite { return drawn; });
}

Plates plates_of(const PlatePlan& plan, const DigitSets& from) {
  return set_table(plan, [&](Split part) -> Sprite {
    const Digits& pictures = part == Split::kTest ? from.test : from.train;
    std::array<std::vector<int64_t>, kIngredients> of_class;
    for (int64_t i = 0; i < pictures.count; ++i) {
      const bool for_validation = i % 10 == 9;
      if (part == Split::kTest || for_validation == (part == Split::kValidation))
        of_class[static_cast<size_t>(pictures.labels[static_cast<size_t>(i)])].push_back(i);
    }
    for (size_t k = 0; k < of_class.size(); ++k)
      if (of_class[k].empty())
        throw InvalidArgument("plates: no picture of class " + std::to_string(k) +
                              ", expected some of each of ten");
    return [&pictures, of_class](int64_t ingredient, Random& random) {
      return pasted(pictures, random.choice(of_class[static_cast<size_t>(ingredient)]));
    };
  });
}

}  // namespace fovea::data
