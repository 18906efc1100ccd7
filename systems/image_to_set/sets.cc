#include "systems/image_to_set/sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "data/digits.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/generated/canvas_files.h"
#include "data/pictures/picture_questions.h"
#include "data/pictures/readable.h"

namespace fovea::systems::image_to_set {
namespace {

// Articles, pronouns, prepositions, conjunctions and auxiliaries of English.
const std::set<std::string, std::less<>>& function_words() {
  static const std::set<std::string, std::less<>> words = {
      "a",       "about",   "above", "across",  "after",  "against", "along",   "also",  "an",
      "and",     "another", "are",   "around",  "as",     "at",      "away",    "back",  "be",
      "behind",  "being",   "below", "beneath", "beside", "between", "both",    "but",   "by",
      "can",     "do",      "does",  "down",    "each",   "every",   "for",     "from",  "has",
      "have",    "he",      "her",   "hers",    "him",    "his",     "if",      "in",    "inside",
      "into",    "is",      "it",    "its",     "it's",   "like",    "near",    "next",  "no",
      "not",     "of",      "off",   "on",      "one",    "onto",    "or",      "other", "out",
      "outside", "over",    "past",  "s",       "'s",     "she",     "so",      "some",  "that",
      "the",     "their",   "them",  "there",   "they",   "this",    "through", "to",    "together",
      "towards", "toward",  "under", "up",      "very",   "was",     "were",    "what",  "which",
      "while",   "who",     "whose", "with",    "without"};
  return words;
}

void add_once(std::vector<std::string>& to, std::string label) {
  if (!label.empty() && std::find(to.begin(), to.end(), label) == to.end())
    to.push_back(std::move(label));
}

PictureSets canvases(const Source& source, const OptionValues& options) {
  const int64_t train = options.integer("pictures");
  const data::Canvases drawn =
      data::set_canvases({.side = options.integer("side"),
                          .least = options.flag("empty") ? 0 : 1,
                          .most = 4,
                          .parts = {.train = train,
                                    .validation = std::max<int64_t>(1, train / 8),
                                    .test = std::max<int64_t>(1, train / 4)},
                          .seed = source.seed},
                         data::digits_of(source.path, 6000, 3000, source.seed));
  data::DrawnPictures pictures = data::pictures_of(drawn);
  PictureSets out{
      .pictures = std::move(pictures.set), .labels = {}, .pixels = std::move(pictures.pixels)};
  for (const data::Captioned& item : out.pictures.items) {
    auto& labels = out.labels.emplace_back();
    for (const auto& [digit, box] : item.boxes) labels.push_back(digit);
  }
  return out;
}

}  // namespace

std::vector<std::string> labels_of(const std::vector<std::string>& captions) {
  std::vector<std::string> out;
  for (const std::string& caption : captions) {
    if (caption.find('|') == std::string::npos) {
      for (std::string& word : data::caption_words(caption))
        if (!function_words().contains(word)) add_once(out, std::move(word));
      continue;
    }
    for (size_t from = 0; from <= caption.size();) {
      const size_t to = std::min(caption.find('|', from), caption.size());
      add_once(out, std::string(data::trimmed(std::string_view(caption).substr(from, to - from))));
      from = to + 1;
    }
  }
  return out;
}

PictureSets read_picture_sets(const Source& source, const OptionValues& options) {
  if (source.path.empty() || data::is_mnist(source.path)) return canvases(source, options);
  PictureSets out;
  out.pictures = data::read_captions(source.path, {.split = split_request(source)});
  data::PictureStore store(out.pictures.folder, options.integer("side"));
  data::Readable readable;
  for (data::Captioned& item : out.pictures.items) {
    out.labels.push_back(labels_of(item.captions));
    if (out.labels.back().empty() && !options.flag("empty"))
      throw data::FileError(source.path, 0,
                            fmt::format("{} has no label; --set empty=true allows empty sets",
                                        data::shown(item.image)));
    item.captions.clear();
    if (!out.pictures.regions.empty()) continue;
    auto& pixels = out.pixels.emplace_back();
    readable.next([&] { pixels = store.at(item.image); });
  }
  if (auto note = readable.note(source.path)) out.pictures.notes.push_back(*std::move(note));
  readable.leave_out_of(out.pictures.splits);
  return out;
}

Written write_picture_sets(const PictureSets& sets, int64_t side) {
  data::Idx all{{static_cast<int64_t>(sets.pixels.size()), side, side, 3}, {}};
  for (const auto& picture : sets.pixels)
    all.values.insert(all.values.end(), picture.begin(), picture.end());
  std::vector<data::Captioned> lines = sets.pictures.items;
  for (size_t i = 0; i < lines.size(); ++i)
    lines[i].captions = {sets.labels[i].empty()
                             ? std::string("|")
                             : fmt::format("{}|", fmt::join(sets.labels[i], "|"))};
  return {.files = data::picture_files(std::move(lines), all),
          .truth = "\"boxes\" of each line: where each digit is"};
}

}  // namespace fovea::systems::image_to_set
