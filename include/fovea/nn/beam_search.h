// Beam search over any model that scores the next token, batched over sentences.
//
//   score(y) = log P(y | x) / lp(|y|) + cp
//   lp(n)    = ((5 + n) / 6)^alpha
//   cp       = beta * sum_j log min(sum_t a_tj, 1)
//
// (Wu et al. 2016.) |y| counts the end symbol. A finished hypothesis leaves the beam, which becomes
// narrower. A sentence ends when its beam is empty, when no unfinished hypothesis can still score
// higher than its finished ones, or at its length limit. A beam of one is greedy search.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace fovea::nn {

// One step of a model over `rows` hypotheses; those of one sentence follow each other.
struct StepOutput {
  at::Tensor logits;     // [rows, vocabulary]: log-probabilities up to a constant in each row
  at::Tensor attention;  // [rows, source length], or undefined
};
class StepModel {
 public:
  virtual ~StepModel() = default;
  // Row r becomes what was row `rows[r]` (int64), with its caches. At first rows are sentences,
  // later hypotheses that stayed in the beam.
  virtual void select(const at::Tensor& rows) = 0;
  // tokens int64 [rows]: the last token of each hypothesis.
  virtual StepOutput step(const at::Tensor& tokens) = 0;
};

struct BeamOptions {
  int64_t beam = 4;
  double length_alpha = 0.6;   // alpha; 0: raw log-probability
  double coverage_beta = 0.0;  // beta; needs a model that returns attention
  int64_t n_best = 1;
  int64_t begin = 2, end = 3;           // BOS, EOS
  std::vector<int64_t> never = {0, 2};  // PAD, BOS
  bool doubles = true;                  // false: no token directly after itself
  int64_t no_repeat = 0;                // > 0: no sequence of so many tokens comes twice
  bool keep_attention = false;          // fill Hypothesis::attention
  bool keep_tree = false;               // fill SearchResult::tree, for a picture
};

struct Hypothesis {
  std::vector<int64_t> tokens;  // without begin; with end when complete
  double log_probability = 0, score = 0;
  bool complete = false;  // false: cut off at the length limit
  at::Tensor attention;   // [tokens, source length] if kept
};

// The search as a tree: every candidate, whether it stayed in the beam or was pruned.
struct BeamNode {
  int64_t parent = -1;  // index into the list; -1 for the root
  int64_t token = 0;
  double log_probability = 0;
  enum class Fate { kKept, kPruned, kFinished } fate = Fate::kKept;
};

struct SearchResult {
  std::vector<Hypothesis> n_best;  // best first
  std::vector<BeamNode> tree;      // if kept; node 0 is the root
};

// max_lengths[i] bounds the tokens of sentence i, the end symbol included.
std::vector<SearchResult> beam_search(StepModel& model, const std::vector<int64_t>& max_lengths,
                                      const BeamOptions& options);

// Sentences that are searched together; `start` makes their StepModel.
struct SearchPart {
  std::function<std::unique_ptr<StepModel>()> start;
  std::vector<int64_t> max_lengths;
};
// Searches every part on its own thread. The products of a step are small, so two searches on one
// thread each are faster than one search on two threads. `start` is called on the part's thread.
std::vector<std::vector<SearchResult>> beam_search(const std::vector<SearchPart>& parts,
                                                   const BeamOptions& options);

double length_penalty(int64_t length, double alpha);

}  // namespace fovea::nn
