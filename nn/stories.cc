#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "fovea/nn/memory.h"

namespace fovea::nn {
namespace {

using Ids = std::vector<int64_t>;

// From 0 to 1. The generator's bits are the same everywhere, the standard distributions are not.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1.0p-53; }

// What stands in the memory: numbers of lines, and -1 for an empty one.
Ids kept_lines(int64_t lines, const Remembering& how, std::mt19937_64& random) {
  Ids out;
  const double chance = how.kind == Noise::kEmptyLines ? how.noise : 0;
  for (int64_t line = std::max<int64_t>(0, lines - how.slots); line < lines; ++line) {
    if (chance > 0 && uniform(random) < chance) out.push_back(-1);
    out.push_back(line);
  }
  const auto surplus = static_cast<int64_t>(out.size()) - how.slots;
  if (surplus > 0) out.erase(out.begin(), out.begin() + surplus);
  return out;
}

// Times of so many lines, the oldest first. Up to a share `noise` of all times is passed over, each
// set of them as likely as the others; times beyond the last slot are the last slot's.
void add_ages(Ids& out, int64_t lines, const Remembering& how, std::mt19937_64& random) {
  const double most = std::ceil(how.noise * static_cast<double>(lines));
  auto gaps = static_cast<int64_t>(uniform(random) * (most + 1));
  int64_t left = lines + gaps;
  for (int64_t line = lines; line > 0; --left) {
    if (uniform(random) * static_cast<double>(left) < static_cast<double>(gaps)) {
      --gaps;
      continue;
    }
    out.push_back(std::min(left - 1, how.slots - 1));
    --line;
  }
}

// Rows one after another, with bounds.
struct Rows {
  Ids words;
  std::vector<int32_t> bounds{0};

  void add(const Ids& row) {
    words.insert(words.end(), row.begin(), row.end());
    bounds.push_back(static_cast<int32_t>(words.size()));
  }
};

at::Tensor tensor_of(const std::vector<int32_t>& values) { return at::tensor(values, at::kInt); }
at::Tensor tensor_of(const Ids& values) { return at::tensor(values, at::kLong); }

}  // namespace

Stories Stories::to(torch::Device device) const {
  return {words.to(device),           lines.to(device),
          stories.to(device),         question_words.to(device),
          question_bounds.to(device), ages.defined() ? ages.to(device) : ages};
}

Remembered pack_stories(std::span<const Asked> asked, const Remembering& how) {
  Rows lines, questions;
  std::vector<int32_t> stories{0};
  Ids ages;
  const bool gaps = how.kind == Noise::kGaps && how.noise > 0;
  Remembered out;
  std::mt19937_64 random(how.seed);
  for (const Asked& one : asked) {
    const Ids memory = kept_lines(static_cast<int64_t>(one.lines.size()), how, random);
    for (const int64_t line : memory)
      lines.add(line < 0 ? Ids{} : one.lines[static_cast<size_t>(line)]);
    stories.push_back(static_cast<int32_t>(lines.bounds.size() - 1));
    if (gaps) add_ages(ages, static_cast<int64_t>(memory.size()), how, random);
    questions.add(one.question);
    Ids& support = out.support.emplace_back();
    for (const int64_t line : one.support)
      if (const auto at = std::find(memory.begin(), memory.end(), line); at != memory.end())
        support.push_back(at - memory.begin());
    out.forgotten.push_back(static_cast<int64_t>(one.support.size() - support.size()));
  }
  out.stories = {tensor_of(lines.words), tensor_of(lines.bounds), tensor_of(stories),
                 tensor_of(questions.words), tensor_of(questions.bounds)};
  if (gaps) out.stories.ages = tensor_of(ages);
  return out;
}

}  // namespace fovea::nn
