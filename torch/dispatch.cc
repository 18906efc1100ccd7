#include "torch/dispatch.h"

#include "torch/engine_call.h"
#include "torch/spec.h"

namespace fovea {
namespace {

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const auto& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

}  // namespace

std::vector<std::string> sdpa_declines(const Call& call, bool return_lse) {
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
                  (call.query.size(-2) != call.key.size(-2) || call.key_lengths.defined()),
              "causal aligned to the bottom right with other lengths");
    } else {
      std::visit(
          [&]<class Kind>(const Kind&) {
            against(!std::is_same_v<Kind, Dense>, std::string("structure ") + Kind::kName);
          },
          part);
    }
  }
  against(call.query.dim() != 4 || call.key.dim() != 4 || call.value.dim() != 4 ||
              call.query.size(-1) != call.key.size(-1),
          "shapes it does not take");
  against(call.dropout_p > 0, "dropout, which must follow the seed");
  against(return_lse, "the log-sum-exp is asked for");
  against(call.query.numel() == 0 || call.key.numel() == 0 || call.value.numel() == 0,
          "an empty tensor");
  return reasons;
}

void refuse_fallback(const Call& call, bool return_lse) {
  throw Unsupported("strict: no fused path serves this call\n  sdpa: " +
                    joined(sdpa_declines(call, return_lse)));
}

std::string explain(const Call& call, bool return_lse) {
  const auto reasons = sdpa_declines(call, return_lse);
  const std::string composed =
      "\ncomposed: taken, libtorch operations in bounded blocks of queries, not fused";
  if (call.query.device().is_cpu()) {
    std::string lines = engine::explain_dispatch(problem_of(call));
    while (lines.ends_with('\n')) lines.pop_back();
    return "engine: taken, fused\n" + lines + "\nsdpa: " + joined(reasons) +
           "\ncomposed: not fused; for second derivatives only";
  }
  const std::string engine =
      "engine: tensors on " + call.query.device().str() + ", it runs on the CPU\n";
  if (reasons.empty())
    return engine + "sdpa: taken, libtorch's fused attention\ncomposed: not fused";
  return engine + "sdpa: " + joined(reasons) + composed;
}

}  // namespace fovea
