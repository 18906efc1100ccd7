// Scores of captions, as the captioning field computes them: BLEU-1 to 4 and CIDEr-D against several
// references, equal to those of pycocoevalcap on the same words.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace fovea::metrics {

using CaptionWords = std::vector<std::string>;

// Corpus BLEU (Papineni et al. 2002) of 1 to 4 words, 0 to 100, without smoothing. references[i] are
// those of candidate i, in any number. The length that counts is that of the reference closest in
// length, the shorter of two that are equally close. InvalidArgument: no candidates, another number of
// lists of references, a candidate without references.
std::array<double, 4> caption_bleu(const std::vector<CaptionWords>& candidates,
                                   const std::vector<std::vector<CaptionWords>>& references);

// CIDEr-D (Vedantam, Zitnick & Parikh 2015): the cosine of n-gram counts weighted by how rare an n-gram
// is among the pictures, clipped, times a Gaussian of the difference in length (deviation 6), times 10;
// mean over n = 1 to 4, references and candidates. Of a single picture it is 0: no n-gram is rare.
double cider_d(const std::vector<CaptionWords>& candidates,
               const std::vector<std::vector<CaptionWords>>& references);

// "nrefs:5|case:lc|tok:captions|smooth:none|len:closest": says how the words were made; `captions` is
// data::caption_words.
std::string caption_signature(const std::vector<std::vector<CaptionWords>>& references);

}  // namespace fovea::metrics
