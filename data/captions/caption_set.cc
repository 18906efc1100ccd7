#include "data/captions/caption_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <set>

#include "data/files/file.h"
#include "data/files/read.h"
#include "data/formats/text.h"
#include "data/pictures/picture_questions.h"

namespace fovea::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 5> kEndings = {".tsv", ".txt", ".csv", ".jsonl", ".json"};
constexpr const char* kThumbnails = "thumbs_test";  // thumbs_test100_96x96.rgb.gz

std::string without_gz(const fs::path& path) {
  return path.extension() == ".gz" ? path.stem().string() : path.filename().string();
}

std::string caption_file(const std::string& folder) {
  std::vector<std::string> others;
  for (const fs::path& path : entries_of(folder)) {
    const std::string name = without_gz(path);
    const bool known = std::any_of(kEndings.begin(), kEndings.end(),
                                   [&](const char* ending) { return name.ends_with(ending); });
    if (!known || fs::is_directory(path)) continue;
    if (name.starts_with("captions.")) return path.string();
    if (!name.ends_with(".scale.txt")) others.push_back(path.string());
  }
  if (others.size() == 1) return others.front();
  throw FileError(folder, 0,
                  others.empty() ? "expected captions.tsv, .txt, .csv, .json or .jsonl in it"
                                 : fmt::format("{} files that may hold captions, expected one, or "
                                               "captions.tsv, .txt, .csv, .json or .jsonl",
                                               others.size()));
}

bool has_picture(const std::string& folder, const std::string& image) {
  const size_t mark = image.rfind(".idx#");
  std::error_code ignored;
  return fs::is_regular_file(
      fs::path(folder) / (mark == std::string::npos ? image : image.substr(0, mark + 4)), ignored);
}

std::string pictures_beside(const std::string& folder, const std::vector<Captioned>& items) {
  for (const char* name : {"images", "Images", "pictures"}) {
    const fs::path inner = fs::path(folder) / name;
    std::error_code ignored;
    if (!fs::is_directory(inner, ignored)) continue;
    for (const Captioned& item : items)
      if (has_picture(inner.string(), item.image)) return inner.string();
  }
  return folder;
}

std::string some(size_t count, const std::string& what, const std::vector<std::string>& names) {
  return fmt::format("{} {}: {}", count, what, listed(names));
}

// Drops captions without pictures, and says which; counts pictures without captions.
void match_pictures(CaptionSet& set, const std::string& path) {
  std::vector<std::string> absent, bare;
  std::set<std::string> named;
  for (const Captioned& item : set.items) {
    if (!has_picture(set.folder, item.image)) absent.push_back(item.image);
    named.insert(fs::path(item.image).filename().string());
  }
  for (const std::string& file : image_files(set.folder))
    if (!named.contains(fs::path(file).filename().string()))
      bare.push_back(fs::path(file).filename().string());
  if (2 * absent.size() > set.items.size())
    throw FileError(
        path, 0,
        fmt::format("{} of {} pictures are not in {}, the first {}; expected PNG or JPEG "
                    "there or in images/, or arrays (regions.npy)",
                    absent.size(), set.items.size(), set.folder, shown(absent.front())));
  if (!absent.empty())
    set.notes.push_back(some(absent.size(), "captioned without a picture, left out", absent));
  if (!bare.empty())
    set.notes.push_back(some(bare.size(), "pictures without a caption, left out", bare));
  std::erase_if(set.items,
                [&](const Captioned& item) { return !has_picture(set.folder, item.image); });
}

// A picture that nobody described teaches nothing and cannot be judged.
void drop_bare(CaptionSet& set) {
  std::vector<std::string> bare;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < set.items.size(); ++i)
    set.items[i].captions.empty() ? bare.push_back(set.items[i].image)
                                  : kept.push_back(static_cast<int64_t>(i));
  if (bare.empty()) return;
  set.notes.push_back(some(bare.size(), "listed without a caption, left out", bare));
  if (!set.regions.empty()) set.regions.keep(kept);
  std::erase_if(set.items, [](const Captioned& item) { return item.captions.empty(); });
}

