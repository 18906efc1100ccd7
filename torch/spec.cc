#include "torch/spec.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

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

namespace {

// In the place of a tensor that comes in a list.
const at::Tensor& holds_nothing() {
  // Not through the dispatcher: torch.compile would trace it.
  static const at::Tensor& nothing = *new at::Tensor(at::detail::empty_cpu({0}, at::kFloat));
  return nothing;
}

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
    return holds_nothing();
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

// A program has few choices, and makes the same ones again at every call.
constexpr size_t kRemembered = 256;
template <class Map, class Key>
auto& remember(Map& known, Key&& key, typename Map::mapped_type value) {
  if (known.size() >= kRemembered) known.clear();
  return known.insert_or_assign(std::forward<Key>(key), std::move(value)).first->second;
}

using Known = std::unordered_map<std::string, Choices, TextHash, std::equal_to<>>;

// The choices of each text that this thread has met, without their tensors.
Known& known_here() {
  thread_local Known known;
  return known;
}

// Those of all threads. Autograd's thread for a device finds here what the forward thread has
// written, and does not parse it.
struct KnownToAll {
  std::mutex mutex;
  Known known;
  int64_t parsed = 0;
};
KnownToAll& known_to_all() {
  static KnownToAll& all = *new KnownToAll;  // outlives every thread
  return all;
}

const Choices& remember_everywhere(std::string_view text, Choices choices) {
  {
    KnownToAll& all = known_to_all();
    const std::lock_guard lock(all.mutex);
    remember(all.known, std::string(text), choices);
  }
  return remember(known_here(), std::string(text), std::move(choices));
}

std::optional<Choices> known_elsewhere(std::string_view text) {
  KnownToAll& all = known_to_all();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.known.find(text); found != all.known.end()) return found->second;
  ++all.parsed;
  return std::nullopt;
}

const Choices& remembered(std::string_view text) {
  Known& known = known_here();
  if (const auto found = known.find(text); found != known.end()) return found->second;
  if (auto choices = known_elsewhere(text))
    return remember(known, std::string(text), *std::move(choices));
  return remember_everywhere(text, parse_operator(text));
}

// What tells choices apart: their kinds and fields, and which tensors they have. The tensors
// themselves are taken out.
struct Signature {
  c10::SmallVector<uint64_t, 32> words;
  std::vector<at::Tensor> arrays;

  void operator()(const char*, double value) { words.push_back(std::bit_cast<uint64_t>(value)); }
  void operator()(const char*, int64_t value) { words.push_back(static_cast<uint64_t>(value)); }
  void operator()(const char*, bool value) { words.push_back(value); }
  void operator()(const char* field, const std::optional<double>& value) {
    words.push_back(value.has_value());
    if (value) (*this)(field, *value);
  }
  void operator()(const char*, at::Tensor& value) {
    words.push_back(value.defined());
    if (value.defined()) arrays.push_back(std::exchange(value, holds_nothing()));
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(const char*, Enum value) { words.push_back(static_cast<uint64_t>(value)); }

  void add(Custom& kind) {
    const int64_t handle = custom_handle(kind);
    words.push_back(static_cast<uint64_t>(handle));
    kind = custom_of(handle);  // whose expressions stay, for choices that are remembered
  }
  void add(Structure& structure) {
    if (structure.all_of.empty()) structure = Dense{};
    add_each(structure.all_of);
  }
  template <class Kind>
  void add(Kind& kind) {
    if constexpr (choice::HasParts<Kind>) {
      words.push_back(kind.parts.size());
      for (Structure& part : kind.parts) add(part);
    } else {
      kind.fields(*this);
    }
  }
  template <class... Kinds>
  void add(std::variant<Kinds...>& kind) {
    words.push_back(kind.index());
    std::visit([this](auto& one) { this->add(one); }, kind);
  }
  template <class Variant>
  void add_each(std::vector<Variant>& kinds) {
    words.push_back(kinds.size());
    for (Variant& kind : kinds) add(kind);
  }
};

struct WordsHash {
  size_t operator()(const c10::SmallVector<uint64_t, 32>& words) const {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)});
  }
};

std::string written(const Choices& choices) {
  const choice_text::Writing<at::Tensor> writing{
      [](const at::Tensor& array) {
        return array.defined() ? std::optional<std::string>("@") : std::nullopt;
      },
      custom_handle};
  return choice_text::write_score(choices.score, writing) + ';' +
         choice_text::write_normaliser(choices.normaliser, writing) + ';' +
         choice_text::write_structure(choices.structure, writing);
}

void check_count(const char* name, size_t given, size_t expected) {
  if (given == expected) return;
  throw InvalidArgument(std::string(name) + ": " + std::to_string(given) + " given, expected " +
                        std::to_string(expected) + " (those the choices name)");
}

}  // namespace

int64_t texts_parsed() {
  KnownToAll& all = known_to_all();
  const std::lock_guard lock(all.mutex);
  return all.parsed;
}

Flat flatten(Choices choices) {
  Signature signature;
  signature.add(choices.score.kind);
  signature.add_each(choices.score.modifiers);
  signature.add(choices.normaliser);
  signature.add(choices.structure);
  thread_local std::unordered_map<c10::SmallVector<uint64_t, 32>,
                                  std::shared_ptr<const std::string>, WordsHash>
      texts;
  if (const auto found = texts.find(signature.words); found != texts.end())
    return {found->second, std::move(signature.arrays)};
  auto text = std::make_shared<const std::string>(written(choices));
  remember_everywhere(*text, std::move(choices));
  return {remember(texts, signature.words, text), std::move(signature.arrays)};
}

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
