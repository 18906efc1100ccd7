#include "fovea/nn/mixture_of_experts.h"

#include <ATen/ATen.h>

#include <cmath>

namespace fovea::nn {
namespace {

void check(const MixtureOfExpertsOptions& o) {
  const auto refuse = [](const std::string& name, int64_t got, const std::string& expected) {
    throw InvalidArgument(name + ": " + std::to_string(got) + ", expected " + expected);
  };
  if (o.width < 1) refuse("width", o.width, "at least 1");
  if (o.output < 0) refuse("output", o.output, "at least 1, or 0 for the width");
  if (o.hidden < 0) refuse("hidden", o.hidden, "at least 1, or 0 for linear experts");
  if (o.gate_width < 0) refuse("gate_width", o.gate_width, "at least 1, or 0 for the width");
  if (o.experts < 1) refuse("experts", o.experts, "at least 1");
  if (o.k < 1 || o.k > o.experts)
    refuse("k", o.k, "1 to " + std::to_string(o.experts) + " (the experts)");
  if (o.capacity && !(*o.capacity >= 0))
    throw InvalidArgument("capacity: " + std::to_string(*o.capacity) + ", expected 0 or more");
}

// [..., width] -> [T, width]
at::Tensor rows_of(const at::Tensor& x, int64_t width, const char* name) {
  if (x.dim() < 1 || x.size(-1) != width)
    throw InvalidArgument(std::string(name) + ": width " +
                          (x.dim() ? std::to_string(x.size(-1)) : "of a number") + ", expected " +
                          std::to_string(width));
  return x.reshape({-1, width});
}

// Squared coefficient of variation; of one number, and of none, 0.
at::Tensor cv_squared(const at::Tensor& x) {
  if (x.numel() < 2) return at::zeros({}, x.options());
  return x.var(0, /*unbiased=*/false) / x.mean().square().clamp_min(1e-10);
}

// The normal distribution's share below z.
at::Tensor normal_share(const at::Tensor& z) { return 0.5 * (1 + (z * std::sqrt(0.5)).erf()); }

// Pairs in the order of their experts, those of one in the order of the tokens. A pair is a place in
// [T, k], row by row.
struct Routes {
  at::Tensor pairs;             // int64 [T k]: those computed, by expert, then those that are not
  std::vector<int64_t> counts;  // computed by each expert
  int64_t computed = 0;
};

Routes routes_of(const at::Tensor& chosen, const at::Tensor& load, std::optional<int64_t> most) {
  Routes out;
  out.pairs = chosen.flatten().argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor host = load.cpu();
  bool beyond = false;
  for (int64_t expert = 0; expert < host.numel(); ++expert) {
    const int64_t wanted = host.data_ptr<int64_t>()[expert];
    beyond = beyond || (most && wanted > *most);
    out.counts.push_back(most ? std::min(wanted, *most) : wanted);
    out.computed += out.counts.back();
  }
  if (!beyond) return out;
  const at::Tensor expert = chosen.flatten().index_select(0, out.pairs);
  const at::Tensor place = at::arange(out.pairs.size(0), out.pairs.options()) -
                           (load.cumsum(0) - load).index_select(0, expert);
  const at::Tensor kept = place < *most;
  out.pairs = at::cat({out.pairs.masked_select(kept), out.pairs.masked_select(kept.logical_not())});
  return out;
}

}  // namespace

// What each token wants.
struct MixtureOfExpertsImpl::Gate {
  at::Tensor scores;     // [T, experts], with noise where there is any
  at::Tensor chosen;     // int64 [T, k]
  at::Tensor load;       // int64 [experts]
  at::Tensor load_loss;  // []
};

MixtureOfExpertsImpl::MixtureOfExpertsImpl(const MixtureOfExpertsOptions& options)
    : options_(options) {
  check(options);
  if (options_.output == 0) options_.output = options_.width;
  if (options_.gate_width == 0) options_.gate_width = options_.width;
  reset();
}

torch::nn::Sequential MixtureOfExpertsImpl::made_expert() const {
  if (options_.expert) return options_.expert();
  const int64_t width = options_.width, hidden = options_.hidden, output = options_.output;
  if (hidden == 0) return torch::nn::Sequential(torch::nn::Linear(width, output));
  return torch::nn::Sequential(torch::nn::Linear(width, hidden), torch::nn::ReLU(),
                               torch::nn::Linear(hidden, output));
}

void MixtureOfExpertsImpl::reset() {
  // A list and modules of its own: a clone must not fill the original's.
  experts = register_module("experts", torch::nn::ModuleList());
  for (int64_t i = 0; i < options_.experts; ++i) experts->push_back(made_expert());
  const std::vector<int64_t> shape = {options_.gate_width, options_.experts};
  gate_weight = register_parameter("gate_weight", at::zeros(shape));
  if (options_.noise)
    noise_weight = register_parameter("noise_weight", at::zeros(shape));
  else  // little enough that every expert may be selected
    torch::nn::init::normal_(gate_weight, 0, 0.1 / std::sqrt(static_cast<double>(shape[0])));
  last_ = {};
}

at::Tensor MixtureOfExpertsImpl::scores(const at::Tensor& gate_input) {
  return rows_of(gate_input, options_.gate_width, "gate_input").matmul(gate_weight);
}

MixtureOfExpertsImpl::Gate MixtureOfExpertsImpl::choose(const at::Tensor& gate_input) {
  const int64_t tokens = gate_input.size(0), experts = options_.experts, k = options_.k;
  const bool noisy = options_.noise && is_training();
  const at::Tensor clean = scores(gate_input);
  at::Tensor deviation;
  Gate out{.scores = clean};
  if (noisy) {
    deviation = at::softplus(gate_input.matmul(noise_weight)).clamp_min(1e-6);
    out.scores = clean + at::randn_like(clean) * deviation;
  }
  // Ties go to the lower expert. One more than is chosen: what an expert has to beat.
  const int64_t looked_at = std::min(k + (noisy ? 1 : 0), experts);
  const at::Tensor best = fovea::weights(out.scores.detach().reshape({1, 1, tokens, experts}),
                                         at::zeros({1, 1, experts, 1}, clean.options()),
                                         {.score = Location{}, .normaliser = TopK{looked_at}},
                                         {.top_k = looked_at}, {.check_finite = true})
                              .indices.reshape({tokens, looked_at})
                              .to(at::kLong);
  out.chosen = best.narrow(1, 0, k).contiguous();
  out.load = out.chosen.flatten().bincount({}, experts);
  if (!noisy || k == experts) {  // of all experts each is always chosen
    out.load_loss = cv_squared(out.load.to(clean.scalar_type()));
    return out;
  }
  // To be chosen an expert must beat the k-th of the others: the next one if it is among the k.
  const at::Tensor score = out.scores.gather(1, best);
  const at::Tensor among = at::zeros_like(clean, at::kBool).scatter_(1, out.chosen, /*value=*/true);
  const at::Tensor to_beat = at::where(among, score.narrow(1, k, 1), score.narrow(1, k - 1, 1));
  out.load_loss = cv_squared(normal_share((clean - to_beat) / deviation).sum(0));
  return out;
}

at::Tensor MixtureOfExpertsImpl::compute(const at::Tensor& tokens, const at::Tensor& pairs,
                                         const std::vector<int64_t>& counts) {
  // at::embedding is index_select whose gradient is a sum of rows, without a loop over single rows.
  const at::Tensor gathered = at::embedding(tokens, pairs.floor_divide(options_.k));
  std::vector<at::Tensor> answers;
  const std::vector<at::Tensor> of_expert = gathered.split_with_sizes(counts);
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      answers.push_back(experts->at<torch::nn::SequentialImpl>(i).forward(of_expert[i]));
  if (answers.empty()) return at::zeros({0, options_.output}, tokens.options());
  return at::cat(answers);
}

void MixtureOfExpertsImpl::add_inner_losses(const std::vector<int64_t>& counts, Mixed& mixed) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    for (const auto& inner : experts[i]->modules())
      if (const auto* mixture = dynamic_cast<const MixtureOfExpertsImpl*>(inner.get())) {
        mixed.importance_loss = mixed.importance_loss + mixture->last().importance_loss;
        mixed.load_loss = mixed.load_loss + mixture->last().load_loss;
      }
  }
}

