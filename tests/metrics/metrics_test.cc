// Expected values are sacreBLEU 2.6.0's and NumPy's; tests/python compares whole corpora with the
// package itself.
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/error.h"
#include "metrics/alignment.h"
#include "metrics/bleu.h"
#include "metrics/bootstrap.h"
#include "metrics/chrf.h"
#include "metrics/classification.h"
#include "metrics/unicode.h"

namespace fovea::metrics {
namespace {

std::string joined(const char* line, Tokeniser tokeniser) {
  std::string out;
  for (const std::string& token : tokenise(decode_utf8(line), tokeniser))
    out += (out.empty() ? "" : " ") + token;
  return out;
}

const std::vector<std::string> kHypotheses = {"The cat, it sat on 3.5 mats - right?", "a b c d e"};
const std::vector<std::vector<std::string>> kReferences = {
    {"The cat sat on 3.5 mats, right?", "a b c d f"}};

TEST(Tokenise, Is13a) {
  EXPECT_EQ(joined("I paid $3,500.50 (really!) - see A/B: \"x\" &amp; 1-2, end.", Tokeniser::k13a),
            "I paid $ 3,500.50 ( really ! ) - see A / B : \" x \" & 1 - 2 , end .");
  EXPECT_EQ(joined("a,b.c 3.d e.4 ..5 x--y 9--8", Tokeniser::k13a),
            "a , b . c 3 . d e . 4 . .5 x--y 9 - -8");
}

TEST(Tokenise, IsInternational) {
  EXPECT_EQ(joined("Größe: „3,5 m²“ – naïve… ¿sí? 10€", Tokeniser::kIntl),
            "Größe : „ 3,5 m² “ – naïve … ¿ sí ? 10 €");
  EXPECT_EQ(joined("a,b.c 3.d e.4 ..5 x--y 9--8", Tokeniser::kIntl),
            "a , b . c 3 . d e . 4 . .5 x - - y 9 - - 8");
}

TEST(Unicode, LowersAsPythonDoes) {
  EXPECT_EQ(encode_utf8(lower(decode_utf8("ÄÖÜ ΣΑΣ İ ẞ ДЖ"))), "äöü σας i̇ ß дж");
}

TEST(Unicode, BadBytesBecomeReplacements) {
  EXPECT_EQ(decode_utf8("a\xff\xc3"), U"a\uFFFD\uFFFD");
  EXPECT_EQ(decode_utf8("\xed\xa0\x80").size(), 3u);  // a surrogate is not a character
}

TEST(Bleu, EqualsSacrebleu) {
  const Bleu bleu = corpus_bleu(kHypotheses, kReferences, {});
  EXPECT_NEAR(bleu.score, 41.944354523254866, 1e-10);
  EXPECT_NEAR(bleu.precisions[1], 100.0 * 8 / 14, 1e-10);
  EXPECT_EQ(bleu_signature({}, 1), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
}

TEST(Bleu, NothingMatchedIsZero) { EXPECT_EQ(corpus_bleu({"x"}, {{"y"}}, {}).score, 0); }

TEST(Bleu, RefusesFilesOfDifferentLength) {
  EXPECT_THROW(corpus_bleu({"a", "b"}, {{"a"}}, {}), InvalidArgument);
  EXPECT_THROW(corpus_bleu({}, {{}}, {}), InvalidArgument);
}

TEST(Chrf, EqualsSacrebleu) {
  ChrfOptions options;
  options.word_order = 2;
  EXPECT_NEAR(corpus_chrf(kHypotheses, kReferences, options), 73.89159097995677, 1e-10);
  EXPECT_EQ(chrf_name(options), "chrF2++");
}

TEST(Bootstrap, DrawsNumpysNumbers) {
  Pcg64 generator(12345);
  for (const uint32_t expected : {699u, 227u, 788u, 316u, 204u, 797u, 642u, 676u, 988u, 391u}) {
    EXPECT_EQ(generator.below(1000), expected);
  }
}

TEST(Bootstrap, IntervalIsSacrebleus) {
  BleuOptions options{.tokeniser = Tokeniser::kIntl, .lowercase = true};
  std::vector<BleuCounts> counts;
  for (size_t i = 0; i < 2; ++i)
    counts.push_back(bleu_counts(kHypotheses[i], {kReferences[0][i]}, options));
  const Interval interval = bootstrap(2, 50, [&](const std::vector<uint32_t>& chosen) {
    BleuCounts sum;
    for (const uint32_t i : chosen) sum += counts[i];
    return bleu_from_counts(sum, options).score;
  });
  EXPECT_NEAR(interval.mean, 46.3221629820893, 1e-4);  // the package sums in single precision
  EXPECT_NEAR(interval.half_width, 17.11215983869593, 1e-4);
}

TEST(Classification, AucNeedsNumbers) {
  EXPECT_DOUBLE_EQ(auc({0.1, 0.9, 0.4, 0.4}, {0, 1, 0, 1}).value(), 0.875);
  for (const double none : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    try {
      auc({0.1, none, 0.4}, {0, 1, 0});
      ADD_FAILURE() << "a score of " << none << " was ranked";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).find("auc: the score of item 1 is "), 0u) << error.what();
    }
  }
}

TEST(Bootstrap, RefusesWhatHasNoOrder) {
  EXPECT_THROW(bootstrap(3, 5, [](const auto&) { return std::nan(""); }), InvalidArgument);
}

TEST(Alignment, ErrorRateSumsOverTheCorpus) {
  AlignmentErrorRate rate;
  rate.add(parse_pharaoh("0-0 1-1"), parse_gold("1-1 2p2 3-3", IndexBase::kOne));
  rate.add(parse_pharaoh("0-1"), parse_gold("1-1", IndexBase::kOne));
  // A = 3, S = 3, A∩S = 1, A∩P = 2.
  EXPECT_DOUBLE_EQ(rate.error_rate(), 1 - 3.0 / 6);
  EXPECT_DOUBLE_EQ(rate.precision(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(rate.recall(), 1.0 / 3);
}

TEST(Alignment, NoLinksAndNoGoldIsSkippedAndCounted) {
  AlignmentErrorRate rate;
  rate.add({}, {});
  EXPECT_TRUE(std::isnan(rate.error_rate()));
  EXPECT_EQ(rate.skipped(), 1);
}

TEST(Alignment, ReadsTheSharedTasksFormat) {
  std::vector<GoldLinks> gold(2);
  for (const char* line : {"0001 1 1 S", "0001 2 3 P", "", "2 4 4", "2 5 5 0.9"})
    parse_naacl(line, gold);
  EXPECT_EQ(gold[0].sure, (Links{{0, 0}}));
  EXPECT_EQ(gold[0].possible, (Links{{0, 0}, {1, 2}}));
  EXPECT_EQ(gold[1].sure, (Links{{3, 3}, {4, 4}}));
  EXPECT_THROW(parse_naacl("2 4 4 X", gold), InvalidArgument);
}

TEST(Alignment, ASentenceBeyondTheLastIsRefused) {
  try {
    std::vector<GoldLinks> gold(2);
    parse_naacl("10000000 1 1", gold);
    FAIL() << "expected an error";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "alignment: '10000000 1 1', expected a sentence of the 2 there are");
  }
}

TEST(Alignment, RefusesWhatIsNotALink) {
  EXPECT_THROW(parse_pharaoh("1-x"), InvalidArgument);
  EXPECT_THROW(parse_pharaoh("12"), InvalidArgument);
  EXPECT_THROW(parse_pharaoh("-1-2"), InvalidArgument);
  EXPECT_THROW(parse_gold("0-1", IndexBase::kOne), InvalidArgument);
  EXPECT_THROW(parse_pharaoh("99999999999-1"), InvalidArgument);
  EXPECT_THROW(parse_pharaoh("2147483647-0"), InvalidArgument);  // no neighbour beyond it
}

TEST(Alignment, SymmetrisationLiesBetweenIntersectionAndUnion) {
  const Links forward = parse_pharaoh("0-0 1-1 2-1 4-4"),
              backward = parse_pharaoh("0-0 1-1 1-2 3-3");
  EXPECT_EQ(symmetrise(forward, backward, Symmetrisation::kIntersection), parse_pharaoh("0-0 1-1"));
  EXPECT_EQ(symmetrise(forward, backward, Symmetrisation::kUnion),
            parse_pharaoh("0-0 1-1 1-2 2-1 3-3 4-4"));
  // 1-2 and 2-1 touch the diagonal and have a free side; then 3-3, which touches 2-1's and 1-2's
  // corner, then 4-4.
  EXPECT_EQ(symmetrise(forward, backward, Symmetrisation::kGrowDiagFinalAnd),
            parse_pharaoh("0-0 1-1 1-2 2-1 3-3 4-4"));
  EXPECT_EQ(format_pharaoh(forward), "0-0 1-1 2-1 4-4");
}

}  // namespace
}  // namespace fovea::metrics
