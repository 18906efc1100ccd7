// How a row of scores becomes weights: one function for each normaliser, written from its definition.
// Each can be differentiated any number of times: a threshold is found without gradient, and then
// written as a function of the scores above it.
#include <cmath>
#include <limits>

#include "engine/normalisers/entmax_alpha.h"
#include "torch/composed/block.h"
#include "torch/composed/random.h"

namespace fovea::composed {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Row {
  at::Tensor scores;   // [B, H, l, S]; -inf (log face) or 0 (value face) where not allowed
  at::Tensor allowed;  // [B, H, l, S]
  Face face;
  const Block& block;
  uint64_t seed;
};

at::Tensor or_one(const at::Tensor& x) { return at::where(x != 0, x, 1.0); }

// The largest score of each row, 0 where there is none; a shift, so without gradient.
at::Tensor largest(const at::Tensor& scores) {
  if (scores.size(-1) == 0) {
    auto sizes = scores.sizes().vec();
    sizes.back() = 1;
    return at::zeros(sizes, scores.options());
  }
  const at::Tensor maximum = scores.detach().amax(-1, /*keepdim=*/true);
  return at::where(maximum == -kInfinity, 0.0, maximum);
}

// exp(e) / (sum exp(e) + exp(sink)), and the logarithm of the denominator.
Weighed row_softmax(const at::Tensor& scores, const at::Tensor& sink) {
  at::Tensor shift = largest(scores);
  if (sink.defined()) shift = at::maximum(shift, at_heads(sink).detach());
  const at::Tensor powers = (scores - shift).exp();
  const at::Tensor seen = powers.sum(-1, /*keepdim=*/true);
  const at::Tensor total = sink.defined() ? seen + (at_heads(sink) - shift).exp() : seen;
  const at::Tensor empty = (scores == -kInfinity).all(-1, /*keepdim=*/true);
  const at::Tensor log = at::where(empty, 1.0, total).log() + shift;
  return {powers / at::where(empty, 1.0, total), at::where(empty, -kInfinity, log).squeeze(-1)};
}

Weighed weigh(const Softmax& kind, const Row& row) { return row_softmax(row.scores, kind.sink); }

Weighed weigh(const KernelRatio&, const Row& row) {
  if (row.face == Face::kLog) return {row_softmax(row.scores, {}).weights, {}};
  return {row.scores / or_one(row.scores.sum(-1, /*keepdim=*/true)), {}};
}

Weighed weigh(const Unnormalised&, const Row& row) { return {row.scores, {}}; }

Weighed weigh(const Uniform&, const Row& row) {
  const at::Tensor seen = (row.scores != -kInfinity).to(row.scores.scalar_type());
  return {seen / or_one(seen.sum(-1, /*keepdim=*/true)), {}};
}

Weighed weigh(const Sigmoid&, const Row& row) { return {row.scores.sigmoid(), {}}; }

// Sums over a row's support; `support` is constant.
struct Support {
  at::Tensor set;    // bool [.., S]
  at::Tensor count;  // [.., 1], at least 1
  at::Tensor mean(const at::Tensor& x) const {
    return at::where(set, x, 0.0).sum(-1, true) / count;
  }
};
Support support_of(const at::Tensor& set, const at::Tensor& like) {
  return {set, set.sum(-1, /*keepdim=*/true).clamp_min(1).to(like.scalar_type())};
}
// 1, 2, ... S.
at::Tensor ranks(const at::Tensor& scores) {
  return at::arange(1, scores.size(-1) + 1, scores.options());
}

at::Tensor sparsemax(const at::Tensor& scores) {
  const at::Tensor shifted = scores - largest(scores);
  Support support;
  {
    const at::NoGradGuard guard;
    const at::Tensor sorted = std::get<0>(shifted.sort(-1, /*descending=*/true));
    const at::Tensor sums = sorted.cumsum(-1);
    const at::Tensor count = (1 + ranks(scores) * sorted > sums).sum(-1, true);
    if (scores.size(-1) == 0) return scores;
    const at::Tensor threshold =
        (sums.gather(-1, (count - 1).clamp_min(0)) - 1) / count.clamp_min(1);
    support = support_of((shifted > threshold) & (count > 0), scores);
  }
  const at::Tensor threshold = support.mean(shifted) - 1 / support.count;
  return at::where(support.set, shifted - threshold, 0.0);
}

// a = max(0, e/2 - tau)^2, tau from the mean and the spread of the support.
at::Tensor entmax_15(const at::Tensor& scores) {
  const at::Tensor half = (scores - largest(scores)) / 2;
  Support support;
  {
    const at::NoGradGuard guard;
    if (scores.size(-1) == 0) return scores;
    const at::Tensor sorted = std::get<0>(half.sort(-1, /*descending=*/true));
    const at::Tensor rank = ranks(scores);
    const at::Tensor mean = sorted.cumsum(-1) / rank;
    const at::Tensor spread = sorted.square().cumsum(-1) - rank * mean.square();
    const at::Tensor thresholds = mean - ((1 - spread) / rank).clamp_min(0).sqrt();
    const at::Tensor count = (thresholds <= sorted).sum(-1, true);
    const at::Tensor threshold = thresholds.gather(-1, (count - 1).clamp_min(0));
    support = support_of((half > threshold) & (count > 0), scores);
  }
  const at::Tensor mean = support.mean(half);
  const at::Tensor spread =
      support.mean(at::where(support.set, half - mean, 0.0).square()) * support.count;
  const at::Tensor threshold = mean - safe_sqrt(((1 - spread) / support.count).clamp_min(0));
  return at::where(support.set, half - threshold, 0.0).square();
}

// a = max(0, (alpha - 1) e - tau)^(1 / (alpha - 1)). The threshold is bracketed without gradient;
// two steps of Newton's method from there, with gradient, leave its value and make its first and
// second derivatives those of the implicit function.
at::Tensor entmax(const at::Tensor& scores, const at::Tensor& alpha) {
  if (scores.size(-1) == 0) return scores;
  const at::Tensor power = (alpha - 1).reciprocal(), seen = scores > -kInfinity;
  const at::Tensor shifted = at::where(seen, scores - largest(scores), 0.0) * (alpha - 1);
  const double tiny = scores.scalar_type() == at::kDouble ? 1e-300 : 1e-36;
  at::Tensor threshold, set;
  {
    const at::NoGradGuard guard;
    at::Tensor low = at::full_like(shifted.narrow(-1, 0, 1), -1.0), high = at::zeros_like(low);
    for (int step = 0; step < 60; ++step) {
      const at::Tensor middle = (low + high) / 2;
      const at::Tensor powers = at::where(seen, (shifted - middle).clamp_min(0).pow(power), 0.0);
      const at::Tensor below = powers.sum(-1, /*keepdim=*/true) >= 1;
      low = at::where(below, middle, low);
      high = at::where(below, high, middle);
    }
    threshold = low;
    set = seen & (shifted > threshold);
  }
  const auto above = [&] { return at::where(set, shifted - threshold, 1.0).clamp_min(tiny); };
  const auto total = [&](const at::Tensor& x) {
    return at::where(set, x, 0.0).sum(-1, /*keepdim=*/true);
  };
  for (int step = 0; step < 2; ++step) {
    const at::Tensor slope = total(power * above().pow(power - 1));
    threshold =
        threshold + (total(above().pow(power)) - 1) / or_one(slope) * set.any(-1, /*keepdim=*/true);
  }
  return at::where(set, above().pow(power), 0.0);
}

// For alpha <= 1: softmax, with the limit of the derivative by alpha (Correia et al. 2019),
// a (sum a log^2 a - log^2 a) / 2. The second derivative by alpha alone is taken as 0.
at::Tensor entmax_limit(const at::Tensor& scores, const at::Tensor& alpha) {
  const at::Tensor a = row_softmax(scores, {}).weights;
  const at::Tensor squares = at::where(a > 0, a, 1.0).log().square();
  const at::Tensor slope = a * ((a * squares).sum(-1, /*keepdim=*/true) - squares) / 2;
  return a + (alpha - alpha.detach()) * slope;
}

Weighed weigh(const Sparsemax&, const Row& row) { return {sparsemax(row.scores), {}}; }

Weighed weigh(const Entmax& kind, const Row& row) {
  if (kind.alpha_tensor.defined()) {
    const at::Tensor alpha = at_heads(kind.alpha_tensor);
    const double least = alpha.scalar_type() == at::kDouble ? engine::least_entmax_factor<double>
                                                            : engine::least_entmax_factor<float>;
    const at::Tensor above = alpha - 1 >= least;
    return {at::where(above, entmax(row.scores, at::where(above, alpha, 1.5)),
                      entmax_limit(row.scores, alpha)),
            {}};
  }
  if (engine::entmax_factor(kind.alpha) == 0) return {row_softmax(row.scores, {}).weights, {}};
  if (kind.alpha == 1.5) return {entmax_15(row.scores), {}};
  if (kind.alpha == 2) return {sparsemax(row.scores), {}};
  return {entmax(row.scores, at::full({1, 1, 1, 1}, kind.alpha, row.scores.options())), {}};
}

// True at the `count` largest scores of each row, ties to the lower index.
at::Tensor top(const at::Tensor& scores, int64_t count) {
  const at::Tensor order =
      std::get<1>(scores.detach().sort(/*stable=*/true, -1, /*descending=*/true));
  const int64_t kept = std::min(count, scores.size(-1));
  return at::zeros_like(scores, at::kBool).scatter(-1, order.narrow(-1, 0, kept), true);
}

Weighed weigh(const TopK& kind, const Row& row) {
  return row_softmax(at::where(top(row.scores, kind.k), row.scores, -kInfinity), {});
}

// The key where the running sum of probabilities first passes the row's random number.
at::Tensor sampled(const Row& row) {
  const at::Tensor sums = row_softmax(row.scores.detach(), {}).weights.to(at::kDouble).cumsum(-1);
  const at::Tensor passed =
      sums > row_uniform(row.block, row.scores, row.seed) * sums.slice(-1, -1);
  return passed & (passed.cumsum(-1) == 1);
}

Weighed weigh(const Hard& kind, const Row& row) {
  const at::Tensor lse = row_softmax(row.scores, {}).lse;
  const at::Tensor chosen =
      (kind.sample ? sampled(row) : top(row.scores, 1)) & (row.scores > -kInfinity);
  const at::Tensor score = at::where(chosen, row.scores, 0.0).sum(-1);
  const at::Tensor log_probability =
      at::where(lse == -kInfinity, -kInfinity, score - at::where(lse == -kInfinity, 0.0, lse));
  return {chosen.to(row.scores.scalar_type()), log_probability};
}

// Rows that see a score of NaN or +infinity have weights, lse and gradients of NaN at the keys they
// see. They are taken out before a normaliser sorts or divides, and put back after.
struct Spoiled {
  at::Tensor rows = {};     // bool [B, H, l, 1], undefined: there are none
  at::Tensor weights = {};  // [B, H, l, S]
};

Spoiled take_out_spoiled(Row& row, const at::Tensor& unseen, const Normaliser& normaliser) {
  const at::Tensor seen = unseen.logical_not();
  const at::Tensor rows = (row.scores.isfinite().logical_not() & seen).any(-1, /*keepdim=*/true);
  // On a device, the result is not read: that would wait for the device.
  if (rows.device().is_cpu() && !rows.any().item<bool>()) return {};
  const at::Tensor pairs = rows & seen;
  // A product, so that the gradient is NaN too; chosen before it, so that no other row has one.
  const auto spoil = [&](const at::Tensor& x) {
    return at::where(pairs, x.expand_as(pairs), 0.0) * std::nan("");
  };
  at::Tensor not_a_number = spoil(row.scores);
  const auto owned = [&](const char*, auto& field) {  // a sink, alpha
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, at::Tensor>) {
      if (field.defined()) not_a_number = not_a_number + spoil(at_heads(field));
    }
  };
  std::visit([&](auto kind) { kind.fields(owned); }, normaliser);
  row.scores = at::where(pairs, 0.0, row.scores);
  return {rows, at::where(pairs, not_a_number, 0.0)};
}

