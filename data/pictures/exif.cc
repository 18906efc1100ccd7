#include "data/pictures/exif.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace fovea::data {
namespace {

// Numbers of a TIFF block, in its own byte order; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}
  uint32_t number(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    uint32_t out = 0;
    for (size_t i = 0; i < size; ++i)
      out = out << 8 | static_cast<uint8_t>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return out;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

}  // namespace

int exif_orientation(std::string_view tiff) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3;
  if (!tiff.starts_with("II") && !tiff.starts_with("MM")) return 1;
  const Tiff block(tiff);
  if (block.number(2, 2) != 42) return 1;
  const size_t list = block.number(4, 4);
  for (uint32_t i = 0; i < block.number(list, 2); ++i) {
    const size_t entry = list + 2 + size_t{12} * i;
    if (entry > tiff.size()) return 1;
    if (block.number(entry, 2) != kOrientation || block.number(entry + 2, 2) != kShort) continue;
    const uint32_t value = block.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

std::string_view png_exif(std::string_view png) {
  constexpr size_t kSignature = 8, kFrame = 12;  // length, name, checksum
  const auto length_at = [&](size_t at) {
    size_t out = 0;
    for (size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<uint8_t>(png[at + i]);
    return out;
  };
  for (size_t at = kSignature; at + kFrame <= png.size();) {
    const size_t length = length_at(at);
    if (length > png.size() - at - kFrame) break;
    if (png.substr(at + 4, 4) == "eXIf") return png.substr(at + 8, length);
    at += kFrame + length;
  }
  return {};
}

Image upright(Image stored, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  const bool turned = orientation >= 5;  // rows were columns
  const bool mirrored =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool upside_down =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image out{turned ? stored.height : stored.width, turned ? stored.width : stored.height,
            stored.channels, std::vector<uint8_t>(stored.pixels.size())};
  const auto channels = static_cast<size_t>(stored.channels);
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      int64_t u = turned ? y : x, v = turned ? x : y;
      if (mirrored) u = stored.width - 1 - u;
      if (upside_down) v = stored.height - 1 - v;
      std::copy_n(stored.pixels.data() + static_cast<size_t>(v * stored.width + u) * channels,
                  channels, out.pixels.data() + static_cast<size_t>(y * out.width + x) * channels);
    }
  return out;
}

}  // namespace fovea::data
