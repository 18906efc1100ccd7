// Which items are for learning, for choosing and for judging: drawn once from a seed, never
// overlapping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::data {

enum class Split : uint8_t { kTrain, kValidation, kTest };

// "train", "validation" (also "val", "dev"), "test"; otherwise InvalidArgument.
Split split_from_name(const std::string& name);
const char* name_of(Split);

struct Splits {
  std::vector<int64_t> train, validation, test;  // item indices, ascending

  const std::vector<int64_t>& of(Split) const;
  std::vector<int64_t>& of(Split);
};

// Every item is a test item: a file that is only judged.
Splits all_for_test(size_t count);

struct SplitRequest {
  double validation = 0.1,
         test =
             0.1;  // shares of the whole; with folds, `validation` is a share of what is not tested
  int64_t fold = 0,
          folds = 0;  // folds > 0: the test split is part `fold` of `folds`, and `test` is unused
  uint64_t seed = 1;
  // Items of equal key (the same sentence, the same bag) go to the same side. Empty: each item is
  // its own.
  std::vector<std::string> keys = {};
  // Classes: each split then has about the same mix of them. Empty: not stratified.
  std::vector<int64_t> classes = {};
};
Splits split(int64_t items, const SplitRequest&);

}  // namespace fovea::data
