#include "data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "data/random.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

struct Bundle {
  std::vector<int64_t> items;
  int64_t label = 0;
  uint64_t key = 0;
};

std::vector<Bundle> bundles(int64_t items, const SplitRequest& request) {
  std::vector<Bundle> out;
  std::unordered_map<uint64_t, size_t> where;
  for (int64_t i = 0; i < items; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t label = request.classes.empty() ? 0 : request.classes[at];
    if (request.keys.empty()) {
      out.push_back({{i}, label});
      continue;
    }
    const auto [place, fresh] = where.try_emplace(request.keys[at], out.size());
    if (fresh) out.push_back({{}, label, request.keys[at]});
    out[place->second].items.push_back(i);
  }
  return out;
}

// Equal items of several classes count as the lowest class, whichever comes first.
void take_lowest_labels(std::vector<Bundle>& all, const std::vector<int64_t>& classes) {
  for (Bundle& bundle : all)
    for (const int64_t item : bundle.items)
      if (!classes.empty())
        bundle.label = std::min(bundle.label, classes[static_cast<size_t>(item)]);
}

// A random order: of positions for folds and for items without keys, otherwise of keys.
void shuffle(std::vector<Bundle>& all, const SplitRequest& request) {
  const uint64_t seed = mix(request.seed, 0x5011);
  if (request.folds > 0 || request.keys.empty()) {
    Random(seed).shuffle(all);
    return;
  }
  take_lowest_labels(all, request.classes);
  std::sort(all.begin(), all.end(),
            [&](const Bundle& a, const Bundle& b) { return mix(seed, a.key) < mix(seed, b.key); });
}

void check(int64_t items, const SplitRequest& request) {
  const auto n = static_cast<size_t>(items);
  if (!request.keys.empty() && request.keys.size() != n)
    throw InvalidArgument(fmt::format("keys: {} given, expected {}", request.keys.size(), n));
  if (!request.classes.empty() && request.classes.size() != n)
    throw InvalidArgument(fmt::format("classes: {} given, expected {}", request.classes.size(), n));
  if (request.all_test) return;
  if (request.folds != 0 &&
      (request.folds < 2 || request.fold < 0 || request.fold >= request.folds))
    throw InvalidArgument(fmt::format("fold: {} of {}, expected 0 to {} of at least 2",
                                      request.fold, request.folds, request.folds - 1));
  if (request.folds > items)
    throw InvalidArgument(
        fmt::format("folds: {}, expected at most the number of items, {}", request.folds, items));
  if (request.validation < 0 || request.test < 0 || request.validation + request.test > 1)
    throw InvalidArgument(
        "validation, test: expected shares that are not negative and sum to at most 1");
}

}  // namespace

Split split_from_name(const std::string& name) {
  if (name == "train") return Split::kTrain;
  if (name == "validation" || name == "val" || name == "dev") return Split::kValidation;
  if (name == "test") return Split::kTest;
  throw InvalidArgument(fmt::format("split: '{}', expected train, validation or test", name));
}

const char* name_of(Split split) {
  return split == Split::kTrain ? "train" : split == Split::kValidation ? "validation" : "test";
}

const std::vector<int64_t>& Splits::of(Split split) const {
  return split == Split::kTrain ? train : split == Split::kValidation ? validation : test;
}
std::vector<int64_t>& Splits::of(Split split) {
  return split == Split::kTrain ? train : split == Split::kValidation ? validation : test;
}

std::vector<uint64_t> Splits::keys_of(Split split) const {
  std::vector<uint64_t> out;
  if (!keys.empty())
    for (const int64_t item : of(split)) out.push_back(keys[static_cast<size_t>(item)]);
  return out;
}

uint64_t item_key(std::string_view contents) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, whose low bits mix() spreads
  for (const char c : contents) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return mix(hash, 0x1E4);
}

Splits in_order(const PartSizes& sizes) {
  Splits out;
  int64_t item = 0;
  for (const auto& [part, count] : {std::pair{&out.train, sizes.train},
                                    {&out.validation, sizes.validation},
                                    {&out.test, sizes.test}}) {
    part->resize(static_cast<size_t>(count));
    std::iota(part->begin(), part->end(), item);
    item += count;
  }
  return out;
}

Splits split(int64_t items, const SplitRequest& request) {
  check(items, request);
  if (request.all_test) {
    Splits out;
    out.keys = request.keys;
    out.test.resize(static_cast<size_t>(items));
    std::iota(out.test.begin(), out.test.end(), 0);
    return out;
  }
  std::vector<Bundle> all = bundles(items, request);
  shuffle(all, request);
  // Dealing out class after class gives every part the same mix; within a class the order stays
  // random.
  std::stable_sort(all.begin(), all.end(),
                   [](const Bundle& a, const Bundle& b) { return a.label < b.label; });

  Splits out;
  out.keys = request.keys;
  const auto give = [](std::vector<int64_t>& to, const Bundle& bundle) {
    to.insert(to.end(), bundle.items.begin(), bundle.items.end());
  };
  std::vector<const Bundle*> rest;
  double debt = 0;  // how many items the test split should have by now
  for (size_t i = 0; i < all.size(); ++i) {
    const bool test = request.folds ? static_cast<int64_t>(i) % request.folds == request.fold
                                    : (debt += request.test) >= 1 - 1e-9;
    if (test && !request.folds) debt -= 1;
    if (test)
      give(out.test, all[i]);
    else
      rest.push_back(&all[i]);
  }
  const double share =
      request.folds ? request.validation : request.validation / std::max(1e-9, 1 - request.test);
  debt = 0;
  for (const Bundle* bundle : rest) {
    const bool validation = (debt += share) >= 1 - 1e-9;
    if (validation) debt -= 1;
    give(validation ? out.validation : out.train, *bundle);
  }
  for (auto* part : {&out.train, &out.validation, &out.test}) std::sort(part->begin(), part->end());
  return out;
}

Splits split(const std::vector<int64_t>& items, const SplitRequest& request) {
  Splits out = split(static_cast<int64_t>(items.size()), request);
  out.keys.clear();  // they would be found by position
  for (auto* part : {&out.train, &out.validation, &out.test})
    for (int64_t& place : *part) place = items[static_cast<size_t>(place)];
  return out;
}

}  // namespace fovea::data
