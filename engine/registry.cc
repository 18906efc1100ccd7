#include "engine/registry.h"

#include <stdexcept>

#include "engine/structures/structures.h"

namespace fovea::engine {
namespace {

template <class T>
struct MakeScore {
  const StageContext& context;
  ScorePointer<T> operator()(const Dot&) const { return make_dot<T>(context); }
  ScorePointer<T> operator()(const Bilinear&) const { return make_bilinear<T>(context); }
  ScorePointer<T> operator()(const Additive&) const { return make_additive<T>(context); }
  ScorePointer<T> operator()(const GatedAdditive&) const { return make_gated_additive<T>(context); }
  ScorePointer<T> operator()(const Kernel&) const { return make_kernel<T>(context); }
  ScorePointer<T> operator()(const Cosine&) const { return make_cosine<T>(context); }
  ScorePointer<T> operator()(const RankOne&) const { return make_rank_one<T>(context); }
  ScorePointer<T> operator()(const Location&) const { return make_location<T>(context); }
  ScorePointer<T> operator()(const Constant&) const { return make_constant<T>(context); }
};

template <class T>
struct MakeModifier {
  const StageContext& context;
  const size_t index;
  ModifierPointer<T> operator()(const Bias&) const { return make_bias<T>(context, index); }
  ModifierPointer<T> operator()(const Alibi&) const { return make_alibi<T>(context, index); }
  ModifierPointer<T> operator()(const Relative&) const { return make_relative<T>(context, index); }
  ModifierPointer<T> operator()(const SoftCap&) const { return make_soft_cap<T>(context, index); }
  ModifierPointer<T> operator()(const EdgeBias&) const { return make_edge_bias<T>(context, index); }
  ModifierPointer<T> operator()(const Custom&) const { return make_custom<T>(context, index); }
};

template <class T>
struct MakeNormaliser {
  const StageContext& context;
  NormaliserPointer<T> operator()(const Softmax&) const { return make_softmax<T>(context); }
  NormaliserPointer<T> operator()(const KernelRatio&) const {
    return context.face == Face::kLog ? make_softmax<T>(context) : make_kernel_ratio<T>(context);
  }
  NormaliserPointer<T> operator()(const Unnormalised&) const {
    return make_unnormalised<T>(context);
  }
  NormaliserPointer<T> operator()(const Uniform&) const { return make_uniform<T>(context); }
  NormaliserPointer<T> operator()(const Sigmoid&) const { return make_sigmoid<T>(context); }
  NormaliserPointer<T> operator()(const Sparsemax&) const { return make_sparsemax<T>(context); }
  NormaliserPointer<T> operator()(const Entmax&) const { return make_entmax<T>(context); }
  NormaliserPointer<T> operator()(const TopK&) const { return make_top_k<T>(context); }
  NormaliserPointer<T> operator()(const Hard&) const { return make_hard<T>(context); }
};

// Ragged, Graph and Paged say how tensors are divided. Within one part every pair is allowed: Dense.
struct MakeStructure {
  const Geometry& geometry;
  StructurePointer operator()(const Dense&) const { return make_dense(geometry); }
  StructurePointer operator()(const Ragged&) const { return make_dense(geometry); }
  StructurePointer operator()(const Graph&) const { return make_dense(geometry); }
  StructurePointer operator()(const Paged&) const { return make_dense(geometry); }
  StructurePointer operator()(const Causal&) const { return make_causal(geometry); }
  StructurePointer operator()(const Window& s) const { return make_window(s, geometry); }
  StructurePointer operator()(const Prefix& s) const { return make_prefix(s, geometry); }
  StructurePointer operator()(const Documents& s) const { return make_documents(s, geometry); }
  StructurePointer operator()(const Blocks& s) const { return make_blocks(s, geometry); }
  StructurePointer operator()(const Keep& s) const { return make_keep(s, geometry); }
  StructurePointer operator()(const Strided& s) const { return make_strided(s, geometry); }
  StructurePointer operator()(const Fixed& s) const { return make_fixed(s, geometry); }
  StructurePointer operator()(const First& s) const { return make_first(s, geometry); }
  StructurePointer operator()(const AnyOf& s) const {
    Vector<StructurePointer> parts;
    for (const Structure& part : s.parts) parts.push_back(all_of(part));
    return make_any_of(std::move(parts));
  }
  StructurePointer operator()(const Not& s) const {
    return make_complement(all_of(s.parts[0]), geometry);
  }

  StructurePointer all_of(const Structure& structure) const {
    // Most calls have one, for which no list is made.
    if (structure.all_of.size() == 1) return std::visit(*this, structure.all_of.front());
    Vector<StructurePointer> parts;
    for (const auto& part : structure.all_of) {
      const bool says_layout =
          std::visit([]<class Kind>(const Kind&) { return choice::kSaysLayout<View, Kind>; }, part);
      if (!says_layout) parts.push_back(std::visit(*this, part));
    }
    if (parts.empty()) parts.push_back(make_dense(geometry));
    return make_conjunction(std::move(parts));
  }
};

}  // namespace

template <class T>
std::unique_ptr<NormaliserStage<T>> make_normaliser(const StageContext& context) {
  return std::visit(MakeNormaliser<T>{context}, context.problem.normaliser);
}
template std::unique_ptr<NormaliserStage<float>> make_normaliser<float>(const StageContext&);
template std::unique_ptr<NormaliserStage<double>> make_normaliser<double>(const StageContext&);

template <class T>
Stages<T> make_stages(const StageContext& context) {
  Stages<T> stages;
  stages.score = std::visit(MakeScore<T>{context}, context.problem.score.kind);
  const auto& modifiers = context.problem.score.modifiers;
  for (size_t i = 0; i < modifiers.size(); ++i) {
    stages.modifiers.push_back(std::visit(MakeModifier<T>{context, i}, modifiers[i]));
  }
  stages.normaliser = make_normaliser<T>(context);
  return stages;
}
template Stages<float> make_stages<float>(const StageContext&);
template Stages<double> make_stages<double>(const StageContext&);

std::unique_ptr<StructureStage> make_structure(const Problem& problem, const Geometry& geometry) {
  return MakeStructure{geometry}.all_of(problem.structure);
}

}  // namespace fovea::engine
