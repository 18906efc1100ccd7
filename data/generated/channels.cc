#include "data/generated/channels.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/pictures/image.h"
#include "data/random.h"

namespace fovea::data {
namespace {

constexpr int64_t kChannelSide = 14;
constexpr int kMarkedGround =
    60;  // of 255: how much brighter the ground of the channel that counts is

// Digits are drawn at 28 x 28 and made smaller.
Digits channel_pictures(int64_t channels, int64_t count, uint64_t seed,
                        std::vector<int64_t>& useful) {
  Random random(mix(seed, 3));
  const Digits digits = generate_digits(10 * 200, seed);
  Digits out{.count = count, .height = kChannelSide, .width = kChannelSide, .channels = channels};
  for (int64_t item = 0; item < count; ++item) {
    const auto marked = static_cast<int64_t>(random.below(static_cast<uint64_t>(channels)));
    useful.push_back(marked);
    for (int64_t channel = 0; channel < channels; ++channel) {
      const auto which = static_cast<int64_t>(random.below(static_cast<uint64_t>(digits.count)));
      const auto* from = digits.pixels.data() + which * digits.height * digits.width;
      const Image small = scaled({.width = digits.width,
                                  .height = digits.height,
                                  .pixels = {from, from + digits.height * digits.width}},
                                 kChannelSide);
      for (const uint8_t ink : small.pixels)
        out.pixels.push_back(
            static_cast<uint8_t>(ink * 3 / 4 + (channel == marked ? kMarkedGround : 0)));
      if (channel == marked) out.labels.push_back(digits.labels[static_cast<size_t>(which)]);
    }
  }
  return out;
}

}  // namespace

std::string truth_lines(const std::vector<int64_t>& useful, int64_t train) {
  std::string out;
  for (int64_t i = 0; i < static_cast<int64_t>(useful.size()); ++i)
    out += fmt::format("{{\"file\":\"{}\",\"picture\":{},\"channel\":{}}}\n",
                       i < train ? "train" : "t10k", i < train ? i : i - train,
                       useful[static_cast<size_t>(i)]);
  return out;
}

MarkedChannels generate_channels(int64_t channels, int64_t train, int64_t test, uint64_t seed) {
  MarkedChannels out;
  out.sets.train = channel_pictures(channels, train, mix(seed, 1), out.useful);
  out.sets.test = channel_pictures(channels, test, mix(seed, 2), out.useful);
  return out;
}

}  // namespace fovea::data
