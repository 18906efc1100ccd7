// What reports call a figure, and how they write it.
#include "explain/figure_words.h"

#include <gtest/gtest.h>

namespace fovea::explain {
namespace {

TEST(FigureWords, NamesAreWordsOfEverydayUse) {
  EXPECT_EQ(figure_name("loo_rmse"), "error with each observation left out (RMSE)");
  EXPECT_EQ(figure_name("hit_rate"), "largest weight on the right item");
  EXPECT_EQ(figure_name("accuracy"), "right answers");
  EXPECT_EQ(figure_name("error_two-lines"), "wrong answers: two-lines");
  EXPECT_EQ(figure_name("exact_10"), "exactly right: 10");
  EXPECT_EQ(figure_name("gru_exact_10"), "GRU: exactly right: 10");
  EXPECT_EQ(figure_name("bleu_greedy"), "BLEU greedy");
  EXPECT_EQ(figure_name("words_per_second"), "words per second");
  EXPECT_EQ(figure_name("bitsy"), "bitsy");  // no beginning within a word
}

TEST(FigureWords, SharesAreInPerCentAndDifferencesAreNot) {
  EXPECT_EQ(figure_text("accuracy", 0.985), "98.5 %");
  EXPECT_EQ(figure_text("error_one-line", 0.0123), "1.2 %");
  EXPECT_EQ(figure_text("gru_exact_10", 0.42), "42.0 %");
  EXPECT_EQ(figure_text("zeros_sparsemax", 0.7983), "79.8 %");
  EXPECT_EQ(figure_text("identity_error", 6e-16), "6.00 · 10⁻¹⁶");
  EXPECT_EQ(figure_text("size_error", 0.25), "0.25");
}

TEST(FigureWords, NumbersHaveFourDigitsAndNoE) {
  EXPECT_EQ(figure_text("rmse", 0.32186), "0.3219");
  EXPECT_EQ(figure_text("flops", 618700), "618,700");
  EXPECT_EQ(figure_text("words_per_second", 3958123), "3,958,000");
  EXPECT_EQ(figure_text("parameters", 13594), "13,594");
  EXPECT_EQ(figure_text("loss", 8.844e-05), "8.84 · 10⁻⁵");
  EXPECT_EQ(figure_text("loss", 0), "0");
  EXPECT_EQ(figure_text("log_probability", -1.294), "-1.294");
  EXPECT_EQ(figure_text("log_probability", -12940), "−12,940");
}

}  // namespace
}  // namespace fovea::explain
