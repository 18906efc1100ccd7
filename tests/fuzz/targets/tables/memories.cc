// Key-value memories: JSON Lines.
#include "systems/general/memories.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

using systems::general::kKey;
using systems::general::kValue;

void fuzz_memories(std::string_view bytes) {
  const std::string path = folder().write("a.jsonl", bytes);
  std::vector<systems::general::Memory> read;
  if (!reads(path, [&] { read = systems::general::read_memories(path); })) return;
  std::string lines;
  for (const auto& memory : read) {
    const size_t pairs = memory.keys.size() / kKey;
    require(pairs > 0 && memory.values.size() == pairs * kValue, "every key has a value");
    require(memory.queries.size() == memory.asked.size() * kKey, "every query asks for one pair");
    for (const int64_t pair : memory.asked)
      require(pair >= 0 && static_cast<size_t>(pair) < pairs, "a query asks for a pair there is");
    lines += systems::general::json_line(memory);
  }
  folder().write("a.jsonl", lines);
  const auto again = systems::general::read_memories(path);
  require(again.size() == read.size(), "memories survive being written");
  for (size_t i = 0; i < read.size(); ++i)
    require(again[i].keys == read[i].keys && again[i].values == read[i].values &&
                again[i].asked == read[i].asked,
            "a memory survives being written");
}
const Registration memories{"memories", fuzz_memories};

}  // namespace
}  // namespace fovea::fuzz
