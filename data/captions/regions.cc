#include "data/captions/regions.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"

namespace fovea::data {
namespace {

namespace fs = std::filesystem;

std::string either(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"})
    if (fs::is_regular_file(folder / (name + ending), ignored))
      return (folder / (name + ending)).string();
  return "";
}

float from_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u, rest = half & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | rest << 13);
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(rest), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | rest << 13);
}

template <class T>
T element(const char* from) {
  T out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

float number_at(ElementType type, const char* from) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUInt8:
      return static_cast<float>(element<uint8_t>(from));
    case ElementType::kInt8:
      return static_cast<float>(element<int8_t>(from));
    case ElementType::kInt16:
      return static_cast<float>(element<int16_t>(from));
    case ElementType::kInt32:
      return static_cast<float>(element<int32_t>(from));
    case ElementType::kInt64:
      return static_cast<float>(element<int64_t>(from));
    case ElementType::kFloat16:
      return from_half(element<uint16_t>(from));
    case ElementType::kBFloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(element<uint16_t>(from)) << 16);
    case ElementType::kFloat32:
      return element<float>(from);
    default:
      return static_cast<float>(element<double>(from));
  }
}

// Of a grid of height x width. Where the array is empty, they may be any numbers.
int64_t regions_of(int64_t height, int64_t width, const std::string& path) {
  if (height > kMostRegions || width > kMostRegions)
    throw FileError(
        path, 0,
        fmt::format("a grid of {} x {} regions, expected at most {}", height, width, kMostRegions));
  return height * width;
}

void check_regions(const Regions& regions, const std::string& path) {
  if (regions.regions() < 1 || regions.regions() > kMostRegions || regions.width() < 1 ||
      regions.width() > kWidestRegion)
    throw FileError(path, 0,
                    fmt::format("{} regions of {} numbers, expected 1 to {} of 1 to {}",
                                regions.regions(), regions.width(), kMostRegions, kWidestRegion));
  const size_t size = size_of(regions.array.type);
  for (size_t i = 0; i < regions.array.bytes.size() / size; ++i)
    if (!std::isfinite(number_at(regions.array.type, regions.array.bytes.data() + i * size)))
      throw FileError(path, 0, fmt::format("number {} is not finite", i));
}

// Flickr8k's: signed bytes, 49 regions for each picture, a scale for each number.
Regions read_bytes_with_scales(const std::string& path, const std::string& folder, size_t images) {
  Regions out;
  const std::string scales = either(folder, "regions.scale.txt");
  if (scales.empty())
    throw FileError(folder, 0, "no regions.scale.txt, expected one beside " + path);
  const std::string text = read_file(scales);
  each_line(std::string_view(text), scales, [&](size_t number, std::string_view line) {
    if (line.empty()) return;
    out.scales.push_back(parse_float(line, "scale", scales, number));
    if (!std::isfinite(out.scales.back() * 128))
      throw FileError(scales, number, "scale: expected a number whose 128-fold is finite");
  });
  out.array.type = ElementType::kInt8;
  out.array.bytes = read_file(path);
  const size_t row = images * out.scales.size();
  if (row == 0 || out.array.bytes.size() % row != 0 || out.array.bytes.empty())
    throw FileError(path, 0,
                    fmt::format("{} bytes, expected a multiple of {} pictures x {} numbers",
                                out.array.bytes.size(), images, out.scales.size()));
  out.array.shape = {static_cast<int64_t>(images),
                     static_cast<int64_t>(out.array.bytes.size() / row),
                     static_cast<int64_t>(out.scales.size())};
  check_regions(out, path);
  return out;
}

Array array_of(const std::string& path) {
  const std::string bytes = read_file(path);
  if (!path.ends_with(".safetensors")) return parse_npy(bytes, path);
  Safetensors content = parse_safetensors(bytes, path);
  if (content.arrays.contains("regions")) return std::move(content.arrays.at("regions"));
  if (content.arrays.size() != 1)
    throw FileError(
        path, 0,
        fmt::format("{} arrays, expected one, or one named \"regions\"", content.arrays.size()));
  return std::move(content.arrays.begin()->second);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return shape.empty() ? "a single number" : fmt::format("{}", fmt::join(shape, " x "));
}

// The last three sizes are height x width x numbers, or numbers x height x width as convolutions of
// libtorch leave them: of a square grid with more numbers than rows one sees which.
void lay_out(Array& array, const std::string& path) {
  const size_t first = array.shape.size() - 3;
  const int64_t a = array.shape[first], b = array.shape[first + 1], c = array.shape[first + 2];
  array.shape.resize(first);
  if (b != c || a <= b) {
    array.shape.push_back(regions_of(a, b, path));
    array.shape.push_back(c);
    return;
  }
  const int64_t regions = regions_of(b, c, path);
  array.shape.push_back(regions);
  array.shape.push_back(a);
  if (array.bytes.empty()) return;  // of any sizes
  const size_t size = size_of(array.type), picture = static_cast<size_t>(a * regions) * size;
  std::string bytes(array.bytes.size(), '\0');
  for (size_t start = 0; start < bytes.size(); start += picture)
    for (int64_t number = 0; number < a; ++number)
      for (int64_t region = 0; region < regions; ++region)
        array.bytes.copy(bytes.data() + start + static_cast<size_t>(region * a + number) * size,
                         size, start + static_cast<size_t>(number * regions + region) * size);
  array.bytes = std::move(bytes);
}