Mixed MixtureOfExpertsImpl::mix(const at::Tensor& x, const at::Tensor& gate_input) {
  const at::Tensor tokens = rows_of(x, options_.width, "x");
  const at::Tensor looked_at =
      gate_input.defined() ? rows_of(gate_input, options_.gate_width, "gate_input") : tokens;
  const int64_t count = tokens.size(0), k = options_.k;
  if (looked_at.size(0) != count || looked_at.size(1) != options_.gate_width)
    throw InvalidArgument("gate_input: [" + std::to_string(looked_at.size(0)) + ", " +
                          std::to_string(looked_at.size(1)) + "], expected [" +
                          std::to_string(count) + ", " + std::to_string(options_.gate_width) + "]");
  const Gate gate = choose(looked_at);

  std::optional<int64_t> most;
  if (options_.capacity)
    most = static_cast<int64_t>(std::ceil(*options_.capacity * static_cast<double>(k * count) /
                                          static_cast<double>(options_.experts)));
  const Routes routes = routes_of(gate.chosen, gate.load, most);
  const int64_t lost = count * k - routes.computed;
  const at::Tensor computed = routes.pairs.narrow(0, 0, routes.computed),
                   passed = routes.pairs.narrow(0, routes.computed, lost);

  Mixed out{.chosen = gate.chosen, .load = gate.load, .overflow = lost};
  out.answers = compute(tokens, computed, routes.counts);
  if (lost > 0)
    out.answers =
        at::cat({out.answers, options_.output == options_.width
                                  ? at::embedding(tokens, passed.floor_divide(k))
                                  : at::zeros({lost, options_.output}, tokens.options())});

  // Each answer is a key whose score is its token's for that expert; the query is 1.
  at::Tensor weight = (k == 1 ? gate.scores.softmax(1) : gate.scores).gather(1, gate.chosen);
  out.gates = k == 1 ? weight : weight.softmax(1);
  if (k == 1 && lost > 0) weight = weight.flatten().index_fill(0, passed, 1);
  const at::Tensor key = weight.flatten().gather(0, routes.pairs);
  const auto int32 = tokens.options().dtype(at::kInt);
  out.answers_of = {
      .row_offsets = at::arange(0, count * k + 1, k, int32),
      .columns =
          at::empty({count * k}, int32).scatter_(0, routes.pairs, at::arange(count * k, int32))};
  Choices choices{.score = Dot{1.0}, .normaliser = Softmax{}, .structure = out.answers_of};
  if (k == 1) choices.normaliser = Unnormalised{};
  out.output = attend(at::ones({count, 1, 1}, tokens.options()), key.reshape({-1, 1, 1}),
                      out.answers.unsqueeze(1), choices)
                   .reshape([&] {
                     std::vector<int64_t> shape = x.sizes().vec();
                     shape.back() = options_.output;
                     return shape;
                   }());

  out.importance_loss = cv_squared(at::zeros({options_.experts}, out.gates.options())
                                       .scatter_add(0, gate.chosen.flatten(), out.gates.flatten()));
  out.load_loss = gate.load_loss;
  add_inner_losses(routes.counts, out);
  return out;
}

at::Tensor MixtureOfExpertsImpl::forward(const at::Tensor& x, const at::Tensor& gate_input) {
  last_ = mix(x, gate_input);
  return last_.output;
}

}  // namespace fovea::nn
