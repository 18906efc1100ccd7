#include "torch/dispatch.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "torch/composed/pages.h"
#include "torch/cuda/cuda_device.h"
#include "torch/cuda/fused.h"
#include "torch/engine_call.h"
#include "torch/spec.h"

namespace fovea {
namespace {

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const auto& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

// For a call that libtorch could compute in every other way: whether one of its fused kernels takes
// it. libtorch computes the others (float64, odd widths, some grouped heads) from whole matrices.
// It has functions that say so beforehand.
bool has_fused_kernel(const Call& call) {
  // Fake tensors are traced without a device, so these functions cannot be called.
  if (call.query.key_set().has(c10::DispatchKey::Python))
    return call.query.scalar_type() != at::kDouble;
  const bool causal = find_structure<Causal>(call.choices.structure) && !call.key_lengths.defined();
  at::Tensor mask;
  if (call.key_lengths.defined())
    mask = at::ones({1, 1, 1, 1}, call.query.options().dtype(at::kBool).requires_grad(false))
               .expand({call.query.size(0), 1, call.query.size(2), call.key.size(2)});
  constexpr int64_t kMath = 0;
  return at::_fused_sdp_choice(
             call.query, call.key, call.value, mask.defined() ? std::optional(mask) : std::nullopt,
             /*dropout_p=*/0.0, causal, std::get<Dot>(call.choices.score.kind).scale,
             /*enable_gqa=*/call.query.size(1) != call.key.size(1)) > kMath;
}

// Why libtorch's fused attention cannot compute these choices and shapes.
std::vector<std::string> choices_decline(const Call& call) {
  std::vector<std::string> reasons;
  const auto against = [&](bool applies, std::string reason) {
    if (applies) reasons.push_back(std::move(reason));
  };
  against(!call.query.is_cuda(),
          "tensors on " + call.query.device().str() + ", where the engine is faster");
  const auto& [score, normaliser, structure] = call.choices;
  std::visit(
      [&]<class Kind>(const Kind&) {
        against(!std::is_same_v<Kind, Dot>, std::string("score ") + Kind::kName);
      },
      score.kind);
  for (const auto& modifier : score.modifiers) {
    std::visit(
        [&]<class Kind>(const Kind&) { against(true, std::string("modifier ") + Kind::kName); },
        modifier);
  }
  std::visit(
      [&]<class Kind>(const Kind& kind) {
        against(!std::is_same_v<Kind, Softmax>, std::string("normaliser ") + Kind::kName);
        if constexpr (std::is_same_v<Kind, Softmax>)
          against(kind.sink.defined(), "softmax with a sink");
      },
      normaliser);
  for (const auto& part : structure.all_of) {
    if (const auto* c = std::get_if<Causal>(&part)) {
      against(c->alignment == Alignment::kBottomRight &&
                  (call.query.sym_size(-2) != call.key.sym_size(-2) || call.key_lengths.defined()),
              "causal aligned to the bottom right with other lengths");
      against(call.query_offset.defined(), "causal queries that do not start at the first key");
    } else {
      std::visit(
          [&]<class Kind>(const Kind&) {
            against(!std::is_same_v<Kind, Dense>, std::string("structure ") + Kind::kName);
          },
          part);
    }
  }
  against(call.query.dim() != 4 || call.key.dim() != 4 || call.value.dim() != 4 ||
              call.query.sym_size(-1) != call.key.sym_size(-1),
          "shapes it does not take");
  against(call.dropout_p > 0, "dropout, which must follow the seed");
  against(call.query.sym_numel() == 0 || call.key.sym_numel() == 0 || call.value.sym_numel() == 0,
          "an empty tensor");
  return reasons;
}

}  // namespace

bool may_be_sdpas(const Call& call) { return choices_decline(call).empty(); }

std::vector<std::string> sdpa_declines(const Call& call, bool return_lse) {
  auto reasons = choices_decline(call);
  if (return_lse) reasons.emplace_back("the log-sum-exp is wanted");
  if (call.check_finite) reasons.emplace_back("scores that must be finite");
  if (reasons.empty() && !has_fused_kernel(call))
    reasons.emplace_back("no fused kernel for this type and shape");
  return reasons;
}

std::vector<std::string> kernels_decline(const Call& call) {
  if (!call.query.is_cuda())
    return {"tensors on " + call.query.device().str() + ", where the engine is faster"};
  auto reasons = cuda::kernels_decline(call);
  if (!reasons.empty()) return reasons;
  if (auto reason = cuda::cannot_have(call.query, cuda::forward_program(call)); !reason.empty())
    reasons.push_back(std::move(reason));
  return reasons;
}

std::vector<std::string> gradient_kernels_decline(const Call& call, at::IntArrayRef wanted) {
  auto reasons = cuda::gradients_decline(call, wanted);
  if (!reasons.empty()) return reasons;
  if (auto reason = cuda::cannot_have(call.query, cuda::backward_program(call, wanted));
      !reason.empty())
    reasons.push_back(std::move(reason));
  return reasons;
}

bool reads_pages(const Call& call) {
  return find_structure<Paged>(call.choices.structure) && kernels_decline(call).empty();
}

void refuse_fallback(const Call& call, bool return_lse) {
  throw Unsupported(
      "strict: no fused path serves this call\n  sdpa: " + joined(sdpa_declines(call, return_lse)) +
      "\n  kernels: " + joined(kernels_decline(call)));
}

namespace {

bool has_host_function(const Call& call) {
  const auto& modifiers = call.choices.score.modifiers;
  return std::any_of(modifiers.begin(), modifiers.end(),
                     [](const auto& modifier) { return std::holds_alternative<Custom>(modifier); });
}

}  // namespace

void refuse_host_function(const Call& call, const std::vector<std::string>& reasons) {
  if (!has_host_function(call)) return;
  throw Unsupported("custom: a function of the host cannot run on " + call.query.device().str() +
                    ", and no kernel takes its expressions\n  kernels: " + joined(reasons));
}

std::string explain(const Call& call, bool return_lse) {
  const bool paged = !call.query.device().is_cpu() && find_structure<Paged>(call.choices.structure);
  if (paged && !reads_pages(call)) {
    return "pages: keys and values are copied out of them, for the paths below\n" +
           explain(composed::out_of_pages(call), return_lse);
  }
  if (paged)
    return "pages: read where they lie, through their table\nsdpa: structure paged\n"
           "kernels: taken, fused, compiled for this combination\n"
           "composed: not fused; for second derivatives only";
  const auto reasons = sdpa_declines(call, return_lse);
  if (call.query.device().is_cpu()) {
    std::string lines = engine::explain_dispatch(problem_of(call));
    while (lines.ends_with('\n')) lines.pop_back();
    return "engine: taken, fused\n" + lines + "\nsdpa: " + joined(reasons) +
           "\ncomposed: not fused; for second derivatives only";
  }
  const std::string engine =
      "engine: tensors on " + call.query.device().str() + ", it runs on the CPU\n";
  if (reasons.empty())
    return engine +
           "sdpa: taken, libtorch's fused attention\nkernels: sdpa is faster\n"
           "composed: not fused";
  const auto against = kernels_decline(call);
  const std::string off = against.empty() ? cuda::off_tensor_cores(call) : std::string();
  return engine + "sdpa: " + joined(reasons) +
         (against.empty() ? "\nkernels: taken, fused, compiled for this combination" +
                                (off.empty() ? off : "; not on tensor cores: " + off) +
                                "\ncomposed: not fused; for second derivatives only"
                          : "\nkernels: " + joined(against) +
                                (has_host_function(call)
                                     ? "\ncomposed: refused, a custom function of the host"
                                     : "\ncomposed: taken, libtorch operations in bounded blocks "
                                       "of queries, not fused"));
}

}  // namespace fovea
