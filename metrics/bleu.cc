#include "metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "metrics/corpus.h"
#include "metrics/unicode.h"

namespace fovea::metrics {
namespace {

constexpr double kFloorValue = 0.1;
constexpr double kAddKValue = 1;

using NgramCounts = std::array<std::unordered_map<std::string, int64_t>, kBleuOrder>;

std::vector<std::string> prepare(std::string_view line, const BleuOptions& options) {
  std::u32string text = decode_utf8(line);
  if (options.lowercase) text = lower(text);
  return tokenise(strip_right(text), options.tokeniser);
}

NgramCounts count_ngrams(const std::vector<std::string>& tokens) {
  NgramCounts counts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string ngram;
    for (size_t n = 0; n < kBleuOrder && i + n < tokens.size(); ++n) {
      if (n > 0) ngram += ' ';
      ngram += tokens[i + n];
      ++counts[n][ngram];
    }
  }
  return counts;
}

double logarithm(double x) { return x == 0 ? -9999999999.0 : std::log(x); }

std::string_view smoothing_signature(Smoothing smoothing) {
  switch (smoothing) {
    case Smoothing::kExp:
      return "exp";
    case Smoothing::kFloor:
      return "floor[0.10]";
    case Smoothing::kAddK:
      return "add-k[1.00]";
    case Smoothing::kNone:
      break;
  }
  return "none";
}

}  // namespace

Smoothing parse_smoothing(std::string_view name) {
  if (name == "exp") return Smoothing::kExp;
  if (name == "floor") return Smoothing::kFloor;
  if (name == "add-k") return Smoothing::kAddK;
  if (name == "none") return Smoothing::kNone;
  throw InvalidArgument("smooth: '" + std::string(name) + "', expected exp, floor, add-k or none");
}

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t n = 0; n < kBleuOrder; ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuCounts bleu_counts(std::string_view hypothesis, const std::vector<std::string_view>& references,
                       const BleuOptions& options) {
  const std::vector<std::string> tokens = prepare(hypothesis, options);
  const double length = static_cast<double>(tokens.size());
  NgramCounts allowed;  // the largest count of each n-gram in any reference
  double closest = std::numeric_limits<double>::infinity();
  for (const std::string_view reference : references) {
    const std::vector<std::string> words = prepare(reference, options);
    const double n_words = static_cast<double>(words.size());
    const double gap = std::abs(n_words - length), best = std::abs(closest - length);
    if (gap < best || (gap == best && n_words < closest)) closest = n_words;
    const NgramCounts counts = count_ngrams(words);
    for (size_t n = 0; n < kBleuOrder; ++n) {
      for (const auto& [ngram, count] : counts[n])
        allowed[n][ngram] = std::max(allowed[n][ngram], count);
    }
  }
  BleuCounts result;
  result.hypothesis_length = length;
  result.reference_length = closest;
  const NgramCounts counts = count_ngrams(tokens);
  for (size_t n = 0; n < kBleuOrder; ++n) {
    for (const auto& [ngram, count] : counts[n]) {
      result.total[n] += static_cast<double>(count);
      const auto found = allowed[n].find(ngram);
      if (found != allowed[n].end())
        result.correct[n] += static_cast<double>(std::min(count, found->second));
    }
  }
  return result;
}

Bleu bleu_from_counts(BleuCounts counts, const BleuOptions& options) {
  Bleu bleu;
  bleu.counts = counts;
  if (counts.hypothesis_length < counts.reference_length) {
    bleu.brevity_penalty = counts.hypothesis_length > 0
                               ? std::exp(1 - counts.reference_length / counts.hypothesis_length)
                               : 0;
  }
  if (std::all_of(counts.correct.begin(), counts.correct.end(), [](double c) { return c == 0; }))
    return bleu;

  double halving = 1;  // each order without a match counts half of the one before it
  size_t order = kBleuOrder;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    if (options.smoothing == Smoothing::kAddK && n > 0) {
      counts.correct[n] += kAddKValue;
      counts.total[n] += kAddKValue;
    }
    if (counts.total[n] == 0) break;
    if (options.effective_order) order = n + 1;
    if (counts.correct[n] > 0) {
      bleu.precisions[n] = 100.0 * counts.correct[n] / counts.total[n];
    } else if (options.smoothing == Smoothing::kExp) {
      halving *= 2;
      bleu.precisions[n] = 100.0 / (halving * counts.total[n]);
    } else if (options.smoothing == Smoothing::kFloor) {
      bleu.precisions[n] = 100.0 * kFloorValue / counts.total[n];
    }
  }
  double sum = 0;
  for (size_t n = 0; n < order; ++n) sum += logarithm(bleu.precisions[n]);
  bleu.score = bleu.brevity_penalty * std::exp(sum / static_cast<double>(order));
  return bleu;
}

Bleu corpus_bleu(const std::vector<std::string>& hypotheses,
                 const std::vector<std::vector<std::string>>& references,
                 const BleuOptions& options) {
  check_parallel(hypotheses, references);
  BleuCounts sum;
  for (size_t i = 0; i < hypotheses.size(); ++i)
    sum += bleu_counts(hypotheses[i], references_of(references, i), options);
  return bleu_from_counts(sum, options);
}

std::string bleu_signature(const BleuOptions& options, size_t references, size_t resamples) {
  std::string out = "nrefs:" + std::to_string(references);
  if (resamples > 0) out += "|bs:" + std::to_string(resamples) + "|seed:12345";
  out += std::string("|case:") + (options.lowercase ? "lc" : "mixed") +
         "|eff:" + (options.effective_order ? "yes" : "no");
  out += "|tok:" + std::string(name_of(options.tokeniser)) +
         "|smooth:" + std::string(smoothing_signature(options.smoothing));
  return out + "|version:" + kSacrebleuVersion;
}

}  // namespace fovea::metrics
