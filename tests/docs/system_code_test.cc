// The code at the top of every page of docs/systems compiles and runs; extract_system_code.py makes the tests.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "fovea/attend.h"
#include "fovea/marginals.h"
#include "fovea/nn/beam_search.h"
#include "fovea/nn/dnc.h"
#include "fovea/nn/fenchel_young.h"
#include "fovea/nn/memory.h"
#include "fovea/nn/mixture_of_experts.h"
#include "fovea/nn/multi_head.h"
#include "fovea/nn/ntm.h"
#include "fovea/nn/recurrent.h"
#include "fovea/nn/relative_tables.h"
#include "fovea/nn/rotary.h"
#include "fovea/nn/squeeze_excite.h"

namespace {

bool all_finite(const at::Tensor& x) { return x.isfinite().all().item<bool>(); }
bool all_finite(const fovea::nn::Stories& stories) { return stories.items() > 0; }
bool all_finite(const fovea::SelectedWeights& found) { return all_finite(found.weights); }
bool all_finite(const std::vector<fovea::nn::SearchResult>& found) {
  return !found.empty() && std::isfinite(found.front().n_best.at(0).score);
}

// Five letters, each as likely as the others, whatever was written before.
class Alphabet : public fovea::nn::StepModel {
 public:
  void select(const at::Tensor&) override {}
  fovea::nn::StepOutput step(const at::Tensor& tokens) override {
    return {torch::zeros({tokens.size(0), 5}), {}};
  }
};

#include "system_code.inc"

}  // namespace