Regions stacked(Array array, const std::string& path, size_t images) {
  if (array.shape.size() == 4) lay_out(array, path);
  if (array.shape.size() != 3 || array.shape[0] != static_cast<int64_t>(images))
    throw FileError(path, 0,
                    fmt::format("an array of {}, expected {} pictures x regions x numbers",
                                shape_text(array.shape), images));
  Regions out{.array = std::move(array), .scales = {}};
  check_regions(out, path);
  return out;
}

// An array of its own for each picture, as `find` has it. Two pictures never share one: train/1.jpg and
// test/1.jpg have one stem, and what is small in the file could grow without end.
struct Found {
  std::string name;
  Array array;
};
Regions one_by_one(const std::string& path, const std::vector<std::string>& images,
                   const std::function<Found(const std::string&)>& find) {
  Regions out;
  std::map<std::string, std::string> owners;
  for (const std::string& image : images) {
    auto [name, one] = find(image);
    const auto [owner, is_new] = owners.emplace(name, image);
    if (!is_new)
      throw FileError(
          path, 0,
          fmt::format("array {} is that of {} and of {}, expected one for each picture, "
                      "under its whole name",
                      shown(name), shown(owner->second), shown(image)));
    if (one.shape.size() == 3) lay_out(one, path);
    if (one.shape.size() != 2)
      throw FileError(path, 0,
                      fmt::format("array {} of {}, expected regions x numbers", shown(image),
                                  shape_text(one.shape)));
    if (out.empty()) {
      out.array.type = one.type;
      out.array.shape = {0, one.shape[0], one.shape[1]};
    }
    if (one.type != out.array.type || one.shape[0] != out.regions() || one.shape[1] != out.width())
      throw FileError(path, 0,
                      fmt::format("array {} of {}, expected {} x {} numbers of one type as in the "
                                  "first",
                                  shown(image), shape_text(one.shape), out.regions(), out.width()));
    out.array.bytes += one.bytes;
    ++out.array.shape[0];
    // Of files that are packed, many small ones are as large as one large one.
    if (out.array.bytes.size() > limit(Limit::kFile))
      throw FileError(path, 0, "arrays of " + beyond(Limit::kFile));
  }
  check_regions(out, path);
  return out;
}

// What an array of train/1.jpg may be named: train/1.jpg, train/1 or 1.
std::vector<std::string> names_for(const std::string& image) {
  return {image, fs::path(image).replace_extension().string(), fs::path(image).stem().string()};
}

Regions by_name(std::map<std::string, Array>& arrays, const std::string& path,
                const std::vector<std::string>& images) {
  return one_by_one(path, images, [&](const std::string& image) -> Found {
    for (const std::string& name : names_for(image))
      if (const auto found = arrays.find(name); found != arrays.end())
        return {name, std::exchange(found->second, {})};
    throw FileError(path, 0,
                    fmt::format("no array {}, expected one for each picture", shown(image)));
  });
}

Regions of_folder(const fs::path& folder, const std::vector<std::string>& images) {
  return one_by_one(folder.string(), images, [&](const std::string& image) -> Found {
    for (const std::string& name : names_for(image))
      if (const std::string path = either(folder, name + ".npy"); !path.empty())
        return {name, parse_npy(read_file(path), path)};
    throw FileError(
        folder.string(), 0,
        fmt::format("no {}, expected an array for each picture", shown(image + ".npy")));
  });
}

}  // namespace

void Regions::copy(int64_t item, float* to) const {
  const size_t size = size_of(array.type);
  const int64_t count = regions() * width();
  const char* from = array.bytes.data() + static_cast<size_t>(item * count) * size;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = number_at(array.type, from + static_cast<size_t>(i) * size);
    if (!scales.empty()) to[i] *= scales[static_cast<size_t>(i % width())];
  }
}

void Regions::keep(const std::vector<int64_t>& rows) {
  const size_t row = static_cast<size_t>(regions() * width()) * size_of(array.type);
  std::string bytes;
  bytes.reserve(row * rows.size());
  for (const int64_t i : rows) bytes.append(array.bytes, static_cast<size_t>(i) * row, row);
  array.bytes = std::move(bytes);
  array.shape[0] = static_cast<int64_t>(rows.size());
}

bool has_regions(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {"regions.i8", "regions.npy", "regions.safetensors"})
    if (!either(folder, name).empty()) return true;
  return fs::is_directory(fs::path(folder) / "regions", ignored);
}

Regions read_regions(const std::string& folder, const std::vector<std::string>& images) {
  if (const std::string path = either(folder, "regions.i8"); !path.empty())
    return read_bytes_with_scales(path, folder, images.size());
  if (const std::string path = either(folder, "regions.npy"); !path.empty())
    return stacked(parse_npy(read_file(path), path), path, images.size());
  if (const std::string path = either(folder, "regions.safetensors"); !path.empty()) {
    Safetensors content = parse_safetensors(read_file(path), path);
    const bool alone = content.arrays.size() == 1 && images.size() > 1;
    const auto found = alone ? content.arrays.begin() : content.arrays.find("regions");
    if (found != content.arrays.end())
      return stacked(std::move(found->second), path, images.size());
    return by_name(content.arrays, path, images);
  }
  return of_folder(fs::path(folder) / "regions", images);
}

Regions read_region_file(const std::string& path) {
  Array array = array_of(path);
  if (array.shape.size() == 3) lay_out(array, path);
  if (array.shape.size() == 2) array.shape.insert(array.shape.begin(), 1);
  return stacked(std::move(array), path, 1);
}

}  // namespace fovea::data
