// Expected values are pycocoevalcap 1.2's.
#include "metrics/captions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <sstream>

#include "fovea/error.h"

namespace fovea::metrics {
namespace {

CaptionWords words_in(const char* text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}
const std::vector<CaptionWords> kSaid = {words_in("a man rides a horse"),
                                         words_in("two dogs run in the the snow"),
                                         words_in("a child eats an apple at the table")};
const std::vector<std::vector<CaptionWords>> kTold = {
    {words_in("a man rides a brown horse"), words_in("a man on a horse in a field"),
     words_in("the man is riding")},
    {words_in("two dogs play in the snow"), words_in("dogs run through snow")},
    {words_in("a child eats an apple at the table")}};

TEST(CaptionBleu, IsPycocoevalcaps) {
  const auto bleu = caption_bleu(kSaid, kTold);
  EXPECT_NEAR(bleu[0], 94.99999999525, 1e-9);
  EXPECT_NEAR(bleu[1], 91.55519067897938, 1e-9);
  EXPECT_NEAR(bleu[2], 78.24248429837771, 1e-9);
  EXPECT_NEAR(bleu[3], 71.494332348752, 1e-9);
}

TEST(CaptionBleu, TheClosestReferenceCountsAndTheShorterOfTwo) {
  // Four words against three and five: three count, so that nothing is too short.
  EXPECT_NEAR(caption_bleu({words_in("a b c d")}, {{words_in("a b c d e"), words_in("a b c")}})[0],
              100, 1e-6);
  EXPECT_NEAR(caption_bleu({words_in("a b")}, {{words_in("a b c d")}})[0], 100 * std::exp(-1),
              1e-6);
  EXPECT_NEAR(caption_bleu({{}}, {{words_in("a b c d")}})[3], 0, 1e-6) << "nothing was said";
}

TEST(CiderD, IsPycocoevalcaps) {
  EXPECT_NEAR(cider_d(kSaid, kTold), 5.258620208817102, 1e-9);
  EXPECT_EQ(cider_d({words_in("a b c d e")}, {{words_in("a b c d e")}}), 0) << "of one picture";
}

TEST(Captions, WhatCannotBeScoredIsRefused) {
  EXPECT_THROW(caption_bleu({}, {}), InvalidArgument);
  EXPECT_THROW(caption_bleu({{}}, {}), InvalidArgument);
  EXPECT_THROW(cider_d({{}}, {{}}), InvalidArgument);
}

TEST(Captions, TheSignatureNamesReferencesAndWords) {
  EXPECT_EQ(caption_signature(kTold), "nrefs:1-3|case:lc|tok:captions|smooth:none|len:closest");
}

}  // namespace
}  // namespace fovea::metrics
