#include "text/compose.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "data/files/file.h"
#include "data/random.h"

namespace fovea::text {
namespace {

namespace fs = std::filesystem;
using data::FileError;

}  // namespace

Corpus compose_hidden(const std::string& folder, uint64_t seed, int64_t documents) {
  const ReadRequest plain{.positive_above = std::nan("")};
  const auto file = [&](const char* name) {
    for (const char* ending : {".all.gz", ".all"})
      if (const fs::path path = fs::path(folder) / (std::string(name) + ending);
          fs::is_regular_file(path))
        return path.string();
    throw FileError(
        folder, 0,
        fmt::format("no {}.all or {}.all.gz, expected the folder of MR and SUBJ", name, name));
  };
  const std::vector<Document> polar = read_documents(file("rt-polarity"), plain),
                              subj = read_documents(file("subj"), plain);
  // What a split may draw from: polar sentences of either class, and filler.
  struct Pool {
    std::vector<std::string> polar[2], filler;
  };
  Pool pools[3];
  data::Random random(data::mix(seed, 0x41D));
  const auto deal = [&](std::vector<std::string> all, auto&& place) {
    random.shuffle(all);
    for (size_t i = 0; i < all.size(); ++i)
      place(pools[i % 10 < 7 ? 0 : i % 10 == 7 ? 1 : 2]).push_back(std::move(all[i]));
  };
  std::vector<std::string> of_class[2], filler;
  for (const Document& d : polar) of_class[d.label == "1"].push_back(d.texts[0]);
  for (const Document& d : subj)
    if (d.label == "1") filler.push_back(d.texts[0]);  // 1 is objective
  for (int label = 0; label < 2; ++label)
    deal(
        of_class[label], [label](Pool & pool) -> auto& { return pool.polar[label]; });
  deal(
      filler, [](Pool & pool) -> auto& { return pool.filler; });

  Corpus corpus;
  corpus.path = folder;
  const auto compose = [&](int64_t count, const Pool& pool, std::vector<int64_t>& split) {
    for (int64_t n = 0; n < count; ++n) {
      Document document;
      const int label = static_cast<int>(n % 2);
      document.label = label ? "positive" : "negative";
      const size_t plain_count = 5 + random.below(5), hidden = 1 + random.below(3);
      std::vector<std::pair<std::string, bool>> chosen;
      for (size_t i = 0; i < plain_count; ++i)
        chosen.emplace_back(random.choice(pool.filler), false);
      for (size_t i = 0; i < hidden; ++i)
        chosen.emplace_back(random.choice(pool.polar[label]), true);
      random.shuffle(chosen);
      for (const auto& [text, truth] : chosen) {
        if (truth) document.truth_sentences.push_back(static_cast<int32_t>(document.texts.size()));
        document.texts.push_back(text);
      }
      split.push_back(static_cast<int64_t>(corpus.documents.size()));
      corpus.documents.push_back(std::move(document));
    }
  };
  compose(documents, pools[0], corpus.splits.train);
  compose(data::kGenerated.validation, pools[1], corpus.splits.validation);
  compose(data::kGenerated.test, pools[2], corpus.splits.test);
  return corpus;
}

}  // namespace fovea::text
