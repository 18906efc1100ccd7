#include "fovea/attend.h"

#include "torch/composed/composed.h"

namespace fovea {

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Choices& choices, const Options& options) {
  return attend_full(query, key, value, choices, options).output;
}

Attended attend_full(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const Choices& choices, const Options& options) {
  const auto result = composed::attend({query, key, value, choices, options.key_lengths,
                                        options.dropout_p, options.seed.value_or(0)});
  return {result.output, result.lse, result.empty_rows.item<int64_t>()};
}

}  // namespace fovea
