#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/split.h"
#include "translate/corpus/corpus.h"

namespace fovea::translate {
namespace {

namespace fs = std::filesystem;

// PART.LANGUAGE or PART.LANGUAGE.gz in the folder, or nothing.
std::string find_part(const fs::path& folder, const std::string& part,
                      const std::string& language) {
  for (const char* ending : {"", ".gz"}) {
    const fs::path path = folder / (part + "." + language + ending);
    if (fs::exists(path)) return path.string();
  }
  return "";
}

std::vector<Pair> pairs_of(data::ParallelText text) {
  std::vector<Pair> pairs(text.source.size());
  for (size_t i = 0; i < pairs.size(); ++i)
    pairs[i] = {std::move(text.source[i]), std::move(text.target[i]), {}};
  return pairs;
}

bool has_empty_side(const Pair& pair) {
  return data::trimmed(pair.source).empty() || data::trimmed(pair.target).empty();
}

// The first of the names that the folder has.
std::vector<Pair> read_part(const ParallelRequest& request, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string source = find_part(request.path, name, request.source),
                      target = find_part(request.path, name, request.target);
    if (source.empty() && target.empty()) continue;
    if (source.empty() || target.empty()) {
      throw data::FileError(
          request.path, 0,
          "expected both " + name + "." + request.source + " and " + name + "." + request.target);
    }
    std::vector<Pair> pairs = pairs_of(data::read_parallel_text(source, target));
    if (const std::string gold = find_part(request.path, name, "gold"); !gold.empty())
      read_links(gold, pairs);
    return pairs;
  }
  throw data::FileError(
      request.path, 0,
      "expected a file " + names.front() + "." + request.source + " (plain or .gz)");
}

// For validation, and as much for test: a hundred pairs, of a small file a tenth and one pair at least,
// of a large one the fiftieth part.
double share_kept_back(size_t pairs) {
  constexpr double kWanted = 100, kMost = 0.1, kLeast = 0.02;
  const auto count = static_cast<double>(pairs);
  return std::max(std::clamp(kWanted / count, kLeast, kMost), 1 / count);
}

// One file of tab-separated pairs; equal sources go to the same split.
Corpus read_table(const ParallelRequest& request) {
  std::vector<Pair> pairs = pairs_of(data::read_parallel_tsv(request.path));
  Corpus corpus;
  if (request.test_only) {
    corpus.test = std::move(pairs);
    return corpus;
  }
  corpus.left_out = std::erase_if(pairs, has_empty_side);
  data::SplitRequest split{.seed = request.seed, .keys = keys_of(pairs)};
  const size_t different = std::set<uint64_t>(split.keys.begin(), split.keys.end()).size();
  if (different < 3)
    throw data::FileError(
        request.path, 0,
        fmt::format("{} different source sentence{}, expected at least 3 lines of "
                    "source<TAB>target: for training, validation and test",
                    different, different == 1 ? "" : "s"));
  split.validation = split.test = share_kept_back(different);
  const data::Splits parts = data::split(static_cast<int64_t>(pairs.size()), split);
  const auto take = [&](const std::vector<int64_t>& indices, std::vector<Pair>& out) {
    for (const int64_t i : indices) out.push_back(pairs[static_cast<size_t>(i)]);
  };
  take(parts.train, corpus.train);
  take(parts.validation, corpus.validation);
  take(parts.test, corpus.test);
  return corpus;
}

std::string gold_line(const metrics::GoldLinks& links) {
  std::string line;
  for (const metrics::Link& link : links.possible) {
    if (!line.empty()) line += " ";
    line += std::to_string(link.source + 1) + (links.sure.contains(link) ? "-" : "p") +
            std::to_string(link.target + 1);
  }
  return line;
}

}  // namespace

std::vector<uint64_t> keys_of(const std::vector<Pair>& pairs) {
  std::vector<uint64_t> keys;
  for (const Pair& pair : pairs) keys.push_back(data::item_key(pair.source));
  return keys;
}

Written write_parallel(const ParallelRequest& names, const std::vector<Pair>& train,
                       const std::vector<Pair>& validation, const std::vector<Pair>& test) {
  Written out{.truth = "PART.gold: links `1-1 2p3` counted from 1, p where only possible"};
  for (const auto& [part, pairs] :
       {std::pair(std::string("train"), &train), {"val", &validation}, {names.test, &test}}) {
    std::string &sources = out.files[part + "." + names.source],
                &targets = out.files[part + "." + names.target], &gold = out.files[part + ".gold"];
    for (const Pair& pair : *pairs) {
      sources += pair.source + "\n";
      targets += pair.target + "\n";
      gold += gold_line(pair.links) + "\n";
    }
  }
  return out;
}

Corpus read_parallel(const ParallelRequest& request) {
  if (!fs::is_directory(request.path)) return read_table(request);
  Corpus corpus;
  corpus.test = read_part(request, {request.test});
  if (request.test_only) return corpus;
  corpus.train = read_part(request, {"train"});
  corpus.validation = read_part(request, {"val", "validation", "dev"});
  for (std::vector<Pair>* part : {&corpus.train, &corpus.validation})
    corpus.left_out += std::erase_if(*part, has_empty_side);
  return corpus;
}

std::string in_words(const Corpus& corpus) {
  std::string out = fmt::format("{} pairs to learn from, {} to choose by, {} to judge",
                                corpus.train.size(), corpus.validation.size(), corpus.test.size());
  if (corpus.left_out > 0) out += fmt::format("; {} with an empty side left out", corpus.left_out);
  return out;
}

}  // namespace fovea::translate
