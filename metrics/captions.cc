#include "metrics/captions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "fovea/error.h"

namespace fovea::metrics {
namespace {

constexpr size_t kOrder = 4;
using Grams = std::map<CaptionWords, double>;

// The n-grams of one length and how often each stands there.
Grams grams(const CaptionWords& words, size_t n) {
  Grams out;
  for (size_t i = 0; i + n <= words.size(); ++i)
    out[CaptionWords(words.begin() + static_cast<int64_t>(i),
                     words.begin() + static_cast<int64_t>(i + n))] += 1;
  return out;
}

void check_captions(const std::vector<CaptionWords>& candidates,
                    const std::vector<std::vector<CaptionWords>>& references) {
  if (candidates.empty()) throw InvalidArgument("candidates: none, expected at least one");
  if (references.size() != candidates.size())
    throw InvalidArgument("references: of " + std::to_string(references.size()) +
                          " captions, expected " + std::to_string(candidates.size()));
  for (size_t i = 0; i < references.size(); ++i)
    if (references[i].empty())
      throw InvalidArgument("references: none of caption " + std::to_string(i) +
                            ", expected at least one");
}

double closest_length(size_t length, const std::vector<CaptionWords>& references) {
  const auto distance = [&](const CaptionWords& one) {
    const size_t n = one.size();
    return std::pair(n > length ? n - length : length - n, n);
  };
  return static_cast<double>(std::min_element(references.begin(), references.end(),
                                              [&](const CaptionWords& a, const CaptionWords& b) {
                                                return distance(a) < distance(b);
                                              })
                                 ->size());
}

// A caption's n-grams of one length, each times the logarithm of its rarity.
struct Weighted {
  Grams of;
  double norm = 0;
};
class Rarity {
 public:
  explicit Rarity(const std::vector<std::vector<CaptionWords>>& references)
      : pictures_(std::log(static_cast<double>(references.size()))) {
    for (const auto& of_picture : references)
      for (size_t n = 1; n <= kOrder; ++n) {
        std::set<CaptionWords> seen;
        for (const CaptionWords& reference : of_picture)
          for (const auto& [gram, count] : grams(reference, n)) seen.insert(gram);
        for (const CaptionWords& gram : seen) pictures_with_[gram] += 1;
      }
  }
  Weighted weighted(const CaptionWords& words, size_t n) const {
    Weighted out{grams(words, n)};
    double squares = 0;
    for (auto& [gram, weight] : out.of) {
      const auto found = pictures_with_.find(gram);
      weight *=
          pictures_ - std::log(std::max(1.0, found == pictures_with_.end() ? 0 : found->second));
      squares += weight * weight;
    }
    out.norm = std::sqrt(squares);
    return out;
  }

 private:
  double pictures_;  // logarithm of their number
  Grams pictures_with_;
};

double similarity(const Weighted& candidate, const Weighted& reference) {
  if (candidate.norm == 0 || reference.norm == 0) return 0;
  double product = 0;
  for (const auto& [gram, weight] : candidate.of) {
    const auto found = reference.of.find(gram);
    if (found != reference.of.end()) product += std::min(weight, found->second) * found->second;
  }
  return product / (candidate.norm * reference.norm);
}

// The field's programs measure length in pairs of words.
double pairs_in(const CaptionWords& words) {
  return words.empty() ? 0 : static_cast<double>(words.size() - 1);
}

}  // namespace

std::array<double, 4> caption_bleu(const std::vector<CaptionWords>& candidates,
                                   const std::vector<std::vector<CaptionWords>>& references) {
  check_captions(candidates, references);
  std::array<double, kOrder> correct{}, total{};
  double length = 0, wanted = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    length += static_cast<double>(candidates[i].size());
    wanted += closest_length(candidates[i].size(), references[i]);
    for (size_t n = 1; n <= kOrder; ++n) {
      Grams most;
      for (const CaptionWords& reference : references[i])
        for (const auto& [gram, count] : grams(reference, n))
          most[gram] = std::max(most[gram], count);
      for (const auto& [gram, count] : grams(candidates[i], n)) {
        total[n - 1] += count;
        const auto found = most.find(gram);
        if (found != most.end()) correct[n - 1] += std::min(count, found->second);
      }
    }
  }
  // What keeps pycocoevalcap from dividing by zero; its numbers are repeated to the last digit.
  constexpr double kSmall = 1e-9, kTiny = 1e-15;
  const double ratio = (length + kTiny) / (wanted + kSmall);
  const double brevity = ratio < 1 ? std::exp(1 - 1 / ratio) : 1;
  std::array<double, kOrder> out{};
  double product = 1;
  for (size_t n = 0; n < kOrder; ++n) {
    product *= (correct[n] + kTiny) / (total[n] + kSmall);
    out[n] = 100 * brevity * std::pow(product, 1 / static_cast<double>(n + 1));
  }
  return out;
}

double cider_d(const std::vector<CaptionWords>& candidates,
               const std::vector<std::vector<CaptionWords>>& references) {
  check_captions(candidates, references);
  constexpr double kDeviation = 6;
  const Rarity rarity(references);
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i)
    for (size_t n = 1; n <= kOrder; ++n) {
      const Weighted candidate = rarity.weighted(candidates[i], n);
      double of_references = 0;
      for (const CaptionWords& reference : references[i]) {
        const double apart = pairs_in(candidates[i]) - pairs_in(reference);
        of_references += similarity(candidate, rarity.weighted(reference, n)) *
                         std::exp(-apart * apart / (2 * kDeviation * kDeviation));
      }
      sum += of_references / static_cast<double>(references[i].size());
    }
  return 10 * sum / static_cast<double>(kOrder * candidates.size());
}

std::string caption_signature(const std::vector<std::vector<CaptionWords>>& references) {
  size_t least = SIZE_MAX, most = 0;
  for (const auto& one : references) {
    least = std::min(least, one.size());
    most = std::max(most, one.size());
  }
  const std::string count =
      least == most ? std::to_string(most) : std::to_string(least) + "-" + std::to_string(most);
  return "nrefs:" + (references.empty() ? "0" : count) +
         "|case:lc|tok:captions|smooth:none|len:closest";
}

}  // namespace fovea::metrics
