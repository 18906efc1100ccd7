// Arrays of regions: what another tool made of each picture, so many vectors of so many numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/array.h"

namespace fovea::data {

inline constexpr int64_t kMostRegions = 4096, kWidestRegion = 65536;

struct Regions {
  Array array = {
      .type = ElementType::kFloat32, .shape = {0, 0, 0}, .bytes = {}};  // as the file has it
  std::vector<float> scales = {};  // of each of the numbers; empty: 1

  bool empty() const { return items() == 0; }
  int64_t items() const { return array.shape[0]; }
  int64_t regions() const { return array.shape[1]; }
  int64_t width() const { return array.shape[2]; }
  // Writes item's [regions, width].
  void copy(int64_t item, float* to) const;
  // Keeps these rows, in this order.
  void keep(const std::vector<int64_t>& rows);
};

// Whether the folder has arrays of regions.
bool has_regions(const std::string& folder);
// Those of `images`, in their order. One array for all has three dimensions, a picture's own file two,
// or a grid: height x width x numbers, or numbers x height x width if it is square. FileError: other
// dimensions, another number of rows, numbers that are not finite.
Regions read_regions(const std::string& folder, const std::vector<std::string>& images);

// A single picture's array: .npy, or the only array of a .safetensors file.
Regions read_region_file(const std::string& path);

}  // namespace fovea::data
