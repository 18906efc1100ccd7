#include "data/digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <vector>

#include "data/files/file.h"
#include "data/random.h"

namespace fovea::data {
namespace {

constexpr int64_t kSide = 28;

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

Stroke arc(double x, double y, double rx, double ry, double from, double to) {
  Stroke out;
  for (int i = 0; i <= 14; ++i) {
    const double angle = (from + (to - from) * i / 14) * 3.14159265358979 / 180;
    out.push_back({x + rx * std::cos(angle), y + ry * std::sin(angle)});
  }
  return out;
}

// Each digit as strokes, in a box from (-1, -1.4) to (1, 1.4), y downwards.
std::vector<Stroke> strokes_of(int64_t digit, bool other_form) {
  switch (digit) {
    case 0:
      return {arc(0, 0, 0.8, 1.25, 0, 360)};
    case 1:
      return other_form ? std::vector<Stroke>{{{0, -1.3}, {0, 1.3}}}
                        : std::vector<Stroke>{{{-0.5, -0.8}, {0, -1.3}, {0, 1.3}}};
    case 2: {
      Stroke s = arc(0, -0.6, 0.75, 0.7, 180, 385);
      s.insert(s.end(), {{-0.75, 1.25}, {0.8, 1.25}});
      return {s};
    }
    case 3:
      return {arc(-0.1, -0.65, 0.7, 0.62, 200, 440), arc(-0.1, 0.6, 0.8, 0.68, -80, 160)};
    case 4:
      return other_form ? std::vector<Stroke>{{{-0.6, -1.2}, {-0.7, 0.2}, {0.8, 0.2}},
                                              {{0.5, -1.1}, {0.45, 1.3}}}
                        : std::vector<Stroke>{{{0.4, 1.3}, {0.4, -1.3}, {-0.8, 0.4}, {0.85, 0.4}}};
    case 5: {
      Stroke s{{0.7, -1.25}, {-0.55, -1.25}, {-0.6, -0.2}};
      const Stroke belly = arc(-0.05, 0.5, 0.75, 0.75, -120, 150);
      s.insert(s.end(), belly.begin(), belly.end());
      return {s};
    }
    case 6:
      return {{{0.5, -1.3}, {-0.3, -0.6}, {-0.7, 0.3}}, arc(0, 0.6, 0.7, 0.68, 0, 360)};
    case 7:
      return other_form ? std::vector<Stroke>{{{-0.8, -1.2}, {0.8, -1.2}, {-0.2, 1.3}},
                                              {{-0.3, 0.1}, {0.6, 0.1}}}
                        : std::vector<Stroke>{{{-0.8, -1.2}, {0.8, -1.2}, {-0.2, 1.3}}};
    case 8:
      return {arc(0, -0.65, 0.58, 0.6, 0, 360), arc(0, 0.62, 0.72, 0.66, 0, 360)};
    default:
      return {arc(0, -0.5, 0.65, 0.7, 0, 360), {{0.65, -0.5}, {0.55, 0.5}, {0.2, 1.3}}};
  }
}

double distance(const Point& p, const Point& a, const Point& b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double t =
      length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

void draw(Random& random, int64_t digit, uint8_t* pixels) {
  const double angle = random.normal() * 0.12, slant = random.normal() * 0.15,
               scale = random.uniform(6.2, 7.8);
  const double squeeze = random.uniform(0.75, 1.1), pen = random.uniform(0.8, 1.6),
               bend = random.normal() * 0.12;
  const Point centre{13.5 + random.normal() * 0.8, 13.5 + random.normal() * 0.8};
  std::vector<Stroke> strokes = strokes_of(digit, random.below(2));
  for (Stroke& stroke : strokes)
    for (Point& p : stroke) {
      const double x = (p.x + slant * -p.y + bend * p.y * p.y + random.normal() * 0.025) * squeeze,
                   y = p.y + random.normal() * 0.025;
      p = {centre.x + scale * (x * std::cos(angle) - y * std::sin(angle)),
           centre.y + scale * (x * std::sin(angle) + y * std::cos(angle))};
    }
  std::array<double, kSide * kSide> ink{};
  for (const Stroke& stroke : strokes)
    for (size_t i = 0; i + 1 < stroke.size(); ++i) {
      const Point &a = stroke[i], &b = stroke[i + 1];
      const double reach = pen + 1;
      for (int64_t y = std::max<int64_t>(0, static_cast<int64_t>(std::min(a.y, b.y) - reach));
           y < std::min<int64_t>(kSide, static_cast<int64_t>(std::max(a.y, b.y) + reach) + 1); ++y)
        for (int64_t x = std::max<int64_t>(0, static_cast<int64_t>(std::min(a.x, b.x) - reach));
             x < std::min<int64_t>(kSide, static_cast<int64_t>(std::max(a.x, b.x) + reach) + 1);
             ++x) {
          double& at = ink[static_cast<size_t>(y * kSide + x)];
          at = std::max(
              at, std::clamp(
                      pen + 0.5 - distance({static_cast<double>(x), static_cast<double>(y)}, a, b),
                      0.0, 1.0));
        }
    }
  for (size_t i = 0; i < ink.size(); ++i)
    pixels[i] = static_cast<uint8_t>(
        std::clamp(ink[i] * 255 + (ink[i] > 0 ? random.normal() * 12 : 0), 0.0, 255.0));
}

std::string found(const std::filesystem::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"})
    if (std::filesystem::exists(folder / (name + ending), ignored))
      return (folder / (name + ending)).string();
  return "";
}

constexpr const char* kPlain = "idx3-ubyte";
constexpr const char* kChannels = "idx4-ubyte";

// The four files, their pictures read by `read`.
DigitSets read_sets(const std::string& folder, const std::string& ending,
                    Digits (*read)(const std::string&, const std::string&)) {
  const auto file = [&](const std::string& name) {
    const std::string path = found(folder, name);
    if (path.empty())
      throw FileError(folder, 0,
                      fmt::format("no {}, expected MNIST's four IDX files (gzip or not)", name));
    return path;
  };
  const std::string test = "t10k-images-" + ending;
  DigitSets out{read(file("train-images-" + ending), file("train-labels-idx1-ubyte")),
                read(file(test), file("t10k-labels-idx1-ubyte"))};
  if (out.test.height != out.train.height || out.test.width != out.train.width ||
      out.test.channels != out.train.channels)
    throw FileError(file(test), 0,
                    fmt::format("pictures of {}, expected {} as in training", size_of(out.test),
                                size_of(out.train)));
  return out;
}

}  // namespace

std::string size_of(const Digits& pictures) {
  return fmt::format("{} x {} pixels{}", pictures.height, pictures.width,
                     pictures.channels > 1 ? fmt::format(", {} channels", pictures.channels) : "");
}

bool is_mnist(const std::string& folder) {
  return !found(folder, std::string("train-images-") + kPlain).empty();
}
bool is_mnist_channels(const std::string& folder) {
  return !found(folder, std::string("train-images-") + kChannels).empty();
}

DigitSets read_mnist(const std::string& folder) { return read_sets(folder, kPlain, read_digits); }
DigitSets read_mnist_channels(const std::string& folder) {
  return read_sets(folder, kChannels, read_channels);
}

std::map<std::string, std::string> mnist_files(const DigitSets& digits) {
  std::map<std::string, std::string> files;
  const auto add = [&](const std::string& part, const Digits& from) {
    std::vector<int64_t> shape = {from.count, from.height, from.width};
    if (from.channels > 1) shape.insert(shape.begin() + 1, from.channels);
    files[part + "-images-" + (from.channels > 1 ? kChannels : kPlain)] =
        idx_bytes({shape, from.pixels});
    files[part + "-labels-idx1-ubyte"] =
        idx_bytes({{from.count}, {from.labels.begin(), from.labels.end()}});
  };
  add("train", digits.train);
  add("t10k", digits.test);
  return files;
}

Digits generate_digits(int64_t count, uint64_t seed) {
  Random random(mix(seed, 0xD161));
  Digits out{.count = count,
             .height = kSide,
             .width = kSide,
             .pixels = std::vector<uint8_t>(static_cast<size_t>(count * kSide * kSide)),
             .labels = {}};
  for (int64_t i = 0; i < count; ++i) {
    out.labels.push_back(i % 10);
    draw(random, i % 10, out.pixels.data() + i * kSide * kSide);
  }
  return out;
}

DigitSets digits_of(const std::string& folder, int64_t train, int64_t test, uint64_t seed) {
  if (!folder.empty()) return read_mnist(folder);
  return {generate_digits(train, mix(seed, 1)), generate_digits(test, mix(seed, 2))};
}

namespace {
constexpr float kMean = 0.1307f, kDeviation = 0.3081f;  // of MNIST's pixels
}  // namespace

float normalised_pixel(float pixel) { return (pixel / 255.0f - kMean) / kDeviation; }

uint8_t pixel_of(float normalised) {
  return static_cast<uint8_t>(
      std::clamp((normalised * kDeviation + kMean) * 255.0f + 0.5f, 0.0f, 255.0f));
}

void normalised_digit(const Digits& digits, int64_t which, float* to, Move move) {
  const int64_t height = digits.height, width = digits.width;
  const uint8_t* from = digits.pixels.data() + which * height * width;
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < width; ++column) {
      const int64_t y = row - move.down, x = column - move.right;
      const bool inside = y >= 0 && y < height && x >= 0 && x < width;
      const float pixel = inside ? static_cast<float>(from[y * width + x]) : 0.0f;
      to[row * width + column] = normalised_pixel(pixel);
    }
}

}  // namespace fovea::data
