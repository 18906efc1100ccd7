#include "torch/cuda/warm.h"

#include <ATen/ATen.h>

#include <array>
#include <charconv>
#include <sstream>

#include "fovea/error.h"
#include "torch/cuda/fused.h"
#include "torch/cuda/runtime/cache.h"
#include "torch/cuda/runtime/driver.h"
#include "torch/cuda/runtime/nvrtc.h"
#include "torch/engine_call.h"
#include "torch/spec.h"

namespace fovea::cuda {
namespace {

[[noreturn]] void refuse(std::string_view line, const std::string& what) {
  throw InvalidArgument("'" + std::string(line) + "': " + what);
}

// What follows the choices: types and widths, which are constants of a program.
struct Operands {
  at::ScalarType type = at::kFloat;
  int64_t width = 0, value_width = 0;
  bool step = false, dropout = false, forward = false;
};

at::ScalarType type_named(std::string_view line, const std::string& name) {
  using Named = std::pair<const char*, at::ScalarType>;
  constexpr std::array<Named, 4> kTypes = {{{"float32", at::kFloat},
                                            {"float64", at::kDouble},
                                            {"bfloat16", at::kBFloat16},
                                            {"float16", at::kHalf}}};
  for (const auto& [known, type] : kTypes)
    if (name == known) return type;
  refuse(line, "type '" + name + "', expected float32, float64, bfloat16 or float16");
}

int64_t width_in(std::string_view line, const std::string& word) {
  constexpr int64_t kMost = 1 << 20;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 1 || number > kMost)
    refuse(line, "width '" + word + "', expected a whole number from 1");
  return number;
}

Operands operands_in(std::string_view line, std::string_view text) {
  std::istringstream words{std::string(text)};
  Operands operands;
  std::string word;
  if (!(words >> word)) refuse(line, "no type and width after the structure");
  operands.type = type_named(line, word);
  if (!(words >> word)) refuse(line, "no width after the type");
  operands.width = operands.value_width = width_in(line, word);
  bool has_value_width = false;
  while (words >> word) {
    if (word == "step") {
      operands.step = true;
    } else if (word == "dropout") {
      operands.dropout = true;
    } else if (word == "forward") {
      operands.forward = true;
    } else if (!has_value_width && word.find_first_not_of("0123456789") == std::string::npos) {
      operands.value_width = width_in(line, word);
      has_value_width = true;
    } else {
      refuse(line, "'" + word + "', expected a width of values, step, dropout or forward");
    }
  }
  return operands;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

}  // namespace

Machine machine_here() {
  const DeviceFacts facts = device_facts(0);
  return {facts.architecture, facts.driver};
}

Combination combination_of(std::string_view line) {
  const auto parts = choice_text::split(line, ';');
  if (parts.size() != 4) refuse(line, "expected SCORE;NORMALISER;STRUCTURE;TYPE WIDTH");
  const Operands operands = operands_in(line, parts[3]);
  const at::ScalarType numbers = arithmetic_type(at::empty({0}, operands.type));
  // An array has no part in a program but that it is there; a metric also has the width.
  const Resolve resolve = [&](std::string_view field, std::string_view text) {
    if (text != "@")
      refuse(line,
             std::string(field) + "=" + std::string(text) + ", expected @: the call gives it");
    const int64_t size = field == "metric" ? operands.width : 1;
    return at::zeros({size, size}, numbers);
  };
  Combination to;
  try {
    to.call.choices = {parse_score(trimmed(parts[0]), resolve),
                       parse_normaliser(trimmed(parts[1]), resolve),
                       parse_structure(trimmed(parts[2]), resolve)};
  } catch (const UnknownName& error) {
    refuse(line, error.what());
  }
  to.forward_only = operands.forward;
  to.call.dropout_p = operands.dropout ? 0.5 : 0;
  constexpr int64_t kMany = 64;  // more than a step of decoding has
  const auto rows = [&](int64_t count, int64_t width) {
    const auto options = at::TensorOptions(operands.type);
    return is_packed(to.call.choices.structure) ? at::zeros({count, 1, width}, options)
                                                : at::zeros({1, 1, count, width}, options);
  };
  to.call.query = rows(operands.step ? 1 : kMany, operands.width);
  to.call.key = rows(kMany, operands.width);
  to.call.value = rows(kMany, operands.value_width);
  return to;
}

std::vector<Program> programs_of(const Combination& combination, const std::string& architecture) {
  const Call& call = combination.call;
  if (const auto reasons = cuda::kernels_decline(call); !reasons.empty())
    throw Unsupported("kernels: " + reasons[0]);
  std::vector<Program> programs{program_for(call, Pass::kForward, architecture)};
  if (combination.forward_only) return programs;
  std::vector<int64_t> wanted{1, 1, 1};
  if (gradients_decline(call, wanted).empty())
    programs.push_back(program_for(call, Pass::kBackward, architecture));
  Choices copy = call.choices;
  visit_arrays(copy, [&](const char*, at::Tensor&) { wanted.push_back(1); });
  if (wants_bias(call, wanted) && gradients_decline(call, wanted).empty())
    programs.push_back(program_for(call, Pass::kBackwardWithBias, architecture));
  return programs;
}

Kept keep(const Program& program, const Machine& machine) {
  const std::string key = cache_key(program.text, machine.architecture, machine.driver);
  if (cached(key)) return Kept::kWasThere;
  const Compiled compiled = compile(program.text, machine.architecture);
  if (compiled.binary.empty()) throw Unsupported(program.name + ": " + compiled.log);
  keep_cached(key, compiled.binary);
  if (!cached(key))
    throw InvalidArgument(cache_folder().empty()
                              ? "cache: no HOME and no FOVEA_CACHE, expected a folder to keep in"
                              : cache_folder() +
                                    ": cannot be written, expected a folder to keep "
                                    "programs in (FOVEA_CACHE names another)");
  return Kept::kNow;
}

}  // namespace fovea::cuda
