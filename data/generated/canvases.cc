#include "data/generated/canvases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "data/random.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

constexpr std::array<const char*, 10> kNames = {"zero", "one", "two",   "three", "four",
                                                "five", "six", "seven", "eight", "nine"};
constexpr uint8_t kInk = 24;       // fainter pixels are no part of a digit
constexpr double kClear = 4;       // pixels between "above" and "beside"
constexpr double kTogether = 0.8;  // how often a digit's companion comes with it
constexpr int64_t kMostOnCanvas = 4;

struct Place {
  int64_t left = 0, top = 0, width = 0, height = 0;  // pixels
  double x() const { return static_cast<double>(left) + static_cast<double>(width) / 2; }
  double y() const { return static_cast<double>(top) + static_cast<double>(height) / 2; }
};

// Some pictures of each digit, the first `count` of `digits` from `first` on.
class Pool {
 public:
  Pool(const Digits& digits, int64_t first, int64_t count) : digits_(digits), of_(kNames.size()) {
    for (int64_t i = first; i < first + count; ++i)
      of_[static_cast<size_t>(digits.labels[static_cast<size_t>(i)])].push_back(i);
    for (size_t d = 0; d < of_.size(); ++d)
      if (of_[d].empty())
        throw InvalidArgument(fmt::format("digits: no {}, expected each of ten", kNames[d]));
  }

  struct Picture {
    int64_t which = 0;
    Place ink;
  };
  Picture draw(int64_t digit, Random& random) const {
    Picture out{.which = random.choice(of_[static_cast<size_t>(digit)]), .ink = {}};
    out.ink = ink_of(out.which);
    return out;
  }
  uint8_t at(int64_t which, int64_t x, int64_t y) const {
    return digits_.pixels[static_cast<size_t>((which * digits_.height + y) * digits_.width + x)];
  }

 private:
  Place ink_of(int64_t which) const {
    int64_t left = digits_.width, top = digits_.height, right = -1, bottom = -1;
    for (int64_t y = 0; y < digits_.height; ++y)
      for (int64_t x = 0; x < digits_.width; ++x)
        if (at(which, x, y) >= kInk) {
          left = std::min(left, x), right = std::max(right, x);
          top = std::min(top, y), bottom = std::max(bottom, y);
        }
    if (right < 0) return {0, 0, digits_.width, digits_.height};  // a blank picture
    return {left, top, right - left + 1, bottom - top + 1};
  }

  const Digits& digits_;
  std::vector<std::vector<int64_t>> of_;
};

int64_t overlap(const Place& a, const Place& b) {
  const int64_t across = std::min(a.left + a.width, b.left + b.width) - std::max(a.left, b.left),
                down = std::min(a.top + a.height, b.top + b.height) - std::max(a.top, b.top);
  return std::max<int64_t>(0, std::min(across, down));
}

bool is_above(const Place& a, const Place& b) {
  return std::fabs(a.y() - b.y()) > std::fabs(a.x() - b.x());
}
bool comes_first(const Place& a, const Place& b) {
  return is_above(a, b) ? a.y() < b.y() : a.x() < b.x();
}
bool clear(const Place& a, const Place& b) {
  return std::fabs(std::fabs(a.y() - b.y()) - std::fabs(a.x() - b.x())) >= kClear;
}

// Places for pictures of these sizes; none where the tries did not find any.
std::optional<std::vector<Place>> placed(const std::vector<Pool::Picture>& pictures, int64_t side,
                                         Random& random) {
  constexpr int kTries = 40;
  std::vector<Place> out;
  for (const Pool::Picture& picture : pictures) {
    bool found = false;
    for (int i = 0; i < kTries && !found; ++i) {
      Place place = picture.ink;
      place.left =
          static_cast<int64_t>(random.below(static_cast<uint64_t>(side - place.width) + 1));
      place.top =
          static_cast<int64_t>(random.below(static_cast<uint64_t>(side - place.height) + 1));
      found = std::all_of(out.begin(), out.end(), [&](const Place& other) {
        return overlap(place, other) <= kMostOverlap;
      });
      if (found) out.push_back(place);
    }
    if (!found) return std::nullopt;
  }
  return out;
}

// The order in which digits are told: each comes before all that follow. None where two of them are
// neither clearly above nor clearly beside each other, or where the order runs in a circle.
std::optional<std::vector<size_t>> told(const std::vector<Place>& places) {
  std::vector<size_t> out(places.size(), places.size());
  for (size_t a = 0; a < places.size(); ++a) {
    size_t before = 0;
    for (size_t b = 0; b < places.size(); ++b) {
      if (a == b) continue;
      if (!clear(places[a], places[b])) return std::nullopt;
      before += comes_first(places[b], places[a]);
    }
    if (out[before] != places.size()) return std::nullopt;
    out[before] = a;
  }
  return out;
}

