// Converts a choice over one type of array into the same choice over another.
#pragma once

#include <array>
#include <variant>

#include "fovea/choices.h"

namespace fovea {

// `array(from)` gives an array of the other kind. Both types list their fields in the same order.
template <class To, class From, template <class> class Kind, class Convert>
Kind<To> convert_kind(const Kind<From>& from, const Convert& array) {
  Kind<From> source = from;
  std::array<void*, 8> fields{};
  size_t n = 0;
  source.fields([&](const char*, auto& field) { fields.at(n++) = &field; });
  Kind<To> to;
  n = 0;
  to.fields([&](const char*, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, To>)
      field = array(*static_cast<From*>(fields[n++]));
    else
      field = *static_cast<Field*>(fields[n++]);
  });
  return to;
}
template <class To, class From, class Convert>
choice::Custom<To> convert_kind(const choice::Custom<From>& from, const Convert&) {
  return {from.value_f32, from.derivative_f32, from.value_f64,        from.derivative_f64,
          from.context,   from.device_value,   from.device_derivative};
}

template <class To, class From, class Convert>
choice::Score<To> convert(const choice::Score<From>& score, const Convert& array) {
  choice::Score<To> to;
  std::visit([&](const auto& kind) { to.kind = convert_kind<To, From>(kind, array); }, score.kind);
  for (const auto& modifier : score.modifiers) {
    std::visit(
        [&](const auto& kind) { to.modifiers.push_back(convert_kind<To, From>(kind, array)); },
        modifier);
  }
  return to;
}

template <class To, class From, class Convert>
choice::Normaliser<To> convert(const choice::Normaliser<From>& normaliser, const Convert& array) {
  return std::visit(
      [&](const auto& kind) -> choice::Normaliser<To> {
        return convert_kind<To, From>(kind, array);
      },
      normaliser);
}

template <class To, class From, class Convert>
choice::Structure<To> convert(const choice::Structure<From>& structure, const Convert& array);

template <class To, class From, template <class> class Kind, class Convert>
requires choice::HasParts<Kind<From>> Kind<To> convert_kind(const Kind<From>& from,
                                                            const Convert& array) {
  Kind<To> to;
  for (const auto& part : from.parts) to.parts.push_back(convert<To, From>(part, array));
  return to;
}

template <class To, class From, class Convert>
choice::Structure<To> convert(const choice::Structure<From>& structure, const Convert& array) {
  choice::Structure<To> to;
  for (const auto& part : structure.all_of) {
    std::visit(
        [&](const auto& kind) { to.all_of.emplace_back(convert_kind<To, From>(kind, array)); },
        part);
  }
  return to;
}

}  // namespace fovea
