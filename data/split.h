// Which items are for learning, for choosing and for judging: drawn once from a seed, never
// overlapping.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

enum class Split : uint8_t { kTrain, kValidation, kTest };

// "train", "validation" (also "val", "dev"), "test"; otherwise InvalidArgument.
Split split_from_name(const std::string& name);
const char* name_of(Split);

// What an item holds in 64 bits, to know it again wherever it stands in a file.
uint64_t item_key(std::string_view contents);

struct Splits {
  std::vector<int64_t> train, validation, test;  // item indices, ascending
  std::vector<uint64_t> keys = {};               // of all items; empty: they are not told apart

  const std::vector<int64_t>& of(Split) const;
  std::vector<int64_t>& of(Split);
  std::vector<uint64_t> keys_of(Split) const;
};

struct SplitRequest {
  // Shares of the whole; with folds, `validation` is a share of what is not tested.
  double validation = 0.1, test = 0.1;
  // folds > 0: the test split is part `fold` of `folds`, and `test` is unused.
  int64_t fold = 0, folds = 0;
  uint64_t seed = 1;
  bool all_test = false;  // every item is a test item: a file that is only judged
  // Items of equal key (the same sentence, the same bag) go to the same side, and without folds the
  // keys alone decide which: the order of the items does not matter. Folds are dealt out by the
  // order of the items, as published ones are. Empty: each item is its own, drawn by its place.
  std::vector<uint64_t> keys = {};
  // Classes: each split then has about the same mix of them. Empty: not stratified.
  std::vector<int64_t> classes = {};
};
Splits split(int64_t items, const SplitRequest&);
// Of these items alone: the parts hold them, and `keys` and `classes` are in their order.
Splits split(const std::vector<int64_t>& items, const SplitRequest&);

}  // namespace fovea::data
