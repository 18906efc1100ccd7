#include "data/captions/collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/files/file.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

constexpr std::array<std::string_view, 7> kSplits = {"train", "restval",    "val", "dev",
                                                     "valid", "validation", "test"};
constexpr std::array<std::string_view, 7> kPictureNames = {
    "image", "image_name", "image_path", "picture", "file", "filename", "file_name"};
constexpr std::array<std::string_view, 2> kCaptionNames = {"caption", "captions"};
constexpr std::array<std::string_view, 6> kOtherNames = {"text",     "texts",     "comment",
                                                         "sentence", "sentences", "labels"};

template <size_t n>
bool is_among(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Captioned& Collection::of(const std::string& image, size_t line) {
  const std::string name(trimmed(image));
  if (name.empty()) throw FileError(path_, line, "no name of a picture");
  // A name leads to a file: it must not lead out of the folder.
  if (name.front() == '/' || name.starts_with("../") || name.find("/../") != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw FileError(path_, line,
                    fmt::format("picture {}, expected a name within the folder", shown(name)));
  const auto [place, is_new] = place_.emplace(name, items_.size());
  if (is_new) items_.push_back({.image = name, .captions = {}});
  return items_[place->second];
}

void Collection::add(const std::string& image, std::string_view caption, size_t line) {
  const std::string text(trimmed(caption));
  if (text.empty()) throw FileError(path_, line, fmt::format("{}: an empty caption", shown(image)));
  of(image, line).captions.push_back(text);
}

void Collection::set_split(Captioned& item, const std::string& split, size_t line) const {
  if (!is_split(split))
    throw FileError(path_, line,
                    fmt::format("split {}, expected train, val or test", shown(split)));
  if (!item.split.empty() && item.split != split)
    throw FileError(path_, line,
                    fmt::format("{} is in {}, and above in {}", shown(item.image), shown(split),
                                shown(item.split)));
  item.split = split;
}

std::vector<Captioned> Collection::take() {
  if (items_.empty()) throw FileError(path_, 0, "no captions in it");
  return std::move(items_);
}

bool is_split(std::string_view text) { return is_among(kSplits, text); }

std::optional<size_t> picture_column(const std::vector<std::string>& names) {
  for (const std::string_view wanted : kPictureNames)
    for (size_t i = 0; i < names.size(); ++i)
      if (lower_ascii(trimmed(names[i])) == wanted) return i;
  return std::nullopt;
}

std::vector<size_t> caption_columns(const std::vector<std::string>& names) {
  std::vector<size_t> captions, others;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = lower_ascii(trimmed(names[i]));
    while (!name.empty() && ((name.back() >= '0' && name.back() <= '9') || name.back() == '_'))
      name.pop_back();
    if (is_among(kCaptionNames, name)) captions.push_back(i);
    if (is_among(kOtherNames, name)) others.push_back(i);
  }
  return captions.empty() ? others : captions;
}

}  // namespace fovea::data
