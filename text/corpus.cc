#include "text/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "data/files/file.h"
#include "data/files/read.h"
#include "data/formats/csv.h"
#include "data/formats/text.h"

namespace fovea::text {
namespace {

namespace fs = std::filesystem;
using data::FileError;

constexpr double kValidationShare = 0.1;

// The file of a part: folder/train.tsv.gz, or stem.train.gz.
std::string part_file(const fs::path& path, const std::string& part) {
  const bool folder = fs::is_directory(path);
  const std::string start = (folder ? part : path.filename().string() + "." + part) + ".";
  std::vector<std::string> found;
  const fs::path where = folder                   ? path
                         : path.has_parent_path() ? path.parent_path()
                                                  : fs::path(".");
  if (fs::is_directory(where))
    for (const fs::path& entry : data::entries_of(where))
      if (entry.filename().string().starts_with(start) && fs::is_regular_file(entry))
        found.push_back(entry.string());
  if (found.size() > 1)
    throw FileError(
        path.string(), 0,
        fmt::format("both {} and {} could be its {} part, expected one", found[0], found[1], part));
  return found.empty() ? "" : found[0];
}

uint64_t key_of(const Document& document) {
  std::string key;
  for (const std::string& text : document.texts) key += text + '\n';
  return data::item_key(key);
}

std::vector<std::string> labels_of(const Corpus& corpus) {
  std::vector<std::string> labels;
  for (const Document& document : corpus.documents) labels.push_back(document.label);
  return labels;
}

// 0 to 9 where ids are Pang & Lee's cv000 … cv999; otherwise -1.
int64_t published_fold(const std::string& id) {
  const bool matches =
      id.size() >= 5 && id.starts_with("cv") &&
      std::all_of(id.begin() + 2, id.begin() + 5, [](char c) { return c >= '0' && c <= '9'; });
  return matches ? id[2] - '0' : -1;
}

// A share of the training items becomes the validation split.
void set_aside(Corpus& corpus, uint64_t seed) {
  std::vector<std::string> labels;
  data::SplitRequest request{.validation = kValidationShare, .test = 0, .seed = seed};
  for (const int64_t item : corpus.splits.train) {
    const Document& document = corpus.documents[static_cast<size_t>(item)];
    request.keys.push_back(key_of(document));
    labels.push_back(document.label);
  }
  request.classes = data::classes_of(labels).of;
  data::Splits parts = data::split(corpus.splits.train, request);
  corpus.splits.train = std::move(parts.train);
  corpus.splits.validation = std::move(parts.validation);
}

void split_one_file(Corpus& corpus, const Source& source) {
  const auto& all = corpus.documents;
  if (!source.all_test && source.folds == 10 &&
      std::all_of(all.begin(), all.end(),
                  [](const Document& d) { return published_fold(d.id) >= 0; })) {
    for (size_t i = 0; i < all.size(); ++i)
      (published_fold(all[i].id) == source.fold ? corpus.splits.test : corpus.splits.train)
          .push_back(static_cast<int64_t>(i));
    set_aside(corpus, source.seed);
    corpus.splits.keys = keys_of(all);
    return;
  }
  data::SplitRequest request = split_request(source);
  request.validation = kValidationShare;
  request.keys = keys_of(all);
  request.classes = data::classes_of(labels_of(corpus)).of;
  corpus.splits = data::split(static_cast<int64_t>(all.size()), request);
}

void read_parts(Corpus& corpus, const ReadRequest& request) {
  const Source& source = request.source;
  const auto add = [&](const std::string& file, std::vector<int64_t>& into) {
    for (Document& document : read_documents(file, request)) {
      into.push_back(static_cast<int64_t>(corpus.documents.size()));
      corpus.documents.push_back(std::move(document));
    }
  };
  const std::string test = part_file(source.path, "test");
  if (test.empty())
    throw FileError(
        source.path, 0,
        "no part called test, expected train.* and test.* (and perhaps dev.* or val.*)");
  if (source.folds > 0)
    throw FileError(
        source.path, 0,
        "--folds: this data has a test part of its own; give one file to cross-validate");
  if (!source.all_test) {
    add(part_file(source.path, "train"), corpus.splits.train);
    std::string validation = part_file(source.path, "dev");
    if (validation.empty()) validation = part_file(source.path, "val");
    if (!validation.empty())
      add(validation, corpus.splits.validation);
    else
      set_aside(corpus, source.seed);
  }
  add(test, corpus.splits.test);
  corpus.splits.keys = keys_of(corpus.documents);
}

// Texts that stand on several lines, and how many of these lines disagree with the first.
std::string repeats_in_words(const data::Splits& splits, const std::vector<int64_t>& labels) {
  std::unordered_map<uint64_t, int64_t> first;
  size_t repeats = 0, disagree = 0;
  for (size_t i = 0; i < splits.keys.size(); ++i) {
    const auto [place, fresh] = first.try_emplace(splits.keys[i], labels[i]);
    repeats += !fresh;
    disagree += place->second != labels[i];
  }
  if (repeats == 0) return "";
  std::string out =
      fmt::format("; {} repeat{} the text of an earlier line", repeats, repeats == 1 ? "s" : "");
  if (disagree > 0) out += fmt::format(", {} of them with another class", disagree);
  return out;
}

// A first line whose label no other line has, where every other label comes again, may be a header
// that was not known as one.
std::string single_lines_in_words(const Corpus& corpus, const data::Classes& classes,
                                  const std::vector<size_t>& counts) {
  std::vector<std::string> once;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] == 1) once.push_back(data::shown(classes.names[i]));
  if (once.empty()) return "";
  if (once.size() == 1 && corpus.documents[0].line == 1 &&
      counts[static_cast<size_t>(classes.of[0])] == 1)
    return fmt::format(
        "; {} is on line 1 only: if this line names the columns, call them label and text",
        once[0]);
  return fmt::format("; on one line only: {}", data::in_short(once));
}