void put_back(const Spoiled& spoiled, Weighed& result) {
  result.weights = at::where(spoiled.rows, spoiled.weights, result.weights);
  const at::Tensor rows = spoiled.rows.squeeze(-1);
  if (result.lse.defined()) result.lse = at::where(rows, spoiled.weights.sum(-1), result.lse);
  result.empty = result.empty & rows.logical_not();
  result.spoiled = rows;
}

}  // namespace

Weighed normalise(const Choices& choices, const at::Tensor& scores, const Block& block,
                  uint64_t seed) {
  const at::Tensor allowed = block.allowed.expand_as(scores);
  const Face face = face_of(choices);
  Row row{at::where(allowed, scores, face == Face::kValue ? 0.0 : -kInfinity), allowed, face, block,
          seed};
  // A kernel's zero is a masked key, and a ratio of sum zero has no meaning.
  const at::Tensor unseen = face == Face::kLog ? row.scores == -kInfinity : allowed.logical_not();
  const Spoiled spoiled = std::holds_alternative<Uniform>(choices.normaliser)
                              ? Spoiled{}  // looks at no score
                              : take_out_spoiled(row, unseen, choices.normaliser);
  Weighed result =
      std::visit([&](const auto& kind) { return weigh(kind, row); }, choices.normaliser);
  result.empty = unseen.all(-1);
  if (face == Face::kValue && std::holds_alternative<KernelRatio>(choices.normaliser)) {
    result.empty = result.empty | (row.scores.sum(-1) == 0);
  }
  if (spoiled.rows.defined()) put_back(spoiled, result);
  return result;
}

}  // namespace fovea::composed
