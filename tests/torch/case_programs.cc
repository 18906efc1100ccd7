#include "tests/torch/case_programs.h"

#include <array>

namespace fovea {
namespace {

using cuda::Pass;
using cuda::Program;

std::string type_word(at::ScalarType type) {
  return type == at::kDouble  ? "float64"
         : type == at::kFloat ? "float32"
         : type == at::kHalf  ? "float16"
                              : "bfloat16";
}

// Which loops it is made of, what they compute with, and whether they look for a threshold: what
// decides how many registers and how much memory it takes.
std::string kind_of(const Program& program, at::ScalarType type, Pass pass) {
  const std::string driver = program.on_graph          ? "graph"
                             : program.decodes         ? "decoding"
                             : program.on_tensor_cores ? "tensor cores"
                             : program.on_points       ? "points"
                             : program.on_panels       ? "panels"
                             : program.is_parted       ? "parts"
                                                       : "tiles";
  return driver + (program.has_threshold ? ", threshold" : "") +
         (pass == Pass::kForward ? ", forward" : ", backward") + "\t" + type_word(type);
}

// Nothing where the combination has no meaning or the kernels decline it.
std::optional<Call> call_of_case(const Case& c, at::ScalarType type) {
  auto built = cases::build(c);
  try {
    engine::check_meaning(built.problem);
  } catch (const Unsupported&) {
    return std::nullopt;
  }
  Call call = call_of(built.problem);
  if (type == at::kBFloat16 || type == at::kHalf) {
    for (at::Tensor* x : {&call.query, &call.key, &call.value}) *x = x->to(type);
  }
  call = canonical(call);
  if (!cuda::kernels_decline(call).empty()) return std::nullopt;
  // Its memory goes with `built`.
  for (at::Tensor* x : {&call.query, &call.key, &call.value}) *x = x->clone();
  visit_arrays(call.choices, [](const char*, at::Tensor& x) { x = x.clone(); });
  call.key_lengths = call.query_offset = at::Tensor();
  return call;
}

}  // namespace

Case case_of_rows(const std::string& score, const std::string& modifier,
                  const std::string& normaliser, const std::string& structure) {
  Case c = with(score, normaliser, structure);
  if (!modifier.empty()) c.modifiers = {modifier};
  c.shape = {.batch = 1,
             .heads = 2,
             .key_heads = 1,
             .queries = 19,
             .keys = 21,
             .width = 32,
             .value_width = 32};
  return c;
}

std::vector<Case> shapes_of(const Case& c) {
  std::vector<Case> all{c};
  if (c.score.starts_with("kernel") && c.structure[0] == "dense") {
    all.push_back(c);
    all.back().shape.width = all.back().shape.value_width = 3;
  }
  if (c.score == "dot") {
    all.push_back(c);
    all.back().shape.queries = 1;
    all.push_back(c);
    all.back().dropout_p = 0.2;
  }
  return all;
}

std::vector<CaseProgram> programs_of_case(const Case& given, at::ScalarType type,
                                          const std::string& architecture) {
  Case c = given;
  c.dtype = type == at::kDouble ? DType::kFloat64 : DType::kFloat32;
  const auto call = call_of_case(c, type);
  if (!call) return {};
  std::vector<CaseProgram> programs;
  const auto add = [&](Pass pass, const char* word) {
    const Program program = cuda::program_for(*call, pass, architecture);
    programs.push_back(
        {c.name() + ", " + type_word(type) + ", " + word, kind_of(program, type, pass), program});
  };
  add(Pass::kForward, "forward");
  add(Pass::kBackward, "backward");
  size_t arrays = 3;
  Choices copy = call->choices;
  visit_arrays(copy, [&](const char*, at::Tensor&) { ++arrays; });
  const std::vector<int64_t> all(arrays, 1);
  if (cuda::wants_bias(*call, all) && cuda::gradients_decline(*call, all).empty())
    add(Pass::kBackwardWithBias, "backward with the bias");
  return programs;
}

std::vector<CaseProgram> programs_of_cases(const std::string& architecture) {
  constexpr std::array kTurns = {at::kDouble, at::kFloat, at::kBFloat16};
  std::vector<CaseProgram> programs;
  std::set<std::string> texts;
  size_t turn = 0;
  const auto take = [&](const std::string& score, const std::string& modifier) {
    for (const auto& normaliser : cases::normalisers()) {
      for (const auto& structure : cases::structures()) {
        const Case rows = case_of_rows(score, modifier, normaliser.name, structure.name);
        for (const Case& c : shapes_of(rows)) {
          if (c.shape.queries == 1) {  // decoding, which is of 16 bits
            for (auto& one : programs_of_case(c, at::kBFloat16, architecture))
              if (one.program.decodes && texts.insert(one.program.text).second)
                programs.push_back(std::move(one));
            continue;
          }
          // Combinations that differ in lengths and numbers alone are one, whatever the type.
          bool is_new = false;
          for (const auto& one : programs_of_case(c, at::kFloat, architecture))
            is_new = texts.insert(one.program.text).second || is_new;
          if (!is_new) continue;
          for (auto& one : programs_of_case(c, kTurns[turn++ % kTurns.size()], architecture))
            programs.push_back(std::move(one));
        }
      }
    }
  };
  for (const auto& score : cases::scores()) take(score.name, "");
  for (const auto& modifier : cases::modifiers()) take("dot", modifier.name);
  return programs;
}

}  // namespace fovea
