// What models of text show: words shaded by weight, sentences with bars, word vectors in the plane.
#pragma once

#include "explain/explanation.h"
#include "text/model.h"
#include "text/tokens.h"

namespace fovea::text {

struct Shown {
  std::string title = {}, outcome = {};
  std::vector<Words> sentences = {};
  std::vector<int32_t> truth_words = {}, truth_sentences = {};
};
// One document's heat map: a row for each head; sentence bars where the model weighs sentences.
explain::Explanation heat_map(const Shown& shown, const Look& look);

// The two directions of largest variance (principal components): rows [n, width] -> [n, 2].
at::Tensor plane(const at::Tensor& rows);
// Words at their places in the plane.
explain::Plot word_plane(const std::string& title, const Words& words, const at::Tensor& places);

}  // namespace fovea::text
