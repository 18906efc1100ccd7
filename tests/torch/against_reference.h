// The cases' problems as calls of the libtorch layer, and how far its results are from the
// reference's.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "cases/cases.h"
#include "engine/reference/structure.h"
#include "torch/call.h"
#include "torch/convert.h"

namespace fovea {

using cases::Case;
using engine::DType;
using engine::View;

inline at::Tensor tensor_of(const View& view) {
  if (!view && view.rank == 0) return {};
  const auto type = view.dtype == DType::kFloat64   ? at::kDouble
                    : view.dtype == DType::kFloat32 ? at::kFloat
                    : view.dtype == DType::kInt32   ? at::kInt
                                                    : at::kBool;
  const at::IntArrayRef size(view.size.data(), static_cast<size_t>(view.rank)),
      stride(view.stride.data(), static_cast<size_t>(view.rank));
  if (!view.data) return at::empty(size, type);
  return at::from_blob(view.data, size, stride, type);
}

inline Call call_of(const engine::Problem& problem) {
  return {tensor_of(problem.query),
          tensor_of(problem.key),
          tensor_of(problem.value),
          {convert<at::Tensor, View>(problem.score, tensor_of),
           convert<at::Tensor, View>(problem.normaliser, tensor_of),
           convert<at::Tensor, View>(problem.structure, tensor_of)},
          tensor_of(problem.key_lengths),
          problem.dropout_p,
          problem.seed,
          tensor_of(problem.query_offset.each)};
}

inline double worst(const at::Tensor& got, const std::vector<double>& expected) {
  const at::Tensor truth = at::tensor(expected, at::kDouble),
                   flat = got.contiguous().view(-1).to(at::kDouble);
  if (flat.numel() != truth.numel()) return std::numeric_limits<double>::infinity();
  if (truth.numel() == 0) return 0;
  const at::Tensor both =
      (flat == truth) | (flat.isnan() & truth.isnan());  // the same infinity, or none a number
  const at::Tensor error =
      at::where(both, 0.0, (flat - truth).abs()) / (1 + at::where(both, 0.0, truth.abs()));
  const at::Tensor most = error.max();
  return most.isnan().item<bool>() ? std::numeric_limits<double>::infinity() : most.item<double>();
}

inline Case with(const std::string& score, const std::string& normaliser,
                 const std::string& structure) {
  Case c;
  c.dtype = DType::kFloat64;
  c.score = score;
  c.normaliser = normaliser;
  c.structure = {structure};
  return c;
}

// A score of NaN or +infinity at a pair that a row sees.
inline void spoil(cases::Built& built, double bad) {
  const reference::Structure structure(built.problem);
  const View& bias = std::get<engine::Bias>(built.problem.score.modifiers[0]).bias;
  for (const auto& sequence : structure.sequences()) {
    for (int64_t i = 0; i < sequence.queries; ++i) {
      const auto keys = structure.keys(sequence, 0, i);
      if (keys.size() < 2) continue;
      cases::Storage::set(
          bias, sequence.batch * bias.stride[0] + i * bias.stride[2] + keys.back() * bias.stride[3],
          bad);
      return;
    }
  }
  ADD_FAILURE() << "no row sees two keys";
}

}  // namespace fovea
