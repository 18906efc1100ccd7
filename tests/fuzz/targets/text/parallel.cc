// Parallel text: a folder of parts with gold links, one table, or a gold corpus.
#include "tests/fuzz/target.h"
#include "translate/corpus/corpus.h"

namespace fovea::fuzz {
namespace {

void fuzz_parallel(std::string_view input) {
  Bytes bytes(input);
  const std::string_view source = bytes.part(), target = bytes.part(), gold = bytes.part();
  folder().write("test.en", source);
  folder().write("test.fr", target);
  folder().write("test.gold", gold);
  const translate::ParallelRequest request{
      .path = folder().path(), .source = "en", .target = "fr", .test_only = true};
  reads(request.path, [&] {
    for (const translate::Pair& pair : translate::read_parallel(request).test)
      for (const metrics::Link& link : pair.links.sure)
        require(pair.links.possible.contains(link), "a sure link is possible");
  });
  const std::string table = folder().write("pairs.tsv", source);
  reads(table, [&] { translate::read_parallel({.path = table}); });
  const std::string pairs = folder().write("pairs.src-tgt", source);
  folder().write("pairs.gold", gold);
  reads(folder().path(), [&] { translate::read_gold_corpus(pairs); });
}
const Registration parallel{"parallel", fuzz_parallel};

}  // namespace
}  // namespace fovea::fuzz
