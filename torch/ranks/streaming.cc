// Ring attention (Liu, Zaharia & Abbeel 2023); partial softmaxes are joined as in Milakov &
// Gimelshein 2018.
#include "torch/ranks/streaming.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <numbers>

#include "torch/engine_call.h"
#include "torch/operators.h"
#include "torch/ranks/ring.h"
#include "torch/spec.h"

namespace fovea::over_ranks {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What a call needs besides its tensors.
struct StreamCall : torch::CustomClassHolder {
  StreamCall(PlanPointer plan_, std::string text_, bool joined_)
      : plan(std::move(plan_)), text(std::move(text_)), joined(joined_) {}
  PlanPointer plan;
  std::string text;  // of the choices; their tensors come beside it
  bool joined;       // by the log-sum-exp; otherwise added

  Flat between(at::TensorList arrays, Rows own, int64_t keys, Rows piece) const {
    Choices choices = unflatten(text, arrays, {});
    choices.structure = plan->between(std::move(choices.structure), own, keys, piece);
    return flatten(std::move(choices));
  }
};

operators::OptionalTensor offset_of(int64_t offset, const Tensor& query) {
  if (offset == 0) return std::nullopt;
  return at::full({1}, offset, query.options().dtype(at::kLong));
}

// Adds the result over other keys, in place.
void join(Tensor output, Tensor lse, const Tensor& other, const Tensor& other_lse) {
  const Tensor both = at::logaddexp(lse, other_lse);
  const Tensor safe = both.masked_fill(both == -std::numeric_limits<double>::infinity(), 0);
  output.mul_((lse - safe).exp_().unsqueeze(-1));
  output.addcmul_(other, (other_lse - safe).exp_().unsqueeze(-1));
  lse.copy_(both);
}

// The engine's statistics of a softmax: a weight is exp(score - first) * second. A second of 1 would
// say that a row has one key. Weights that are not normalised need none.
Tensor statistics_of(const Tensor& lse, bool joined) {
  auto sizes = lse.sizes().vec();
  sizes.push_back(4);
  Tensor statistics = at::zeros(sizes, lse.options());
  if (!joined) return statistics;
  const Tensor seen = lse > -std::numeric_limits<double>::infinity();
  statistics.select(-1, 0).copy_((lse + 1).masked_fill_(seen.logical_not(), 0));
  statistics.select(-1, 1).copy_(seen).mul_(std::numbers::e);
  return statistics;
}

// What the gradient of some rows over a piece of keys needs.
struct OfPart {
  Tensor d_output, d_lse, output, statistics;
};

// The engine takes the statistics of all keys and finds a piece's part of the gradient. Kernels of
// other devices take those of the keys that they are given. So the piece's own result is computed again, and
// the gradient goes to it through `join`: d output_p = share d output, and
// d lse_p = share (d output · (output_p - output) + d lse), where share = exp(lse_p - lse).
OfPart computed_again(const OfPart& whole, const Tensor& lse, const Tensor& query,
                      const Tensors& held, const Flat& flat, bool joined,
                      const operators::OptionalTensor& offset) {
  const auto found = operators::attend(query, held[0], held[1], *flat.text, flat.arrays, {}, {},
                                       /*dropout_p=*/0, {}, /*return_lse=*/joined, /*strict=*/false,
                                       offset, /*check_finite=*/false);
  const Tensor &output = std::get<0>(found), &statistics = std::get<2>(found);
  if (!joined) return {whole.d_output, whole.d_lse, output, statistics};
  const Tensor safe = lse.masked_fill(lse == -std::numeric_limits<double>::infinity(), 0);
  const Tensor share = (std::get<1>(found).to(lse.scalar_type()) - safe).exp_();
  const Tensor d_output = whole.d_output.to(lse.scalar_type());
  const Tensor moved = (d_output * (output.to(lse.scalar_type()) - whole.output)).sum(-1);
  return {(d_output * share.unsqueeze(-1)).to(query.scalar_type()), share * (moved + whole.d_lse),
          output, statistics};
}

Tensors zeros_like_all(const Tensors& tensors, const at::TensorOptions& options) {
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(at::zeros(t.sizes(), options));
  return out;
}

class Stream : public torch::autograd::Function<Stream> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& query, const Tensor& key,
                               const Tensor& value, at::TensorList arrays,
                               const c10::intrusive_ptr<StreamCall>& call) {
    const Plan& plan = *call->plan;
    const auto real = query.options().dtype(arithmetic_type(query));
    Tensor output = at::zeros({query.size(0), query.size(1), query.size(2), value.size(3)}, real);
    const Tensor lse =
        at::full(query.sizes().slice(0, 3), -std::numeric_limits<double>::infinity(), real);
    go_round(plan, {key, value}, [&](int64_t step, Rows piece, const Tensors& held) {
      const int64_t from = plan.before(step);
      if (held.empty()) return;
      for (const auto& [rows, offset] : plan.meetings(plan.rank(), from, piece)) {
        const Flat flat = call->between(arrays, rows, from, piece);
        const auto found = operators::attend(
            rows.of(query), held[0], held[1], *flat.text, flat.arrays, {}, {}, /*dropout_p=*/0, {},
            /*return_lse=*/call->joined, /*strict=*/false, offset_of(offset, query),
            /*check_finite=*/false);
        if (call->joined)
          join(rows.of(output), rows.of(lse), std::get<0>(found), std::get<1>(found));
        else
          rows.of(output).add_(std::get<0>(found));
      }
    });
    output = output.to(query.scalar_type());
    variable_list saved = {query, key, value, output, lse};
    saved.insert(saved.end(), arrays.begin(), arrays.end());
    context->save_for_backward(saved);
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    if (!call->joined) context->mark_non_differentiable({lse});
    return {output, lse};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative();
    const at::NoGradGuard guard;
    const auto saved = context->get_saved_variables();
    const Tensor &query = saved[0], &key = saved[1], &value = saved[2], &output = saved[3],
                 &lse = saved[4];
    const Tensors arrays(saved.begin() + 5, saved.end());
    const auto call =
        c10::static_intrusive_pointer_cast<StreamCall>(context->saved_data["call"].toCapsule());
    const Plan& plan = *call->plan;
    std::vector<int64_t> wanted = {1, 1, 1};
    Tensors d_arrays;
    for (size_t n = 0; n < arrays.size(); ++n) {
      wanted.push_back(context->needs_input_grad(3 + n));
      d_arrays.push_back(wanted.back() ? at::zeros_like(arrays[n]) : Tensor());
    }
    const Tensor d_output = gradients[0].defined() ? gradients[0] : at::zeros_like(output);
    const Tensor d_lse = gradients[1].defined() ? gradients[1] : at::zeros_like(lse);
    const Tensor statistics = statistics_of(lse, call->joined);
    const Tensor d_query = at::zeros(query.sizes(), lse.options());
    WayBack back(plan, zeros_like_all({key, value}, lse.options()));
    go_round(plan, {key, value}, [&](int64_t step, Rows piece, const Tensors& held) {
      const int64_t from = plan.before(step);
      Tensors d_held = zeros_like_all(held, lse.options());
      for (const auto& [rows, offset] :
           held.empty() ? std::vector<Plan::Meeting>{} : plan.meetings(plan.rank(), from, piece)) {
        const Flat flat = call->between(arrays, rows, from, piece);
        const auto at = offset_of(offset, query);
        OfPart part{rows.of(d_output), rows.of(d_lse), rows.of(output), rows.of(statistics)};
        if (!query.device().is_cpu())
          part = computed_again(part, rows.of(lse), rows.of(query), held, flat, call->joined, at);
        const auto found = operators::attend_backward(
            part.d_output, call->joined ? operators::OptionalTensor(part.d_lse) : std::nullopt,
            rows.of(query), held[0], held[1], flat.arrays, *flat.text, {}, {}, /*dropout_p=*/0, {},
            part.output, part.statistics, wanted, at);
        rows.of(d_query).add_(std::get<0>(found));
        d_held[0].add_(std::get<1>(found));
        d_held[1].add_(std::get<2>(found));
        for (size_t n = 0; n < arrays.size(); ++n)
          if (d_arrays[n].defined()) d_arrays[n].add_(std::get<3>(found)[n]);
      }
      back.add(step, piece, d_held);
    });
    const Tensors& sums = back.finish();
    variable_list out = {d_query.to(query.scalar_type()), sums[0].to(key.scalar_type()),
                         sums[1].to(value.scalar_type())};
    out.insert(out.end(), d_arrays.begin(), d_arrays.end());
    out.emplace_back();  // of the call
    return out;
  }
};

}  // namespace

AttendedOverRanks stream(const Tensor& query, const Tensor& key, const Tensor& value,
                         const Choices& choices, const PlanPointer& plan) {
  const Flat flat = flatten(choices);
  const bool joined = std::holds_alternative<Softmax>(choices.normaliser);
  const variable_list found =
      Stream::apply(query, key, value, at::TensorList(flat.arrays),
                    c10::make_intrusive<StreamCall>(plan, *flat.text, joined));
  return {found[0], joined ? found[1] : Tensor()};
}

}  // namespace fovea::over_ranks
