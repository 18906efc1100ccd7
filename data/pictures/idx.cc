#include "data/pictures/idx.h"

#include <fmt/format.h>

#include "data/files/file.h"

namespace fovea::data {

Idx read_idx(const std::string& path) {
  const std::string bytes = read_file(path);
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0)
    throw FileError(path, 0, "expected an IDX file, which starts with two zero bytes");
  if (byte(2) != 0x08)
    throw FileError(path, 0,
                    fmt::format("IDX type {:#04x}, expected 0x08 (unsigned bytes)", byte(2)));
  const size_t rank = byte(3);
  const size_t header = 4 + 4 * rank;
  if (rank == 0 || bytes.size() < header)
    throw FileError(path, 0, fmt::format("IDX header cut short: expected {} bytes", header));
  Idx out;
  uint64_t total = 1;
  for (size_t d = 0; d < rank; ++d) {
    const uint64_t size = uint64_t{byte(4 + 4 * d)} << 24 | uint64_t{byte(5 + 4 * d)} << 16 |
                          uint64_t{byte(6 + 4 * d)} << 8 | byte(7 + 4 * d);
    out.shape.push_back(static_cast<int64_t>(size));
    if (size && total > (uint64_t{1} << 40) / size)
      throw FileError(path, 0, "IDX shape out of range");
    total *= size;
  }
  if (bytes.size() - header != total)
    throw FileError(path, 0,
                    fmt::format("{} values after the header, expected {} as its shape says",
                                bytes.size() - header, total));
  out.values.assign(bytes.begin() + static_cast<ptrdiff_t>(header), bytes.end());
  return out;
}

std::string idx_bytes(const Idx& idx) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(idx.shape.size())};
  for (const int64_t size : idx.shape)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift & 0xFF);
  out.append(idx.values.begin(), idx.values.end());
  return out;
}

namespace {

// `sizes` says what the images' dimensions are; the last two are height and width.
Digits labelled(const std::string& images_path, const std::string& labels_path, size_t rank,
                const char* sizes) {
  Idx images = read_idx(images_path);
  const Idx labels = read_idx(labels_path);
  if (images.shape.size() != rank)
    throw FileError(
        images_path, 0,
        fmt::format("{} dimensions, expected {}: {}", images.shape.size(), rank, sizes));
  if (labels.shape.size() != 1)
    throw FileError(labels_path, 0, fmt::format("{} dimensions, expected 1", labels.shape.size()));
  if (images.shape[0] != labels.shape[0])
    throw FileError(labels_path, 0,
                    fmt::format("{} labels, expected {} as in {}", labels.shape[0], images.shape[0],
                                images_path));
  if (images.shape[0] == 0) throw FileError(images_path, 0, "0 pictures, expected at least one");
  const int64_t height = images.shape[rank - 2], width = images.shape[rank - 1],
                channels = rank == 4 ? images.shape[1] : 1;
  for (const int64_t side : {height, width})
    if (side < 1 || side > kWidestPicture)
      throw FileError(images_path, 0,
                      fmt::format("pictures of {} x {} pixels, expected 1 to {} each way", height,
                                  width, kWidestPicture));
  if (channels < 1 || channels > kMostChannels)
    throw FileError(images_path, 0,
                    fmt::format("{} channels, expected 1 to {}", channels, kMostChannels));
  Digits out{images.shape[0], height, width, std::move(images.values), {}, channels};
  for (size_t i = 0; i < labels.values.size(); ++i) {
    if (labels.values[i] > 9)
      throw FileError(labels_path, 0,
                      fmt::format("label {} of item {}, expected 0 to 9", labels.values[i], i));
    out.labels.push_back(labels.values[i]);
  }
  return out;
}

}  // namespace

Digits read_digits(const std::string& images_path, const std::string& labels_path) {
  return labelled(images_path, labels_path, 3, "images, height, width");
}

Digits read_channels(const std::string& images_path, const std::string& labels_path) {
  return labelled(images_path, labels_path, 4, "images, channels, height, width");
}

}  // namespace fovea::data
