// A threshold leaves weight to few keys. So the first pass keeps the largest scores of each row; where
// they might be too few, it is made again with twice as many. The weights of these candidates are
// exact then.
#include "torch/ranks/two_passes.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/call/facts.h"
#include "torch/engine_call.h"
#include "torch/operators.h"
#include "torch/ranks/chosen_keys.h"
#include "torch/ranks/ring.h"
#include "torch/spec.h"

namespace fovea::over_ranks {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kNone = -std::numeric_limits<double>::infinity();

// max(0, (alpha - 1) e - tau)^(1 / (alpha - 1)) of scores in descending order; sparsemax is alpha 2.
class EntmaxWeights : public torch::autograd::Function<EntmaxWeights> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& scores, double alpha) {
    const Tensor z = scores.to(at::kDouble) * (alpha - 1);
    const auto mass = [&](const Tensor& tau) {
      return (z - tau).clamp_min_(0).pow_(1 / (alpha - 1));
    };
    Tensor high = z.narrow(-1, 0, 1).clamp_min(-1e300), low = high - 1;
    for (int halving = 0; halving < 60; ++halving) {  // of the distance to tau
      const Tensor middle = (low + high) / 2, enough = mass(middle).sum(-1, true) >= 1;
      low = at::where(enough, middle, low);
      high = at::where(enough, high, middle);
    }
    Tensor weights = mass(low);
    weights = (weights / weights.sum(-1, true).clamp_min_(1e-300)).to(scores.scalar_type());
    context->save_for_backward({weights});
    context->saved_data["alpha"] = alpha;
    return weights;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor weights = context->get_saved_variables()[0];
    const Tensor slope = weights.clamp_min(1e-30)
                             .pow_(2 - context->saved_data["alpha"].toDouble())
                             .masked_fill_(weights <= 0, 0);
    const Tensor mean =
        (slope * gradients[0]).sum(-1, true) / slope.sum(-1, true).clamp_min_(1e-30);
    return {slope * (gradients[0] - mean), Tensor()};
  }
};

Tensor weights_of(const Tensor& scores, const Normaliser& normaliser) {
  const Tensor seen = scores > kNone;
  if (std::holds_alternative<Hard>(normaliser)) return seen.to(scores.scalar_type());
  if (std::holds_alternative<TopK>(normaliser)) {
    const Tensor top = scores.narrow(-1, 0, 1).detach().clamp_min(-1e30);
    const Tensor mass = (scores - top).masked_fill(seen.logical_not(), kNone).exp();
    return mass / mass.sum(-1, true).clamp_min(1e-30);
  }
  const auto* entmax = std::get_if<Entmax>(&normaliser);
  return EntmaxWeights::apply(scores, entmax ? entmax->alpha : 2.0);
}

// Of each row the largest scores in descending order, of equal ones the lower key first, and the
// positions of their keys; -infinity and -1 where there are no more.
struct Candidates {
  Tensor scores, places;
};

// Keeps the largest of both, in place.
void keep_largest(Tensor scores, Tensor places, const Tensor& more, const Tensor& at) {
  const Tensor all = at::cat({scores, more}, -1), positions = at::cat({places, at}, -1);
  const Tensor by_place = positions.argsort(/*stable=*/true, -1, /*descending=*/false);
  const Tensor best = all.gather(-1, by_place)
                          .argsort(/*stable=*/true, -1, /*descending=*/true)
                          .narrow(-1, 0, scores.size(-1));
  const Tensor order = by_place.gather(-1, best);
  scores.copy_(all.gather(-1, order));
  places.copy_(positions.gather(-1, order));
}