std::string alike_in_words(const std::vector<std::string>& names) {
  std::map<std::string, std::string> spelt;
  for (const std::string& name : names) {
    const auto [place, fresh] = spelt.try_emplace(data::lower_ascii(name), name);
    if (!fresh)
      return fmt::format("; {} and {} are two classes", data::shown(place->second),
                         data::shown(name));
  }
  return "";
}

}  // namespace

std::vector<uint64_t> keys_of(const std::vector<Document>& documents) {
  std::vector<uint64_t> keys;
  for (const Document& document : documents) keys.push_back(key_of(document));
  return keys;
}

Corpus read_corpus(const ReadRequest& request) {
  Corpus corpus;
  const fs::path path = request.source.path;
  corpus.path = path.string();
  const bool parts = !fs::is_regular_file(path) && !part_file(path, "train").empty();
  if (parts) {
    read_parts(corpus, request);
  } else {
    corpus.documents = read_documents(corpus.path, request);
    try {
      split_one_file(corpus, request.source);
    } catch (const InvalidArgument& error) {
      throw FileError(corpus.path, 0, error.what());
    }
  }
  return corpus;
}

std::string in_words(const Corpus& corpus) {
  constexpr size_t kShownClasses = 8;
  const data::Classes classes = data::classes_of(labels_of(corpus));
  const std::vector<std::string>& names = classes.names;
  std::vector<size_t> counts(names.size());
  for (const int64_t label : classes.of) ++counts[static_cast<size_t>(label)];
  const size_t lines = classes.of.size();
  std::string out = fmt::format("{} line{}, {} class{}:", lines, lines == 1 ? "" : "s",
                                names.size(), names.size() == 1 ? "" : "es");
  for (size_t i = 0; i < std::min(names.size(), kShownClasses); ++i)
    out += fmt::format("{} {} {}", i ? "," : "", data::shown(names[i]), counts[i]);
  if (names.size() > kShownClasses) out += ", …";
  return out + single_lines_in_words(corpus, classes, counts) + alike_in_words(names) +
         repeats_in_words(corpus.splits, classes.of);
}

void check_labels(const Corpus& corpus) {
  const std::vector<std::string> labels = labels_of(corpus);
  const data::Classes classes = data::classes_of(labels);
  const std::vector<std::string>& names = classes.names;
  if (names.size() < 2)
    throw FileError(corpus.path, 0,
                    fmt::format("every label is '{}', expected at least two classes",
                                names.empty() ? "" : names[0]));
  if (names.size() == labels.size())
    throw FileError(
        corpus.path, 0,
        fmt::format("{} lines and as many classes ({}, {}, …): every label occurs once, expected "
                    "labels that occur several times",
                    labels.size(), data::shown(names[0]), data::shown(names[1])));
  std::vector<size_t> counts(names.size());
  for (const int64_t label : classes.of) ++counts[static_cast<size_t>(label)];
  const auto first = std::find(counts.begin(), counts.end(), 1u);
  const auto once = static_cast<size_t>(std::count(first, counts.end(), 1u));
  if (2 * once > labels.size())
    throw FileError(
        corpus.path, 0,
        fmt::format("{} of {} labels occur once ({}, …), expected labels that occur several times, "
                    "in the first column or in one that a header calls label",
                    once, labels.size(),
                    data::shown(names[static_cast<size_t>(first - counts.begin())])));
}

}  // namespace fovea::text
