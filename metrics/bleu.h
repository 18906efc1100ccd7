// Corpus BLEU (Papineni et al. 2002), equal to sacreBLEU's, with its signature.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "metrics/tokenise.h"

namespace fovea::metrics {

inline constexpr size_t kBleuOrder = 4;
// The sacreBLEU release whose numbers these are; part of the signature.
inline constexpr const char* kSacrebleuVersion = "2.6.0";

enum class Smoothing { kExp, kFloor, kAddK, kNone };
Smoothing parse_smoothing(std::string_view name);

struct BleuOptions {
  Tokeniser tokeniser = Tokeniser::k13a;
  Smoothing smoothing = Smoothing::kExp;
  bool lowercase = false;
  bool effective_order = false;  // for single sentences
};

// What a sentence adds to the corpus: matched and possible n-grams, lengths.
struct BleuCounts {
  std::array<double, kBleuOrder> correct{}, total{};
  double hypothesis_length = 0, reference_length = 0;
  BleuCounts& operator+=(const BleuCounts&);
};

struct Bleu {
  double score = 0;  // 0 to 100
  std::array<double, kBleuOrder> precisions{};
  double brevity_penalty = 1;
  BleuCounts counts;
};

BleuCounts bleu_counts(std::string_view hypothesis, const std::vector<std::string_view>& references,
                       const BleuOptions&);
Bleu bleu_from_counts(BleuCounts, const BleuOptions&);

// references[r][i] is the r-th reference of sentence i. Throws InvalidArgument where counts differ
// or are zero.
Bleu corpus_bleu(const std::vector<std::string>& hypotheses,
                 const std::vector<std::vector<std::string>>& references, const BleuOptions&);

// For example `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`; `resamples` > 0 adds
// the bootstrap's part.
std::string bleu_signature(const BleuOptions&, size_t references, size_t resamples = 0);

}  // namespace fovea::metrics
