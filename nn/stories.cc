#include <ATen/ATen.h>

#include <algorithm>
#include <random>

#include "fovea/nn/memory.h"

namespace fovea::nn {
namespace {

using Ids = std::vector<int64_t>;

// What stands in the memory: numbers of lines, and -1 for an empty one.
Ids kept_lines(int64_t lines, const Remembering& how, std::mt19937_64& random) {
  Ids out;
  for (int64_t line = std::max<int64_t>(0, lines - how.slots); line < lines; ++line) {
    // The generator's bits are the same everywhere, the standard distributions are not.
    if (how.noise > 0 && static_cast<double>(random() >> 11) * 0x1.0p-53 < how.noise)
      out.push_back(-1);
    out.push_back(line);
  }
  const auto surplus = static_cast<int64_t>(out.size()) - how.slots;
  if (surplus > 0) out.erase(out.begin(), out.begin() + surplus);
  return out;
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
  return {words.to(device), lines.to(device), stories.to(device), question_words.to(device),
          question_bounds.to(device)};
}

Remembered pack_stories(std::span<const Asked> asked, const Remembering& how) {
  Rows lines, questions;
  std::vector<int32_t> stories{0};
  Remembered out;
  std::mt19937_64 random(how.seed);
  for (const Asked& one : asked) {
    const Ids memory = kept_lines(static_cast<int64_t>(one.lines.size()), how, random);
    for (const int64_t line : memory)
      lines.add(line < 0 ? Ids{} : one.lines[static_cast<size_t>(line)]);
    stories.push_back(static_cast<int32_t>(lines.bounds.size() - 1));
    questions.add(one.question);
    Ids& support = out.support.emplace_back();
    for (const int64_t line : one.support)
      if (const auto at = std::find(memory.begin(), memory.end(), line); at != memory.end())
        support.push_back(at - memory.begin());
    out.forgotten.push_back(static_cast<int64_t>(one.support.size() - support.size()));
  }
  out.stories = {tensor_of(lines.words), tensor_of(lines.bounds), tensor_of(stories),
                 tensor_of(questions.words), tensor_of(questions.bounds)};
  return out;
}

}  // namespace fovea::nn
