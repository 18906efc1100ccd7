// chrF and chrF++ (Popović 2015, 2017), equal to sacreBLEU's, with its signature.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::metrics {

struct ChrfOptions {
  size_t char_order = 6;
  size_t word_order = 0;  // 2: chrF++
  double beta = 2;
  bool lowercase = false;
};

// For each order: n-grams of the hypothesis, of the reference, and matches; characters first, then
// words.
using ChrfCounts = std::vector<double>;

ChrfCounts chrf_counts(std::string_view hypothesis, const std::vector<std::string_view>& references,
                       const ChrfOptions&);
double chrf_from_counts(const ChrfCounts&, const ChrfOptions&);  // 0 to 100

double corpus_chrf(const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references, const ChrfOptions&);
std::string chrf_name(const ChrfOptions&);  // chrF2, chrF2++
std::string chrf_signature(const ChrfOptions&, size_t references, size_t resamples = 0);

}  // namespace fovea::metrics
