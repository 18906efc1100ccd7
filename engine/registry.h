// From choices to stages: one factory for each file under scores/, modifiers/, normalisers/ and
// structures/.
#pragma once

#include <memory>

#include "engine/call/problem.h"
#include "engine/stage.h"
#include "fovea/engine.h"

namespace fovea::engine {

// What a stage is made from. The problem has been checked; everything outlives the stage.
struct StageContext {
  const Problem& problem;
  const Geometry& geometry;
  const Gradients* gradients = nullptr;  // null in forward
  Face face = Face::kLog;
};

template <class T>
struct Stages {
  std::unique_ptr<ScoreStage<T>> score;
  Vector<std::unique_ptr<ModifierStage<T>>> modifiers;
  std::unique_ptr<NormaliserStage<T>> normaliser;
};

template <class T>
Stages<T> make_stages(const StageContext& context);
template <class T>
std::unique_ptr<NormaliserStage<T>> make_normaliser(const StageContext& context);  // no other stage
std::unique_ptr<StructureStage> make_structure(const Problem& problem, const Geometry& geometry);

// Each is defined in the file of its name, and instantiated there for float and double.
// clang-format off
template <class T> using ScorePointer = std::unique_ptr<ScoreStage<T>>;
template <class T> using ModifierPointer = std::unique_ptr<ModifierStage<T>>;
template <class T> using NormaliserPointer = std::unique_ptr<NormaliserStage<T>>;

template <class T> ScorePointer<T> make_dot(const StageContext&);
template <class T> NormaliserPointer<T> make_softmax(const StageContext&);
template <class T> NormaliserPointer<T> make_kernel_ratio(const StageContext&);
template <class T> NormaliserPointer<T> make_unnormalised(const StageContext&);
template <class T> NormaliserPointer<T> make_uniform(const StageContext&);
template <class T> NormaliserPointer<T> make_sigmoid(const StageContext&);
template <class T> ScorePointer<T> make_bilinear(const StageContext&);
template <class T> ScorePointer<T> make_additive(const StageContext&);
template <class T> ScorePointer<T> make_gated_additive(const StageContext&);
template <class T> ScorePointer<T> make_kernel(const StageContext&);
template <class T> ScorePointer<T> make_cosine(const StageContext&);
template <class T> ScorePointer<T> make_rank_one(const StageContext&);
template <class T> ScorePointer<T> make_location(const StageContext&);
template <class T> ScorePointer<T> make_constant(const StageContext&);
template <class T> NormaliserPointer<T> make_sparsemax(const StageContext&);
template <class T> NormaliserPointer<T> make_entmax(const StageContext&);
template <class T> NormaliserPointer<T> make_top_k(const StageContext&);
template <class T> NormaliserPointer<T> make_hard(const StageContext&);
// Modifiers: `index` is the place in problem.score.modifiers (and in gradients->score.modifiers).
template <class T> ModifierPointer<T> make_bias(const StageContext&, size_t index);
template <class T> ModifierPointer<T> make_edge_bias(const StageContext&, size_t index);
template <class T> ModifierPointer<T> make_alibi(const StageContext&, size_t index);
template <class T> ModifierPointer<T> make_relative(const StageContext&, size_t index);
template <class T> ModifierPointer<T> make_soft_cap(const StageContext&, size_t index);
template <class T> ModifierPointer<T> make_custom(const StageContext&, size_t index);
// clang-format on

}  // namespace fovea::engine
