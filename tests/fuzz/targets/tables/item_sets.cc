#include "data/formats/item_sets.h"

#include <algorithm>
#include <functional>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_item_sets(std::string_view bytes) {
  const std::string path = folder().write("sets.tsv", bytes);
  data::ItemSets read;
  if (!reads(path, [&] { read = data::read_item_sets(path); })) return;
  for (const auto& set : read.sets) {
    require(!set.empty(), "a set has things");
    require(std::adjacent_find(set.begin(), set.end(), std::greater_equal<>()) == set.end(),
            "a set's things ascend, each once");
    require(set.front() >= 0 && set.back() < static_cast<int64_t>(read.names.size()),
            "things have names");
  }
}
const Registration item_sets{"item_sets", fuzz_item_sets};

}  // namespace
}  // namespace fovea::fuzz
