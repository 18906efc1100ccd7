#include "data/generated/tissue.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/random.h"

namespace fovea::data {
namespace {

using Stain = std::array<double, 3>;

constexpr Stain kGround{232, 190, 208}, kNucleus{128, 84, 150}, kPale{244, 228, 236},
    kKernel{72, 40, 104};

class Section {
 public:
  explicit Section(Random& random) : random_(random), pixels_(kSlideSide * kSlideSide) {
    // Waves of two directions, so that the ground is not flat.
    const double a = random.uniform(0.05, 0.2), b = random.uniform(0.05, 0.2),
                 phase = random.uniform(0, 6.28);
    for (int64_t y = 0; y < kSlideSide; ++y)
      for (int64_t x = 0; x < kSlideSide; ++x) {
        const double wave = 10 * std::sin(a * static_cast<double>(x) + phase) *
                            std::cos(b * static_cast<double>(y));
        Stain& at = pixels_[static_cast<size_t>(y * kSlideSide + x)];
        for (size_t c = 0; c < 3; ++c) at[c] = kGround[c] + wave;
      }
  }
  // An ellipse, turned at random.
  void blot(double cx, double cy, double rx, double ry, double angle, const Stain& stain) {
    const double reach = std::max(rx, ry) + 1;
    for (auto y = std::max<int64_t>(0, static_cast<int64_t>(cy - reach));
         y < std::min<int64_t>(kSlideSide, static_cast<int64_t>(cy + reach) + 1); ++y)
      for (auto x = std::max<int64_t>(0, static_cast<int64_t>(cx - reach));
           x < std::min<int64_t>(kSlideSide, static_cast<int64_t>(cx + reach) + 1); ++x) {
        const double dx = static_cast<double>(x) - cx, dy = static_cast<double>(y) - cy;
        const double u = (dx * std::cos(angle) + dy * std::sin(angle)) / rx,
                     v = (-dx * std::sin(angle) + dy * std::cos(angle)) / ry;
        if (u * u + v * v <= 1) pixels_[static_cast<size_t>(y * kSlideSide + x)] = stain;
      }
  }
  void nucleus() {
    const double radius = random_.uniform(2, 3.6);
    blot(random_.uniform(0, kSlideSide), random_.uniform(0, kSlideSide), radius,
         radius * random_.uniform(0.6, 1), random_.uniform(0, 3.14),
         random_.below(4) ? shaded(kNucleus) : shaded(random_.below(2) ? kKernel : kPale));
  }
  Box cell() {
    const double radius = random_.uniform(6, 7.5), flat = random_.uniform(0.8, 1),
                 angle = random_.uniform(0, 3.14);
    const double cx = random_.uniform(radius + 1, kSlideSide - radius - 1),
                 cy = random_.uniform(radius + 1, kSlideSide - radius - 1);
    blot(cx, cy, radius, radius * flat, angle, shaded(kPale));
    blot(cx, cy, radius * 0.72, radius * 0.72 * flat, angle, shaded(kNucleus));
    blot(cx + random_.uniform(-1, 1), cy + random_.uniform(-1, 1), radius * 0.34, radius * 0.34, 0,
         shaded(kKernel));
    constexpr double kAll = kSlideSide;
    return {(cx - radius) / kAll, (cy - radius) / kAll, 2 * radius / kAll, 2 * radius / kAll};
  }
  Image take() {
    Image out{kSlideSide, kSlideSide, 3, {}};
    for (const Stain& stain : pixels_) {
      const double grain = random_.normal() * 6;
      for (const double value : stain)
        out.pixels.push_back(static_cast<uint8_t>(std::clamp(value + grain, 0.0, 255.0)));
    }
    return out;
  }

 private:
  Stain shaded(const Stain& stain) {
    const double light = random_.uniform(0.9, 1.08);
    return {stain[0] * light, stain[1] * light, stain[2] * light};
  }

  Random& random_;
  std::vector<Stain> pixels_;
};

}  // namespace

std::vector<Slide> generate_tissue(int64_t count, uint64_t seed) {
  std::vector<Slide> out;
  for (int64_t i = 0; i < count; ++i) {
    Random random(mix(seed, 0x715513 + static_cast<uint64_t>(i)));
    Section section(random);
    Slide& slide = out.emplace_back();
    slide.positive = i % 2 == 1;
    for (uint64_t n = 40 + random.below(30); n > 0; --n) section.nucleus();
    if (slide.positive)
      for (uint64_t n = 1 + random.below(2); n > 0; --n) slide.cells.push_back(section.cell());
    slide.image = section.take();
  }
  return out;
}

}  // namespace fovea::data
