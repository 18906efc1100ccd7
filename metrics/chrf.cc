#include "metrics/chrf.h"

#include <algorithm>
#include <unordered_map>

#include "metrics/bleu.h"
#include "metrics/corpus.h"
#include "metrics/unicode.h"

namespace fovea::metrics {
namespace {

using Counts = std::unordered_map<std::u32string, int64_t>;

constexpr std::u32string_view kPunctuationMarks = U"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
bool is_mark(char32_t c) { return kPunctuationMarks.find(c) != std::u32string_view::npos; }

// One punctuation mark is separated from the end of a word, or else from its beginning.
std::vector<std::u32string> words_of(std::u32string_view text) {
  std::vector<std::u32string> out;
  for (const std::u32string& word : split(text)) {
    const size_t n = word.size();
    if (n > 1 && is_mark(word.back())) {
      out.push_back(word.substr(0, n - 1));
      out.push_back(word.substr(n - 1));
    } else if (n > 1 && is_mark(word.front())) {
      out.push_back(word.substr(0, 1));
      out.push_back(word.substr(1));
    } else {
      out.push_back(word);
    }
  }
  return out;
}

// One table for each order.
std::vector<Counts> count_ngrams(std::string_view line, const ChrfOptions& options) {
  std::u32string text = decode_utf8(line);
  if (options.lowercase) text = lower(text);
  std::u32string letters;
  for (const std::u32string& word : split(text)) letters += word;
  std::vector<Counts> tables;
  for (size_t n = 1; n <= options.char_order; ++n) {
    Counts& table = tables.emplace_back();
    for (size_t i = 0; i + n <= letters.size(); ++i) ++table[letters.substr(i, n)];
  }
  const std::vector<std::u32string> words =
      options.word_order > 0 ? words_of(text) : std::vector<std::u32string>{};
  for (size_t n = 1; n <= options.word_order; ++n) {
    Counts& table = tables.emplace_back();
    for (size_t i = 0; i + n <= words.size(); ++i) {
      std::u32string ngram = words[i];
      for (size_t k = 1; k < n; ++k) ngram += U' ' + words[i + k];
      ++table[ngram];
    }
  }
  return tables;
}

void add_matches(const Counts& hypothesis, const Counts& reference, ChrfCounts& out) {
  double n_hypothesis = 0, n_reference = 0, matches = 0;
  for (const auto& [ngram, count] : hypothesis) {
    n_hypothesis += static_cast<double>(count);
    const auto found = reference.find(ngram);
    if (found != reference.end()) matches += static_cast<double>(std::min(count, found->second));
  }
  for (const auto& [ngram, count] : reference) n_reference += static_cast<double>(count);
  out.push_back(reference.empty() ? 0 : n_hypothesis);
  out.push_back(n_reference);
  out.push_back(matches);
}

}  // namespace

ChrfCounts chrf_counts(std::string_view hypothesis, const std::vector<std::string_view>& references,
                       const ChrfOptions& options) {
  const std::vector<Counts> tables = count_ngrams(hypothesis, options);
  ChrfCounts best;
  double best_score = -1;
  for (const std::string_view reference : references) {
    const std::vector<Counts> other = count_ngrams(reference, options);
    ChrfCounts counts;
    for (size_t n = 0; n < tables.size(); ++n) add_matches(tables[n], other[n], counts);
    const double score = chrf_from_counts(counts, options);
    if (score > best_score) best_score = score, best = counts;
  }
  return best;
}

double chrf_from_counts(const ChrfCounts& counts, const ChrfOptions& options) {
  const double factor = options.beta * options.beta;
  double precision = 0, recall = 0, orders = 0;
  for (size_t n = 0; n + 2 < counts.size(); n += 3) {
    const double n_hypothesis = counts[n], n_reference = counts[n + 1], matches = counts[n + 2];
    if (n_hypothesis <= 0 || n_reference <= 0) continue;
    precision += matches / n_hypothesis;
    recall += matches / n_reference;
    ++orders;
  }
  if (orders == 0 || precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

double corpus_chrf(const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references,
                   const ChrfOptions& options) {
  check_parallel(hypotheses, references);
  ChrfCounts sum(3 * (options.char_order + options.word_order), 0.0);
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const ChrfCounts counts = chrf_counts(hypotheses[i], references_of(references, i), options);
    for (size_t n = 0; n < sum.size(); ++n) sum[n] += counts[n];
  }
  return chrf_from_counts(sum, options);
}

std::string chrf_name(const ChrfOptions& options) {
  return "chrF" + std::to_string(static_cast<int>(options.beta)) +
         std::string(options.word_order, '+');
}

std::string chrf_signature(const ChrfOptions& options, size_t references, size_t resamples) {
  std::string out = "nrefs:" + std::to_string(references);
  if (resamples > 0) out += "|bs:" + std::to_string(resamples) + "|seed:12345";
  out += std::string("|case:") + (options.lowercase ? "lc" : "mixed") +
         "|eff:yes|nc:" + std::to_string(options.char_order);
  return out + "|nw:" + std::to_string(options.word_order) +
         "|space:no|version:" + kSacrebleuVersion;
}

}  // namespace fovea::metrics
