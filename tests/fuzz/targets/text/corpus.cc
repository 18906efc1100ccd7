// A folder of labelled documents in parts, and the splits made of it.
#include "text/corpus.h"

#include <limits>
#include <set>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void check_splits(const text::Corpus& corpus) {
  std::set<int64_t> seen;
  for (const auto* part : {&corpus.splits.train, &corpus.splits.validation, &corpus.splits.test})
    for (const int64_t item : *part) {
      require(item >= 0 && item < static_cast<int64_t>(corpus.documents.size()),
              "a split holds documents");
      require(seen.insert(item).second, "a document is in one split");
    }
}

// Inputs of even length are one file, others a folder of two.
void fuzz_corpus(std::string_view input) {
  Bytes bytes(input);
  text::ReadRequest request{.positive_above = std::numeric_limits<double>::quiet_NaN()};
  request.source.folds = bytes.flag() ? static_cast<int64_t>(bytes.below(11)) : 0;
  request.source.fold = static_cast<int64_t>(bytes.below(10));
  request.source.all_test = bytes.flag();
  text::Corpus read;
  request.source.path = folder().write("train.tsv", bytes.part());
  folder().write("test.tsv", bytes.part());
  if (input.size() % 2 != 0) request.source.path = folder().path();
  if (reads(request.source.path, [&] { read = text::read_corpus(request); })) check_splits(read);
}
const Registration corpus{"corpus", fuzz_corpus};

}  // namespace
}  // namespace fovea::fuzz
