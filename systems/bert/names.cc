#include "systems/bert/names.h"

#include <fmt/format.h>

namespace fovea::systems::bert {
namespace {

// Weight and bias of a layer.
void add(std::vector<WeightName>& out, const std::string& ours,
         const std::vector<std::string>& theirs) {
  for (const char* part : {".weight", ".bias"}) {
    WeightName name{ours + part, {}};
    for (const std::string& one : theirs) name.theirs.push_back(one + part);
    out.push_back(std::move(name));
  }
}

}  // namespace

std::vector<WeightName> encoder_names(const nn::BertOptions& sizes, const std::string& prefix) {
  const std::string embeddings = prefix + "embeddings.";
  std::vector<WeightName> out = {
      {"encoder.words.weight", {embeddings + "word_embeddings.weight"}},
      {"encoder.positions.weight", {embeddings + "position_embeddings.weight"}},
      {"encoder.segments.weight", {embeddings + "token_type_embeddings.weight"}}};
  add(out, "encoder.norm", {embeddings + "LayerNorm"});
  for (int64_t i = 0; i < sizes.layers; ++i) {
    const std::string ours = fmt::format("encoder.layers.{}.", i),
                      theirs = fmt::format("{}encoder.layer.{}.", prefix, i),
                      self = theirs + "attention.self.";
    add(out, ours + "in_proj", {self + "query", self + "key", self + "value"});
    add(out, ours + "out_proj", {theirs + "attention.output.dense"});
    add(out, ours + "norm1", {theirs + "attention.output.LayerNorm"});
    add(out, ours + "linear1", {theirs + "intermediate.dense"});
    add(out, ours + "linear2", {theirs + "output.dense"});
    add(out, ours + "norm2", {theirs + "output.LayerNorm"});
  }
  return out;
}

HeadNames head_names(const std::string& prefix) {
  HeadNames out;
  add(out.pooler, "pooler", {prefix + "pooler.dense"});
  add(out.fill, "fill.transform", {"cls.predictions.transform.dense"});
  add(out.fill, "fill.norm", {"cls.predictions.transform.LayerNorm"});
  out.fill.push_back({"fill.bias", {"cls.predictions.bias"}});
  add(out.next, "next", {"cls.seq_relationship"});
  add(out.classifier, "classifier", {"classifier"});
  add(out.span, "span", {"qa_outputs"});
  return out;
}

std::vector<WeightName> names_of(const HeadsWanted& heads, const std::string& prefix) {
  const HeadNames all = head_names(prefix);
  std::vector<WeightName> out;
  const auto take = [&](bool wanted, const std::vector<WeightName>& names) {
    if (wanted) out.insert(out.end(), names.begin(), names.end());
  };
  take(heads.pooler, all.pooler);
  take(heads.fill, all.fill);
  take(heads.next, all.next);
  take(heads.classes > 0, all.classifier);
  take(heads.span, all.span);
  return out;
}

}  // namespace fovea::systems::bert
