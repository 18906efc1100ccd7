// Pairs with gold alignments: NAME.src-tgt, `source ||| target` a line, beside NAME.gold, `1-1 2p3`
// a line counted from 1.
#include <fmt/format.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "translate/corpus/corpus.h"

namespace fovea::translate {
namespace {

constexpr std::string_view kEnding = ".src-tgt", kBar = "|||";

std::string trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r"), to = text.find_last_not_of(" \t\r");
  return from == std::string_view::npos ? "" : std::string(text.substr(from, to - from + 1));
}

}  // namespace

bool is_gold_corpus(const std::string& path) { return path.ends_with(kEnding); }

std::optional<Pair> split_pair(std::string_view line) {
  size_t at = line.find(kBar), width = kBar.size();
  if (at == std::string_view::npos) at = line.find('\t'), width = 1;
  if (at == std::string_view::npos) return std::nullopt;
  return Pair{trimmed(line.substr(0, at)), trimmed(line.substr(at + width)), {}};
}

std::vector<Pair> read_gold_corpus(const std::string& path) {
  if (!is_gold_corpus(path))
    throw data::FileError(path, 0, "expected a name that ends in .src-tgt, with a .gold beside it");
  std::vector<Pair> pairs;
  data::each_line(data::read_file(path), path, [&](size_t number, std::string_view line) {
    const auto pair = split_pair(line);
    if (!pair) throw data::FileError(path, number, "expected `source ||| target`");
    pairs.push_back(*pair);
  });
  read_links(path.substr(0, path.size() - kEnding.size()) + ".gold", pairs);
  // Some published files have links that point outside their sentence: they can be neither found
  // nor missed.
  for (Pair& pair : pairs) {
    const auto sources = static_cast<int32_t>(data::words(pair.source).size()),
               targets = static_cast<int32_t>(data::words(pair.target).size());
    for (metrics::Links* links : {&pair.links.sure, &pair.links.possible}) {
      std::erase_if(*links, [&](const metrics::Link& l) {
        return l.source >= sources || l.target >= targets;
      });
    }
  }
  return pairs;
}

void read_links(const std::string& gold, std::vector<Pair>& pairs) {
  size_t next = 0;
  data::each_line(data::read_file(gold), gold, [&](size_t number, std::string_view line) {
    if (next == pairs.size())
      throw data::FileError(gold, number,
                            fmt::format("more lines than the {} pairs beside it", pairs.size()));
    try {
      pairs[next++].links = metrics::parse_gold(line, metrics::IndexBase::kOne);
    } catch (const InvalidArgument& error) {
      throw data::FileError(gold, number, error.what());
    }
  });
  if (next != pairs.size())
    throw data::FileError(
        gold, 0, fmt::format("{} lines, expected {} (the pairs beside it)", next, pairs.size()));
}

}  // namespace fovea::translate
