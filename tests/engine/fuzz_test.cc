// Random combinations of everything, against the reference. FOVEA_FUZZ_SEED and FOVEA_FUZZ_COUNT
// choose others; a failure prints the seed that repeats it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "engine/call/meaning.h"
#include "tests/engine/comparison.h"

namespace fovea {
namespace {

using cases::Case;
using cases::Storage;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

template <class Row>
std::string any(Storage& random, const std::vector<Row>& rows) {
  return rows[random.integer(0, static_cast<int64_t>(rows.size()) - 1)].name;
}

Case draw(uint64_t seed) {
  Storage random(seed);
  Case c{.score = any(random, cases::scores()),
         .normaliser = any(random, cases::normalisers()),
         .structure = {},
         .seed = seed};
  const int64_t structures = random.integer(1, 3);
  for (int64_t n = 0; n < structures; ++n) c.structure.push_back(any(random, cases::structures()));
  // The table of modifiers is in the order they are applied.
  for (const auto& modifier : cases::modifiers()) {
    if (random.uniform(0, 1) < 0.12) c.modifiers.push_back(modifier.name);
  }
  const int64_t key_heads = random.integer(1, 2);
  c.shape = {.batch = random.integer(1, 3),
             .heads = key_heads * random.integer(1, 3),
             .key_heads = key_heads,
             .queries = random.integer(0, 40),
             .keys = random.integer(0, 90),
             .width = random.integer(1, 40),
             .value_width = random.integer(1, 40)};
  c.dtype = std::array{engine::DType::kFloat32, engine::DType::kFloat64, engine::DType::kBFloat16,
                       engine::DType::kFloat16}[random.integer(0, 3)];
  c.key_lengths = random.uniform(0, 1) < 0.3;
  c.dropout_p = random.uniform(0, 1) < 0.3 ? 0.25 : 0;
  c.content = random.uniform(0, 1) < 0.3 ? cases::Content::kPoison : cases::Content::kPlain;
  c.layout = random.uniform(0, 1) < 0.4 ? cases::Layout::kStrided : cases::Layout::kContiguous;
  c.query_offset = random.uniform(0, 1) < 0.3;
  return c;
}

// At most one packing, and one set of relative tables.
bool well_formed(const Case& c) {
  int packings = 0, tables = 0;
  for (const auto& name : c.structure) {
    packings += name == "ragged" || name.starts_with("graph");
  }
  for (const auto& name : c.modifiers) tables += name.starts_with("relative");
  return packings <= 1 && tables <= 1;
}

TEST(Fuzz, RandomCombinationsAgreeWithTheReference) {
  const uint64_t first = from_environment("FOVEA_FUZZ_SEED", 1);
  const uint64_t count = from_environment("FOVEA_FUZZ_COUNT", 400);
  int ran = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Case c = draw(seed);
    if (!well_formed(c)) continue;
    SCOPED_TRACE("FOVEA_FUZZ_SEED=" + std::to_string(seed));
    cases::Built built = cases::build(c);
    bool refused = false;
    for (const auto& refusal : engine::refusals()) refused |= refusal.applies(built.problem);
    if (refused) continue;
    ++ran;
    try {
      expect_agreement(c);
    } catch (const std::exception& error) {
      ADD_FAILURE() << c.name() << ": " << error.what();
    }
  }
  std::printf("fuzz: %d of %d ran, seeds %d to %d\n", ran, static_cast<int>(count),
              static_cast<int>(first), static_cast<int>(first + count - 1));
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace fovea