std::vector<int64_t> any_digits(int64_t count, Random& random) {
  std::vector<int64_t> all(kNames.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  random.shuffle(all);
  all.resize(static_cast<size_t>(count));
  return all;
}

std::vector<int64_t> digits_in_pairs(int64_t count, Random& random) {
  std::vector<int64_t> out;
  const auto is_new = [&](int64_t digit) {
    return std::find(out.begin(), out.end(), digit) == out.end();
  };
  while (static_cast<int64_t>(out.size()) < count) {
    const auto digit = static_cast<int64_t>(random.below(kNames.size()));
    if (is_new(digit)) out.push_back(digit);
    const int64_t companion = (digit + 5) % static_cast<int64_t>(kNames.size());
    if (random.uniform() < kTogether && static_cast<int64_t>(out.size()) < count &&
        is_new(companion))
      out.push_back(companion);
  }
  return out;
}

enum class Use { kCaptions, kSets };

Canvas draw(const CanvasPlan& plan, Use use, const Pool& pool, Random& random) {
  const int64_t count =
      plan.least +
      static_cast<int64_t>(random.below(static_cast<uint64_t>(plan.most - plan.least) + 1));
  const std::vector<int64_t> digits =
      use == Use::kSets ? digits_in_pairs(count, random) : any_digits(count, random);
  for (;;) {
    std::vector<Pool::Picture> pictures;
    for (const int64_t digit : digits) pictures.push_back(pool.draw(digit, random));
    const auto places = placed(pictures, plan.side, random);
    if (!places) continue;
    std::optional<std::vector<size_t>> order(digits.size());
    for (size_t i = 0; i < digits.size(); ++i) (*order)[i] = i;
    if (use == Use::kCaptions) order = told(*places);
    if (!order) continue;
    Canvas out{.pixels = std::vector<uint8_t>(static_cast<size_t>(plan.side * plan.side)),
               .digits = {},
               .boxes = {}};
    const auto share = [&](int64_t pixels) {
      return static_cast<double>(pixels) / static_cast<double>(plan.side);
    };
    for (const size_t i : *order) {
      const Place &to = (*places)[i], &from = pictures[i].ink;
      for (int64_t y = 0; y < to.height; ++y)
        for (int64_t x = 0; x < to.width; ++x) {
          uint8_t& pixel = out.pixels[static_cast<size_t>((to.top + y) * plan.side + to.left + x)];
          pixel = std::max(pixel, pool.at(pictures[i].which, from.left + x, from.top + y));
        }
      out.digits.push_back(digits[i]);
      out.boxes.push_back({share(to.left), share(to.top), share(to.width), share(to.height)});
    }
    return out;
  }
}

Canvases canvases(const CanvasPlan& plan, Use use, const DigitSets& from) {
  if (plan.side < std::max(from.train.height, from.train.width) || plan.side > kWidestPicture)
    throw InvalidArgument(fmt::format("side: {}, expected {} to {}", plan.side,
                                      std::max(from.train.height, from.train.width),
                                      kWidestPicture));
  if (plan.least < 0 || plan.least > plan.most || plan.most > kMostOnCanvas)
    throw InvalidArgument(
        fmt::format("digits: {} to {}, expected 0 to {}", plan.least, plan.most, kMostOnCanvas));
  // Three digits fit on a side and a half of a digit; four would be tried for ever.
  if (plan.most > 3 && plan.side < 2 * std::max(from.train.height, from.train.width))
    throw InvalidArgument(fmt::format("side: {}, expected at least {} for four digits", plan.side,
                                      2 * std::max(from.train.height, from.train.width)));
  const int64_t kept = from.train.count / 10;
  const Pool train(from.train, 0, from.train.count - kept),
      validation(from.train, from.train.count - kept, kept), test(from.test, 0, from.test.count);
  Canvases out{.side = plan.side, .items = {}, .splits = in_order(plan.parts)};
  Random random(mix(plan.seed, use == Use::kSets ? 0x5E75 : 0xCA97));
  for (int64_t i = 0; i < plan.parts.all(); ++i) {
    const Pool& pool = i < plan.parts.train                           ? train
                       : i < plan.parts.train + plan.parts.validation ? validation
                                                                      : test;
    out.items.push_back(draw(plan, use, pool, random));
  }
  return out;
}

Place in_pixels(const Box& box) {  // of a large picture: only comparisons follow
  constexpr double kPixels = 1e6;
  return {std::lround(box.left * kPixels), std::lround(box.top * kPixels),
          std::lround(box.width * kPixels), std::lround(box.height * kPixels)};
}

}  // namespace

Canvases caption_canvases(const CanvasPlan& plan, const DigitSets& from) {
  if (plan.least < 1) throw InvalidArgument("digits: 0, expected at least 1 to tell of");
  return canvases(plan, Use::kCaptions, from);
}
Canvases set_canvases(const CanvasPlan& plan, const DigitSets& from) {
  return canvases(plan, Use::kSets, from);
}

const char* digit_name(int64_t digit) { return kNames.at(static_cast<size_t>(digit)); }

std::string caption_of(const Canvas& canvas) {
  std::string out;
  for (size_t i = 0; i < canvas.digits.size(); ++i) {
    if (i > 0)
      out += is_above(in_pixels(canvas.boxes[i - 1]), in_pixels(canvas.boxes[i])) ? " above "
                                                                                  : " left of ";
    const char* name = digit_name(canvas.digits[i]);
    out += fmt::format("{} {}", canvas.digits[i] == 8 ? "an" : "a", name);
  }
  return out;
}

std::vector<uint8_t> in_colour(const Canvas& canvas) {
  std::vector<uint8_t> out;
  out.reserve(canvas.pixels.size() * 3);
  for (const uint8_t pixel : canvas.pixels) out.insert(out.end(), 3, pixel);
  return out;
}

}  // namespace fovea::data
