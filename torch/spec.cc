#include "torch/spec.h"

#include <ATen/EmptyTensor.h>

#include <limits>
#include <unordered_map>

#include "torch/call.h"
#include "torch/custom_table.h"

namespace fovea {
namespace {

// A whole number that the text leaves to a list.
constexpr int64_t kListed = std::numeric_limits<int64_t>::min();

choice_text::Reading<at::Tensor> reading(const Resolve& resolve) {
  return {resolve, custom_of, std::nullopt};
}

}  // namespace

Score parse_score(std::string_view text, const Resolve& resolve) {
  return choice_text::parse_score(text, reading(resolve));
}

Normaliser parse_normaliser(std::string_view text, const Resolve& resolve) {
  return choice_text::parse_normaliser(text, reading(resolve));
}

Structure parse_structure(std::string_view text, const Resolve& resolve) {
  return choice_text::parse_structure(text, reading(resolve));
}

Flat flatten(const Choices& choices) {
  Flat flat;
  const choice_text::Writing<at::Tensor> writing{
      [&](const at::Tensor& array) -> std::optional<std::string> {
        if (!array.defined()) return std::nullopt;
        flat.arrays.push_back(array);
        return "@";
      },
      custom_handle};
  flat.text = choice_text::write_score(choices.score, writing);
  flat.text += ';' + choice_text::write_normaliser(choices.normaliser, writing);
  flat.text += ';' + choice_text::write_structure(choices.structure, writing);
  return flat;
}

namespace {

// The choices that a text names. Its tensors and varying numbers come in lists of their own: until
// those are filled in, a tensor is empty and a number is kListed.
Choices parse_operator(std::string_view text) {
  const auto parts = choice_text::split(text, ';');
  if (parts.size() != 3) {
    throw InvalidArgument("choices: '" + std::string(text) +
                          "', expected 'score;normaliser;structure'");
  }
  const Resolve resolve = [](std::string_view field, std::string_view place) {
    if (place != "@")
      throw InvalidArgument(std::string(field) + ": '" + std::string(place) + "', expected @");
    // Not through the dispatcher: torch.compile would trace it.
    static const at::Tensor& holds_nothing =
        *new at::Tensor(at::detail::empty_cpu({0}, at::kFloat));
    return holds_nothing;
  };
  const choice_text::Reading<at::Tensor> listed{resolve, custom_of, kListed};
  return {choice_text::parse_score(parts[0], listed),
          choice_text::parse_normaliser(parts[1], listed),
          choice_text::parse_structure(parts[2], listed)};
}

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

// A program has few texts, and reads the same ones again at every call.
constexpr size_t kRemembered = 256;

const Choices& remembered(std::string_view text) {
  thread_local std::unordered_map<std::string, Choices, TextHash, std::equal_to<>> known;
  if (const auto found = known.find(text); found != known.end()) return found->second;
  Choices parsed = parse_operator(text);
  if (known.size() >= kRemembered) known.clear();
  return known.emplace(text, std::move(parsed)).first->second;
}

void check_count(const char* name, size_t given, size_t expected) {
  if (given == expected) return;
  throw InvalidArgument(std::string(name) + ": " + std::to_string(given) + " given, expected " +
                        std::to_string(expected) + " (those the choices name)");
}

}  // namespace

Choices unflatten(std::string_view text, at::TensorList arrays, c10::SymIntArrayRef numbers) {
  Choices choices = remembered(text);
  size_t array = 0, number = 0;
  visit_fields(choices, [&](const char*, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, at::Tensor>) {
      if (!field.defined()) return;
      if (array < arrays.size()) field = arrays[array];
      ++array;
    } else if constexpr (std::is_same_v<Field, int64_t>) {
      if (field != kListed) return;
      if (number < numbers.size()) field = numbers[number].maybe_as_int().value_or(0);
      ++number;
    }
  });
  check_count("arrays", arrays.size(), array);
  check_count("numbers", numbers.size(), number);
  return choices;
}

}  // namespace fovea
