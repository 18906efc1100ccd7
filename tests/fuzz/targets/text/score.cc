// BLEU and chrF of any two texts.
#include <cmath>

#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

// Inputs of even length are scored by BLEU, others by chrF: each takes longer than all else does.
void fuzz_score(std::string_view input) {
  input = input.substr(0, 100);  // every n-gram is counted
  Bytes bytes(input);
  const metrics::BleuOptions bleu{.tokeniser = static_cast<metrics::Tokeniser>(bytes.below(3)),
                                  .smoothing = static_cast<metrics::Smoothing>(bytes.below(4)),
                                  .lowercase = bytes.flag(),
                                  .effective_order = bytes.flag()};
  const metrics::ChrfOptions chrf{.word_order = bytes.below(3), .lowercase = bytes.flag()};
  const std::vector<std::string> hypotheses = {std::string(bytes.part())};
  std::vector<std::vector<std::string>> references = {{std::string(bytes.part())}};
  if (!bytes.rest().empty()) references.push_back({std::string(bytes.part())});
  const auto in_range = [](double value) { return value >= 0 && value <= 100 + 1e-9; };
  if (input.size() % 2 == 0)
    return require(in_range(metrics::corpus_bleu(hypotheses, references, bleu).score),
                   "BLEU is between 0 and 100");
  require(in_range(metrics::corpus_chrf(hypotheses, references, chrf)),
          "chrF is between 0 and 100");
  const double itself = metrics::corpus_chrf(hypotheses, {hypotheses}, chrf);
  require(itself == 0 || std::abs(itself - 100) < 1e-9, "a text matches itself");
}
const Registration score{"score", fuzz_score};

}  // namespace
}  // namespace fovea::fuzz