Candidates largest(const Tensor& query, const Tensor& key, const Choices& choices, const Plan& plan,
                   int64_t count) {
  auto sizes = query.sizes().slice(0, 3).vec();
  sizes.push_back(count);
  const Candidates out{at::full(sizes, kNone, query.options().dtype(arithmetic_type(query))),
                       at::full(sizes, -1, query.options().dtype(at::kLong))};
  go_round(plan, {key}, [&](int64_t step, Rows piece, const Tensors& held) {
    if (held.empty()) return;
    const int64_t from = plan.before(step);
    for (const auto& [rows, offset] : plan.meetings(plan.rank(), from, piece)) {
      const Flat flat = flatten(
          {choices.score, Unnormalised{}, plan.between(choices.structure, rows, from, piece)});
      const auto [found, where] = operators::weights(
          rows.of(query), held[0], *flat.text, flat.arrays, {}, {}, {}, {}, {},
          std::min(count, piece.count), /*column_sums=*/false,
          offset == 0 ? operators::OptionalTensor() : at::full({1}, offset, at::kLong),
          /*check_finite=*/false);
      const Tensor none = where < 0;
      keep_largest(rows.of(out.scores), rows.of(out.places),
                   found.to(out.scores.scalar_type()).masked_fill(none, kNone),
                   (where.to(at::kLong) + plan.position(from, piece)).masked_fill_(none, -1));
    }
  });
  return out;
}

// Whether a row of some rank might have weight beyond its candidates.
bool too_few(const Candidates& found, const Normaliser& normaliser, const Plan& plan) {
  const Tensor last = weights_of(found.scores, normaliser).select(-1, -1);
  const Tensor open = (last > 0).logical_and_(found.places.select(-1, -1) >= 0);
  Tensors any = {open.any().to(at::kInt)};
  c10d::AllreduceOptions most;
  most.reduceOp = c10d::ReduceOp::MAX;
  plan.group()->allreduce(any, most)->wait();
  return any[0].item<int>() != 0;
}

Candidates candidates_of(const Tensor& query, const Tensor& key, const Choices& choices,
                         const Plan& plan, int64_t count) {
  const Normaliser& normaliser = choices.normaliser;
  const auto* top = std::get_if<TopK>(&normaliser);
  const bool known = top || std::holds_alternative<Hard>(normaliser);
  if (known) count = top ? top->k : 1;
  for (const int64_t all = plan.rows() * plan.ranks();; count *= 2) {
    count = std::min(count, all);
    Candidates found = largest(query, key, choices, plan, count);
    if (known || count == all || !too_few(found, normaliser, plan)) return found;
  }
}

}  // namespace

bool needs_two_passes(const Normaliser& normaliser) {
  return std::holds_alternative<Sparsemax>(normaliser) ||
         std::holds_alternative<Entmax>(normaliser) || std::holds_alternative<TopK>(normaliser) ||
         std::holds_alternative<Hard>(normaliser);
}

void check_two_passes(const Tensor& query, const Choices& choices) {
  if (!query.device().is_cpu())
    throw InvalidArgument("query: on " + query.device().str() + ", expected the CPU with " +
                          name_of(choices.normaliser) + ", for which keys go round twice");
  if (!std::holds_alternative<Dot>(choices.score.kind) || !choices.score.modifiers.empty())
    throw InvalidArgument("score: " + name_of(choices.score.kind) +
                          (choices.score.modifiers.empty() ? "" : " with modifiers") +
                          ", expected dot alone with " + name_of(choices.normaliser));
  if (const auto* entmax = std::get_if<Entmax>(&choices.normaliser);
      entmax && (entmax->alpha_tensor.defined() || entmax->alpha <= 1))
    throw InvalidArgument("normaliser: " + name_of(choices.normaliser) +
                          ", expected an alpha that is a number above 1");
  if (const auto* hard = std::get_if<Hard>(&choices.normaliser); hard && hard->sample)
    throw InvalidArgument("normaliser: hard with sample, expected hard without sample");
}

Tensor attend_in_two_passes(const Tensor& query, const Tensor& key, const Tensor& value,
                            const Choices& choices, const PlanPointer& plan, int64_t candidates) {
  const auto found = candidates_of(query.detach(), key.detach(), choices, *plan, candidates);
  const double scale = engine::dot_scale(std::get<Dot>(choices.score.kind), query.size(3));
  const Tensor scores = with_gradient(query, key, found.scores, found.places, scale, plan);
  const Tensor weights = weights_of(scores, choices.normaliser);
  return weighted_sum(weights, value, found.places, plan).to(query.scalar_type());
}

}  // namespace fovea::over_ranks
