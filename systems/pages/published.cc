#include "systems/pages/published.h"

#include <map>

namespace fovea::systems {
namespace {

const std::map<std::string, const char*> kPublished = {
    {"deep-sets", "ModelNet40, 5,000 points per cloud: 90 ± 0.3 %; with 100 points 82 ± 2 %"},
    {"set-outlier",
     "CelebA, the odd one of 16 faces: 75 %, a network that reads them in order 6.3 %"},
    {"mil",
     "MNIST bags of mean size 10, AUC with 50 bags: 0.768 (from a later paper's table); colon "
     "tissue, AUC 0.968 (not checked with the paper)"},
    {"word2vec",
     "Google News, 300 numbers per word: 50 to 70 % of the analogies (not checked with the paper)"},
    {"word-sum",
     "fastText, a mean of word vectors: Yelp polarity 93.8 %, with pairs of words 95.7 %"},
    {"document-attention", "SemEval 2014, three classes: restaurants 77.2 %, laptops 68.7 %"},
    {"hierarchical", "Yelp 2015 71.0 % (five stars), IMDB 49.4 % (ten)"},
    {"squeeze-excitation", "ImageNet, ResNet-50: error 24.80 %, with gates 23.29 %"},
    {"gat", "Cora 83.0 ± 0.7 %, Citeseer 72.5 ± 0.7 %, Pubmed 79.0 ± 0.3 %"},
    {"memory-network", "bAbI 1k, all tasks jointly: 12.4 % mean error"},
    {"stacked-attention", "VQA v1, test-dev: 58.7 %"},
    {"ntm",
     "learned on 1 to 20 words of 8 bits, it goes on to copy longer ones (a picture, no figure)"},
    {"dnc",
     "bAbI 10k, all tasks jointly: 3.8 % mean error, the best of 20 runs; their mean 16.7 ± 7.6 %"},
    {"mixture-of-experts", "One Billion Words: perplexity 28.0, the LSTM without experts 34.7"},
    {"seq2seq", "WMT'14 En-Fr, the control of Bahdanau et al. 2015: 17.82 BLEU"},
    {"bahdanau", "WMT'14 En-Fr 26.75 BLEU, trained longer 28.45; without attention 17.82"},
    {"luong", "WMT'14 En-De 20.9 BLEU, eight models together 23.0"},
    {"alignment",
     "508 English-German sentences: AER 0.34, the Berkeley aligner 0.32 (Luong et al. 2015)"},
    {"gnmt", "WMT'14 En-De 24.6, En-Fr 39.9 BLEU (with reinforcement learning)"},
    {"convs2s", "WMT'14 En-De 25.2, En-Fr 40.5 BLEU"},
    {"beam-search", "settings only: beam 4, α = 0.6 (Vaswani et al. 2017)"},
    {"multi-head", "WMT'14 En-De: one head 0.9 BLEU below eight (not checked with the paper)"},
    {"transformer", "WMT'14 En-De 28.4, En-Fr 41.8 BLEU"},
    {"bert", "GLUE 80.5; SQuAD 1.1 F1 93.2 (several models), 91.8 (one)"},
    {"relative-positions", "WMT'14 En-De 29.2 BLEU, absolute positions 27.9; En-Fr 41.5 and 41.2"},
    {"dynamic-convolution", "WMT'14 En-De: light 28.9, dynamic 29.7 BLEU"},
    {"structured-attention",
     "formulas two and three deep: trees 99.2 and 87.0 %, softmax 87.4 and 49.6 %"},
    {"sparse-patterns", "CIFAR-10 2.80 bits per dimension"},
    {"sparse-normalisers", "SNLI: sparsemax 82.20 %, softmax 82.08 % (not checked with the paper)"},
    {"cost", "operations at n = d = 1,000: attention 4·10⁹, LSTM 16·10⁹"},
    {"show-attend-tell", "COCO, BLEU-4: soft 24.3, hard 25.0; Flickr8k: 19.5 and 21.3"},
    {"image-to-set",
     "a finding: the network that sees the picture matters more than the predictor of the set (no "
     "table could be checked)"},
    {"inverse-cooking", "Recipe1M: IoU 32.1, F1 48.6 (not checked with the paper)"},
};

}  // namespace

std::string published_figure(const std::string& system) {
  const auto found = kPublished.find(system);
  return found == kPublished.end() ? "" : found->second;
}

}  // namespace fovea::systems
