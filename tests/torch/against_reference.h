// The cases' problems as calls of the libtorch layer, and how far its results are from the
// reference's.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <optional>

#include "cases/cases.h"
#include "engine/call/meaning.h"
#include "engine/reference/reference.h"
#include "engine/reference/structure.h"
#include "torch/call.h"
#include "torch/convert.h"
#include "torch/engine_call.h"

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

// One form of the operation that is to equal the reference.
struct Form {
  struct Results {
    at::Tensor output, lse, empty_rows;
    at::Tensor statistics = {};  // for its own backward
  };
  // Nothing where it declines the call. `with_lse`: the normaliser has a log-sum-exp.
  std::function<std::optional<Results>(const Call&, bool with_lse)> forward;
  // Gradients of query, key, value and of the choices' arrays; none where it declines `wanted`.
  std::function<std::vector<at::Tensor>(const Call&, const Results&, const at::Tensor& d_output,
                                        const at::Tensor& d_lse,
                                        const std::vector<int64_t>& wanted)>
      backward;
  // A normaliser whose empty rows it counts in another way than the reference.
  std::string counts_otherwise = {};
};

// In double: a form adds in another order than the reference, and scores reach a few hundred.
inline constexpr double kFormBound = 1e-8;

inline void expect_gradients(const Case& c, const std::vector<at::Tensor>& got,
                             const reference::Backward<double>& truth) {
  std::vector<const reference::Tensor<double>*> all{&truth.query, &truth.key, &truth.value};
  const auto take = [&](const std::vector<reference::Tensor<double>>& list) {
    for (const auto& x : list) {
      if (x) all.push_back(&x);
    }
  };
  take(truth.score);
  for (const auto& list : truth.modifiers) take(list);
  take(truth.normaliser);
  for (size_t n = 0; n < all.size(); ++n) {
    if (!got[n].defined()) {
      ADD_FAILURE() << c.name() << ": no gradient " << n;
    } else {
      EXPECT_LT(worst(got[n], all[n]->data), kFormBound) << c.name() << ": gradient " << n;
    }
  }
}

// Forward and backward against the reference. False where the combination has no meaning, or the
// form declines it.
inline bool check(
    const Form& form, const Case& c,
    const std::function<void(cases::Built&)>& change = [](auto&) {}) {
  auto built = cases::build(c);
  change(built);
  try {
    engine::check_meaning(built.problem);
  } catch (const Unsupported&) {
    return false;
  }
  const at::NoGradGuard guard;
  const Call call = canonical(call_of(built.problem));
  const auto truth = reference::forward<double>(built.problem);
  const auto got = form.forward(call, !truth.lse.empty());
  if (!got) return false;
  EXPECT_LT(worst(got->output, truth.output.data), kFormBound) << c.name() << ": output";
  if (c.normaliser != form.counts_otherwise) {
    EXPECT_EQ(got->empty_rows.item<int64_t>(), truth.empty_rows) << c.name();
  }
  if (!truth.lse.empty()) {
    EXPECT_LT(worst(got->lse, truth.lse), kFormBound) << c.name() << ": lse";
  }
  size_t arrays = 0;
  Choices copy = call.choices;
  visit_arrays(copy, [&](const char*, at::Tensor&) { ++arrays; });
  const auto gradients =
      form.backward(call, *got, tensor_of(built.gradients.output), tensor_of(built.gradients.lse),
                    std::vector<int64_t>(3 + arrays, 1));
  if (gradients.empty()) return true;
  expect_gradients(
      c, gradients,
      reference::backward<double>(built.problem, built.gradients.output, built.gradients.lse));
  return true;
}

}  // namespace fovea