Split part_of(const std::string& name) {
  if (name == "train" || name == "restval") return Split::kTrain;
  return name == "test" ? Split::kTest : Split::kValidation;
}

void part(CaptionSet& set, const std::string& path, SplitRequest request) {
  std::vector<uint64_t> keys;
  for (const Captioned& item : set.items) {
    std::string contents = item.image;
    for (const std::string& caption : item.captions) contents += "\n" + caption;
    keys.push_back(item_key(contents));
  }
  const auto parted = std::count_if(set.items.begin(), set.items.end(),
                                    [](const Captioned& item) { return !item.split.empty(); });
  if (parted == 0) {
    request.keys = keys;
    set.splits = split(static_cast<int64_t>(set.items.size()), request);
    set.splits.keys = std::move(keys);
    return;
  }
  if (parted < static_cast<int64_t>(set.items.size()))
    throw FileError(path, 0,
                    fmt::format("{} of {} pictures have a split, expected all or none", parted,
                                set.items.size()));
  if (request.folds > 0)
    throw FileError(path, 0,
                    "--folds: this data has splits of its own; leave them out to cross-validate");
  for (size_t i = 0; i < set.items.size(); ++i) {
    const Split which = part_of(set.items[i].split);
    if (!request.all_test || which == Split::kTest)
      set.splits.of(which).push_back(static_cast<int64_t>(i));
  }
  if (request.all_test && set.splits.test.empty())
    throw FileError(path, 0, "no picture of the test split, expected some to judge");
  set.splits.keys = std::move(keys);
}

// uint8 [count][side][side][3], the numbers in the file's name.
void read_thumbnails(CaptionSet& set, const std::string& folder) {
  for (const fs::path& path : entries_of(folder)) {
    int64_t count = 0, width = 0, height = 0;
    const std::string name = without_gz(path);
    if (!name.starts_with(kThumbnails) || !name.ends_with(".rgb") ||
        std::sscanf(name.c_str(), "thumbs_test%4ld_%4ldx%4ld.rgb", &count, &width, &height) != 3)
      continue;
    const std::string bytes = read_file(path.string());
    const int64_t size = width * height * 3;
    if (count < 1 || size < 1 || static_cast<int64_t>(bytes.size()) != count * size)
      throw FileError(path.string(), 0,
                      fmt::format("{} bytes, expected {} pictures of {} x {} x 3", bytes.size(),
                                  count, width, height));
    for (int64_t i = 0; i < count; ++i) {
      const auto from = bytes.begin() + i * size;
      set.thumbnails.push_back({width, height, 3, {from, from + size}});
    }
    return;
  }
}

}  // namespace

std::string CaptionSet::path_of(int64_t item) const {
  return (fs::path(folder) / items[static_cast<size_t>(item)].image).string();
}

Image CaptionSet::drawn(int64_t item) const {
  const auto place = std::lower_bound(splits.test.begin(), splits.test.end(), item);
  if (place != splits.test.end() && *place == item) {
    const auto i = static_cast<size_t>(place - splits.test.begin());
    if (i < thumbnails.size()) return thumbnails[i];
  }
  if (folder.empty() || !has_picture(folder, items[static_cast<size_t>(item)].image)) return {};
  return PictureStore(folder, 0).whole(items[static_cast<size_t>(item)].image);
}

CaptionSet read_captions(const std::string& path, const CaptionRequest& request) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const std::string file = is_folder ? caption_file(path) : path;
  const std::string parent = fs::path(file).parent_path().string(),
                    folder = parent.empty() ? "." : parent;
  CaptionSet out;
  out.items = parse_captions(read_file(file), file);
  out.folder = pictures_beside(folder, out.items);
  if (has_regions(folder)) {
    std::vector<std::string> images;
    for (const Captioned& item : out.items) images.push_back(item.image);
    out.regions = read_regions(folder, images);
    read_thumbnails(out, folder);
  } else {
    match_pictures(out, file);
  }
  drop_bare(out);
  if (out.items.empty()) throw FileError(file, 0, "no picture with a caption");
  part(out, file, request.split);
  return out;
}

}  // namespace fovea::data
