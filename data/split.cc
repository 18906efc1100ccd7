#include "data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "data/random.h"
#include "fovea/error.h"

namespace fovea::data {
namespace {

struct Bundle {
  std::vector<int64_t> items;
  int64_t label = 0;
};

std::vector<Bundle> bundles(int64_t items, const SplitRequest& request) {
  std::vector<Bundle> out;
  std::map<std::string, size_t> where;
  for (int64_t i = 0; i < items; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t label = request.classes.empty() ? 0 : request.classes[at];
    if (request.keys.empty()) {
      out.push_back({{i}, label});
      continue;
    }
    const auto [place, fresh] = where.try_emplace(request.keys[at], out.size());
    if (fresh) out.push_back({{}, label});
    out[place->second].items.push_back(i);
  }
  return out;
}

void check(int64_t items, const SplitRequest& request) {
  const auto n = static_cast<size_t>(items);
  if (!request.keys.empty() && request.keys.size() != n)
    throw InvalidArgument(fmt::format("keys: {} given, expected {}", request.keys.size(), n));
  if (!request.classes.empty() && request.classes.size() != n)
    throw InvalidArgument(fmt::format("classes: {} given, expected {}", request.classes.size(), n));
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

Splits all_for_test(size_t count) {
  Splits out;
  out.test.resize(count);
  std::iota(out.test.begin(), out.test.end(), 0);
  return out;
}

Splits split(int64_t items, const SplitRequest& request) {
  check(items, request);
  std::vector<Bundle> all = bundles(items, request);
  Random random(mix(request.seed, 0x5011));
  random.shuffle(all);
  // Dealing out class after class gives every part the same mix; within a class the order stays
  // random.
  std::stable_sort(all.begin(), all.end(),
                   [](const Bundle& a, const Bundle& b) { return a.label < b.label; });

  Splits out;
  const auto give = [](std::vector<int64_t>& to, const Bundle& bundle) {
    to.insert(to.end(), bundle.items.begin(), bundle.items.end());
  };
  std::vector<const Bundle*> rest;
  double debt = 0;  // what the test split is owed so far
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

}  // namespace fovea::data
