#include "fovea/attend.h"

#include <ATen/ATen.h>

#include "engine/call/facts.h"
#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/operators.h"
#include "torch/spec.h"

namespace fovea {
namespace {

// The score with the call's scale, where it has one and leaves it open.
Score scaled(Score score, std::optional<double> scale) {
  if (!scale) return score;
  std::visit(
      [&]<class Kind>(Kind& kind) {
        if constexpr (requires { kind.scale; }) {
          if (kind.scale) throw InvalidArgument("scale: given twice, in the score and in the call");
          kind.scale = scale;
        } else {
          throw InvalidArgument(std::string("scale: ") + Kind::kName +
                                " has none; dot and bilinear have");
        }
      },
      score.kind);
  return score;
}

std::optional<at::Tensor> seed_of(const Choices& choices, const Options& options) {
  const auto* hard = std::get_if<Hard>(&choices.normaliser);
  if (options.seed) return at::full({}, static_cast<int64_t>(*options.seed), at::kLong);
  if (options.dropout_p > 0 || (hard && hard->sample)) return at::randint(INT64_MAX, {}, at::kLong);
  return std::nullopt;
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

// The offset as the operators take it; nothing for 0.
std::optional<at::Tensor> offset_of(const PerItem& offset) {
  if (offset.each.defined()) return offset.each;
  if (offset.number == 0) return std::nullopt;
  return at::full({1}, offset.number, at::kLong);
}

operators::Outputs call_operator(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const Choices& choices,
                                 const Options& options, bool return_lse) {
  const Flat flat =
      flatten({scaled(choices.score, options.scale), choices.normaliser, choices.structure});
  operators::Outputs outputs = operators::attend(
      query, key, value, *flat.text, flat.arrays, {}, optional(options.key_lengths),
      options.dropout_p, seed_of(choices, options), return_lse, options.strict,
      offset_of(options.query_offset), options.check_finite);
  if (!options.allow_empty_rows)
    if (const auto empty = std::get<3>(outputs).item<int64_t>(); empty > 0)
      throw InvalidArgument("structure: " + std::to_string(empty) +
                            " rows without a key, expected none (allow_empty_rows is false)");
  return outputs;
}

}  // namespace

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Choices& choices, const Options& options) {
  return std::get<0>(call_operator(query, key, value, choices, options, /*return_lse=*/false));
}

Attended attend_full(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Choices& choices, const Options& options) {
  const bool lse_there = engine::has_lse<at::Tensor>(choices.normaliser);
  auto [output, lse, statistics, empty_rows] =
      call_operator(query, key, value, choices, options, lse_there);
  return {output, lse_there ? lse : at::Tensor(), empty_rows.item<int64_t>()};
}

SelectedWeights weights(const at::Tensor& query, const at::Tensor& key, const Choices& choices,
                        const Selection& selection, const Options& options) {
  const Flat flat =
      flatten({scaled(choices.score, options.scale), choices.normaliser, choices.structure});
  auto [weights, indices] =
      operators::weights(query, key, *flat.text, flat.arrays, {}, optional(options.key_lengths),
                         seed_of(choices, options), optional(selection.rows),
                         optional(selection.heads), selection.top_k, selection.column_sums,
                         offset_of(options.query_offset), options.check_finite);
  return {weights, selection.top_k > 0 ? indices : at::Tensor()};
}

std::string explain_dispatch(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const Choices& choices,
                             const Options& options) {
  Call call{query,
            key,
            value,
            {scaled(choices.score, options.scale), choices.normaliser, choices.structure},
            options.key_lengths,
            options.dropout_p,
            0,
            offset_of(options.query_offset).value_or(at::Tensor()),
            options.check_finite};
  call = canonical(std::move(call));
  check_call(call);
  return explain(call, /*return_lse=*/false);
}

}  // namespace fovea
