#include "systems/deep_sets/digits.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "data/files/file.h"
#include "data/split.h"

namespace fovea::systems::deep_sets {

data::DigitSets digits_from(const std::string& path, uint64_t seed, const std::string& instead) {
  std::error_code ignored;
  if (!path.empty() && !std::filesystem::exists(path, ignored))
    throw data::FileError(path, 0, "no such folder, expected MNIST's four IDX files in it");
  if (!path.empty() && !std::filesystem::is_directory(path, ignored))
    throw data::FileError(
        path, 0, fmt::format("a file, expected a folder with MNIST's four IDX files; {}", instead));
  return data::digits_of(path, 4000, 2000, seed);
}

std::vector<uint64_t> keys_of(const data::Digits& pictures) {
  const auto size = static_cast<size_t>(pictures.height * pictures.width);
  const std::string_view pixels(reinterpret_cast<const char*>(pictures.pixels.data()),
                                pictures.pixels.size());
  std::vector<uint64_t> out;
  for (int64_t i = 0; i < pictures.count; ++i)
    out.push_back(data::item_key(pixels.substr(static_cast<size_t>(i) * size, size)));
  return out;
}

data::FileError other_size(const std::string& path, int64_t found, int64_t trained) {
  return {path, 0,
          fmt::format("pictures of {0} x {0} pixels, expected {1} x {1} as in training", found,
                      trained)};
}

std::string fixed(double value, int decimals) {
  std::string out = fmt::format("{:.{}f}", value, decimals);
  if (out.starts_with('-') && out.find_first_not_of("-0.") == std::string::npos) out.erase(0, 1);
  return out;
}

}  // namespace fovea::systems::deep_sets
