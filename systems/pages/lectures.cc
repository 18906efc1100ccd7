#include "systems/pages/lectures.h"

#include <fmt/format.h>

#include <algorithm>

namespace fovea::systems {
namespace {

constexpr const char* kPooling =
    "1 · Attention in Deep Learning (Smola & Zhang, ICML 2019): from averages to attention";
constexpr const char* kModel =
    "2 · Attention mechanisms in deep learning (Romero, 2020): queries, keys, values, and where "
    "they are used";
constexpr const char* kNetworks =
    "3 · Attention in Neural Networks (Ylipää, RISE 2020): what attention does to words and to "
    "gradients";
constexpr const char* kApplications =
    "4 · Deep Learning in Applications: Attention (Ianina, 2020): from translation to the "
    "Transformer";

constexpr Idea kIdeas[] = {
    {kPooling, "Predict by averaging what lies near", "nadaraya-watson",
     "From the flat mean, the dumbest estimator, to weights that fall with distance."},
    {kPooling, "A set has no order", "deep-sets",
     "Add features of the members: shuffle them and nothing changes."},
    {kPooling, "Sum, mean, max", "pooling",
     "Attention with the looking left out, beside attention."},
    {kPooling, "Outliers in sets", "set-outlier",
     "The member that does not belong has the largest weight."},
    {kPooling, "Which instance made the bag positive?", "mil",
     "Drug discovery, key chain, digits, tissue: only bags have labels, and the weights find the "
     "instances."},
    {kPooling, "Bags of words and their vectors", "word2vec",
     "Words with the same neighbours lie together."},
    {kPooling, "Attention weighting for documents", "document-attention",
     "Ask about the food, then about the service: the weights move."},
    {kPooling, "Words in sentences, sentences in documents", "hierarchical",
     "Attention twice: which sentence, and which word in it."},
    {kPooling, "Channels of a picture", "squeeze-excitation",
     "A gate for each channel; gates do not sum to 1."},
    {kPooling, "Neighbours in a graph", "gat",
     "A node weighs its neighbours; edges are the structure."},
    {kPooling, "Iterative pooling: several hops", "memory-network",
     "What the first hop finds changes what the second looks for."},
    {kPooling, "Questions about pictures", "stacked-attention",
     "First to the thing that is named, then to the place asked about."},
    {kPooling, "Lighter than attention", "dynamic-convolution",
     "Weights over offsets, from the word alone."},
    {kPooling, "Structured attention", "structured-attention",
     "Weights that are marginals of whole runs and trees."},
    {kPooling, "Sparse patterns", "sparse-patterns", "Which pairs are worth their cost."},
    {kPooling, "Sparse weights", "sparse-normalisers",
     "Sparsemax and entmax give weights of exactly 0."},
    {kPooling, "Pre-training", "bert", "Guess the hidden word from both sides."},

    {kModel, "She waited for the ___", "next-word", "Which earlier words decide the next one?"},
    {kModel, "Attention mechanisms: f(Q, K, V)", "general",
     "Any score, any normaliser, any structure; nothing else changes."},
    {kModel, "The bottleneck of translation", "seq2seq",
     "One vector for the whole sentence: the longer, the worse."},
    {kModel, "Attention in translation", "bahdanau", "For every word, another look at the source."},
    {kModel, "The Transformer", "transformer", "Self-attention, masked and across."},
    {kModel, "Attention in vision: captions", "show-attend-tell",
     "For every word of the caption a place in the picture."},
    {kModel, "Attention in vision: sets", "image-to-set", "A picture to the set of what is in it."},
    {kModel, "Attention in vision: recipes", "inverse-cooking",
     "A picture to title, ingredients and steps."},
    {kModel, "Attention in graphs", "gat", "The same three steps, over edges."},

    {kNetworks, "Sums of word vectors", "word-sum",
     "Every word is one number; “not” cannot turn “great” round."},
    {kNetworks, "Fixed attention: learned queries", "fixed-attention",
     "θ scores each word; several θ look for several things."},
    {kNetworks, "General attention framework", "general",
     "Query, key, value: where each comes from."},
    {kNetworks, "Effect of attention on gradients", "gradient-masking",
     "What is not attended to does not change."},
    {kNetworks, "Mixture of experts", "mixture-of-experts",
     "Keys are experts: those not selected get no gradient."},
    {kNetworks, "Information shortcut", "bahdanau",
     "A way from any source word to any output word, one step long."},
    {kNetworks, "Memory, read and written", "ntm", "The head walks along the rows."},
    {kNetworks, "Memory that keeps books", "dnc", "Free rows, and the order of writing."},

    {kApplications, "The bottleneck problem", "seq2seq", "Where the curve falls with length."},
    {kApplications, "Attention in equations, and its variants", "luong",
     "Dot, bilinear, additive; all of the source, or a window."},
    {kApplications, "Word alignment for free", "alignment", "Weights against the true links."},
    {kApplications, "Deep recurrent translation", "gnmt",
     "The lowest layer looks, all others read."},
    {kApplications, "Convolutions and attention", "convs2s", "Every layer attends for itself."},
    {kApplications, "Beam search", "beam-search",
     "The best sentence need not begin with the best word."},
    {kApplications, "Self-attention in detail: six steps", "scaled-dot-product",
     "112 and 96, divided by 8: 14 and 12, weights 0.88 and 0.12."},
    {kApplications, "Many heads", "multi-head", "Who did what to whom: a head for each."},
    {kApplications, "The Transformer whole", "transformer", "Every layer and head as a tile."},
    {kApplications, "Attention is fast", "cost",
     "Operations counted, seconds measured, and where they cross."},
    {kApplications, "Research challenges: relative positions", "relative-positions",
     "Shift the input, and the output shifts."},
};

}  // namespace

std::span<const Idea> ideas() { return kIdeas; }

explain::ReportOptions lectures_page(const std::vector<explain::Card>& cards) {
  explain::ReportOptions out{.title = "Four lectures, idea by idea",
                             .subtitle = "Each idea with the picture that shows it."};
  out.introduction.prose =
      "The systems were chosen from four lectures on attention. This page follows their line of "
      "thought: an idea, the picture, and what to see in it. Each picture leads to the page of its "
      "system, with the equation, the code and the command.";
  for (const Idea& idea : kIdeas) {
    const auto found = std::find_if(cards.begin(), cards.end(), [&](const explain::Card& card) {
      return card.id == idea.system;
    });
    if (found == cards.end()) continue;
    explain::Card card = *found;
    card.id = fmt::format("idea-{}", out.cards.size() + 1);
    card.group = idea.lecture;
    card.title = idea.title;
    card.byline = idea.see;
    out.cards.push_back(std::move(card));
  }
  out.contents = {.title = "Contents", .address = "index.html"};
  return out;
}

}  // namespace fovea::systems
