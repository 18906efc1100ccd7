#include "torch/ranks/chosen_keys.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "torch/ranks/ring.h"

namespace fovea::over_ranks {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kMostPairs = 1 << 20;  // of query and key whose rows are gathered at once

Tensor rows_of(const Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

// Pairs of a query and one of its keys in a piece, as flat numbers.
struct Pairs {
  Tensor place;       // among the chosen ones
  Tensor query, key;  // rows of all queries, and of the piece's keys
};

// Calls visit(Pairs) for the keys of a piece, whose first one has position `first`.
template <class Visit>
void each_pair(const Tensor& chosen, const Tensor& places, int64_t first, int64_t size,
               int64_t key_heads, const Visit& visit) {
  const Tensor inside = chosen.logical_and(places.ge(first)).logical_and_(places.lt(first + size));
  const Tensor flat = inside.flatten().nonzero().flatten();
  if (flat.numel() == 0) return;
  const int64_t heads = places.size(1), rows = places.size(2), count = places.size(3);
  const Tensor positions = places.flatten();
  for (const Tensor& some : flat.split(kMostPairs)) {
    const Tensor query = some.floor_divide(count);
    const Tensor head = query.floor_divide(rows);
    const Tensor key_head = head.floor_divide(heads) * key_heads +
                            (head.remainder(heads) * key_heads).floor_divide(heads);
    visit(Pairs{some, query, key_head * size + positions.index_select(0, some) - first});
  }
}

// Takes `rows` round once and calls visit(held, d_held, pairs); returns the gradients of this rank's
// rows, to which `visit` adds.
template <class Visit>
Tensor gradient_of_rows(const Plan& plan, const Tensor& rows, const Tensor& chosen,
                        const Tensor& places, at::ScalarType type, const Visit& visit) {
  const auto options = rows.options().dtype(type);
  WayBack back(plan, {at::zeros(rows.sizes(), options)});
  go_round(plan, {rows}, [&](int64_t step, Rows piece, const Tensors& held) {
    Tensors d_held;
    if (!held.empty()) {
      d_held.push_back(at::zeros(held[0].sizes(), options));
      const Tensor all = rows_of(held[0]), d_all = d_held[0].view({-1, rows.size(3)});
      each_pair(chosen, places, plan.position(plan.before(step), piece), piece.count, rows.size(1),
                [&](const Pairs& pairs) { visit(all, d_all, pairs); });
    }
    back.add(step, piece, d_held);
  });
  return back.finish()[0];
}

class WeightedSum : public torch::autograd::Function<WeightedSum> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& weights, const Tensor& value,
                        const Tensor& places, const PlanPointer& plan) {
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    context->save_for_backward({weights, value, places});
    Tensor out = at::zeros({weights.size(0), weights.size(1), weights.size(2), value.size(3)},
                           weights.options());
    const Tensor sums = out.view({-1, value.size(3)}), given = weights.flatten();
    const Tensor chosen = weights > 0;
    go_round(*plan, {value}, [&](int64_t step, Rows piece, const Tensors& held) {
      if (held.empty()) return;
      const Tensor all = rows_of(held[0]);
      each_pair(chosen, places, plan->position(plan->before(step), piece), piece.count,
                value.size(1), [&](const Pairs& pairs) {
                  const Tensor share = given.index_select(0, pairs.place).unsqueeze(1) *
                                       all.index_select(0, pairs.key).to(out.scalar_type());
                  sums.index_add_(0, pairs.query, share);
                });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative();
    const at::NoGradGuard guard;
    const auto saved = context->get_saved_variables();
    const Tensor &weights = saved[0], &value = saved[1], &places = saved[2];
    const auto plan =
        c10::static_intrusive_pointer_cast<Plan>(context->saved_data["plan"].toCapsule());
    const Tensor d_weights = at::zeros_like(weights, at::MemoryFormat::Contiguous);
    const Tensor above = rows_of(gradients[0]), given = weights.flatten();
    const Tensor d_value = gradient_of_rows(
        *plan, value, weights > 0, places, weights.scalar_type(),
        [&](const Tensor& held, const Tensor& d_held, const Pairs& pairs) {
          const Tensor d_sums = above.index_select(0, pairs.query);
          const Tensor dots =
              (d_sums * held.index_select(0, pairs.key).to(d_sums.scalar_type())).sum(-1);
          d_weights.view(-1).index_copy_(0, pairs.place, dots);
          d_held.index_add_(0, pairs.key, given.index_select(0, pairs.place).unsqueeze(1) * d_sums);
        });
    return {d_weights, d_value.to(value.scalar_type()), Tensor(), Tensor()};
  }
};

class KnownScores : public torch::autograd::Function<KnownScores> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key,
                        const Tensor& scores, const Tensor& places, double scale,
                        const PlanPointer& plan) {
    context->saved_data["plan"] = c10::IValue::make_capsule(plan);
    context->saved_data["scale"] = scale;
    context->save_for_backward({query, key, places});
    return scores.clone();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative();
    const at::NoGradGuard guard;
    const auto saved = context->get_saved_variables();
    const Tensor &query = saved[0], &key = saved[1], &places = saved[2];
    const auto plan =
        c10::static_intrusive_pointer_cast<Plan>(context->saved_data["plan"].toCapsule());
    const Tensor d_scores = (gradients[0] * context->saved_data["scale"].toDouble()).flatten();
    const Tensor d_query = at::zeros(query.sizes(), d_scores.options());
    const Tensor queries = rows_of(query).to(d_scores.scalar_type());
    const Tensor d_queries = d_query.view({-1, query.size(3)});
    const Tensor d_key = gradient_of_rows(
        *plan, key, gradients[0] != 0, places, d_scores.scalar_type(),
        [&](const Tensor& held, const Tensor& d_held, const Pairs& pairs) {
          const Tensor d_score = d_scores.index_select(0, pairs.place).unsqueeze(1);
          d_queries.index_add_(
              0, pairs.query, d_score * held.index_select(0, pairs.key).to(d_scores.scalar_type()));
          d_held.index_add_(0, pairs.key, d_score * queries.index_select(0, pairs.query));
        });
    return {d_query.to(query.scalar_type()),
            d_key.to(key.scalar_type()),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

}  // namespace

Tensor weighted_sum(const Tensor& weights, const Tensor& value, const Tensor& places,
                    const PlanPointer& plan) {
  return WeightedSum::apply(weights, value, places, plan);
}

Tensor with_gradient(const Tensor& query, const Tensor& key, const Tensor& scores,
                     const Tensor& places, double scale, const PlanPointer& plan) {
  return KnownScores::apply(query, key, scores, places, scale, plan);
}

}  // namespace fovea::over_ranks
