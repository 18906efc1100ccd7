// Which items are for training, for validation and for test: drawn once from a seed, without
// overlap.
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

// A hash of an item's contents in 64 bits, to recognise it at any place in a file.
uint64_t item_key(std::string_view contents);

struct Splits {
  std::vector<int64_t> train, validation, test;  // item indices, ascending
  std::vector<uint64_t> keys = {};               // of all items; empty: items have no keys

  const std::vector<int64_t>& of(Split) const;
  std::vector<int64_t>& of(Split);
  std::vector<uint64_t> keys_of(Split) const;
};

// How many items each part has.
struct PartSizes {
  int64_t train, validation, test;
  int64_t all() const { return train + validation + test; }
};
// The sizes that generators use by default.
inline constexpr PartSizes kGenerated{.train = 4000, .validation = 500, .test = 1000};

// Parts of these sizes, one after the other in the order of the items.
Splits in_order(const PartSizes&);

struct SplitRequest {
  // Shares of the whole; with folds, `validation` is a share of what is not tested.
  double validation = 0.1, test = 0.1;
  // folds > 0: the test split is part `fold` of `folds`, and `test` is unused.
  int64_t fold = 0, folds = 0;
  uint64_t seed = 1;
  bool all_test = false;  // every item is a test item: a file for evaluation only
  // Items of equal key (the same sentence, the same bag) go to the same part. Without folds the keys
  // alone decide which part: the order of the items does not matter. Folds follow the order of the
  // items, as published ones do. Empty: each item is drawn by its index.
  std::vector<uint64_t> keys = {};
  // Classes: each split then has about the same mix of them. Empty: not stratified.
  std::vector<int64_t> classes = {};
};
Splits split(int64_t items, const SplitRequest&);
// Of these items alone: the parts hold them, and `keys` and `classes` are in their order.
Splits split(const std::vector<int64_t>& items, const SplitRequest&);

}  // namespace fovea::data
