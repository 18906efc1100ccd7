#include "data/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/pictures/image.h"
#include "data/files/limits.h"
#include "data/files/read.h"

namespace fovea::data {
namespace {

Pictures read_class_folders(const std::string& folder, int64_t side) {
  Pictures out{.side = side};
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw FileError(folder, 0, "expected a folder");
  for (const std::filesystem::path& entry : entries_of(folder))
    if (std::filesystem::is_directory(entry, error))
      out.classes.push_back(entry.filename().string());
  for (size_t label = 0; label < out.classes.size(); ++label) {
    const std::string of_class = (std::filesystem::path(folder) / out.classes[label]).string();
    const std::vector<std::string> files = image_files(of_class);
    if (files.empty())
      throw FileError(of_class, 0, "no PNG or JPEG in it, expected a class's pictures");
    for (const std::string& file : files) {
      if (out.labels.size() >= limit(Limit::kItems))
        throw FileError(folder, 0, beyond(Limit::kItems));
      const Image image = scaled(read_image(file), side);
      out.pixels.insert(out.pixels.end(), image.pixels.begin(), image.pixels.end());
      out.labels.push_back(static_cast<int64_t>(label));
    }
  }
  if (out.classes.size() < 2)
    throw FileError(folder, 0,
                    count_of(out.classes.size(), "folder",
                             " in it, expected MNIST's four IDX files or a folder of "
                             "PNG or JPEG files for each of at least two classes"));
  return out;
}

}  // namespace

Pictures pictures_of(const DigitSets& sets, const std::string& path) {
  if (sets.train.height != sets.train.width)
    throw FileError(path, 0,
                    fmt::format("pictures of {}, expected square ones", size_of(sets.train)));
  Pictures out{.channels = sets.train.channels,
               .side = sets.train.height,
               .pixels = sets.train.pixels,
               .labels = sets.train.labels,
               .own_test = sets.test.count};
  out.pixels.insert(out.pixels.end(), sets.test.pixels.begin(), sets.test.pixels.end());
  out.labels.insert(out.labels.end(), sets.test.labels.begin(), sets.test.labels.end());
  const int64_t most = *std::max_element(out.labels.begin(), out.labels.end());
  for (int64_t label = 0; label <= most; ++label) out.classes.push_back(std::to_string(label));
  return out;
}

DigitSets digit_sets_of(const Pictures& pictures) {
  const auto part = [&](int64_t from, int64_t to) {
    const int64_t size = pictures.picture_size();
    const auto pixels = pictures.pixels.begin();
    const auto labels = pictures.labels.begin();
    return Digits{.count = to - from,
                  .height = pictures.side,
                  .width = pictures.side,
                  .pixels = {pixels + from * size, pixels + to * size},
                  .labels = {labels + from, labels + to},
                  .channels = pictures.channels};
  };
  const int64_t learned_from = pictures.size() - pictures.own_test;
  return {part(0, learned_from), part(learned_from, pictures.size())};
}

Pictures read_pictures(const std::string& folder, int64_t side) {
  if (is_mnist_channels(folder)) return pictures_of(read_mnist_channels(folder), folder);
  if (is_mnist(folder)) return pictures_of(read_mnist(folder), folder);
  return read_class_folders(folder, side);
}

std::vector<uint8_t> read_picture(const std::string& path, int64_t channels, int64_t side) {
  std::error_code ignored;
  std::vector<std::string> files = {path};
  if (std::filesystem::is_directory(path, ignored)) files = image_files(path);
  if (static_cast<int64_t>(files.size()) != channels)
    throw FileError(path, 0,
                    count_of(files.size(), "picture",
                             fmt::format(", expected {}: one for each channel", channels)));
  std::vector<uint8_t> out;
  for (const std::string& file : files) {
    const Image image = scaled(read_image(file), side);
    out.insert(out.end(), image.pixels.begin(), image.pixels.end());
  }
  return out;
}

void arrange(Pictures& pictures, const Pictures& wanted, const std::string& path) {
  if (pictures.side != wanted.side || pictures.channels != wanted.channels)
    throw FileError(
        path, 0,
        fmt::format("pictures of {} x {} pixels and {} channels, expected {} x {} and {} "
                    "as in training",
                    pictures.side, pictures.side, pictures.channels, wanted.side, wanted.side,
                    wanted.channels));
  std::vector<int64_t> number;
  for (const std::string& name : pictures.classes) {
    const auto found = std::find(wanted.classes.begin(), wanted.classes.end(), name);
    if (found == wanted.classes.end())
      throw FileError(path, 0,
                      fmt::format("class {}, expected one that the run knows: {}", shown(name),
                                  listed(wanted.classes)));
    number.push_back(found - wanted.classes.begin());
  }
  for (int64_t& label : pictures.labels) label = number[static_cast<size_t>(label)];
  pictures.classes = wanted.classes;
}

}  // namespace fovea::data
