// Several structures that must all allow a pair.
#pragma once

namespace fovea::cuda {

// Which keys a span's rows may see, and which rows may see its keys, where a structure bounds them:
// the two ends are brought closer together. Rows are counted from position 0.
//
// kExact: whether they do so exactly for a span of one row, and of one key.
//
// kBand: whether what is allowed is low <= i - j <= high, two numbers that `narrow_band` brings closer
// together.
struct Unbounded {
  static constexpr bool kBand = false, kExact = false;
  static void narrow_band(const Part&, int&, int&) {}
  static void narrow_keys(const Part&, const Span&, int&, int&) {}
  static void narrow_positions(const Part&, const Span&, int&, int&) {}
};

template <class... Kinds>
struct All;

// How many parts a structure reads: one, and a list those of all its structures.
template <class Kind>
constexpr int kParts = 1;
template <class... Kinds>
constexpr int kParts<All<Kinds...>> = (kParts<Kinds> + ... + 0);

template <>
struct All<> {
  static constexpr bool kBand = true, kExact = true;
  static void narrow_band(const Part*, int&, int&) {}
  static void narrow_exact_keys(const Part*, const Span&, int&, int&) {}
  static void narrow_exact_positions(const Part*, const Span&, int&, int&) {}
  static bool allows_beside(const Part*, const Place&) { return true; }
  static Cover cover(const Part*, const Span&) { return Cover::kAll; }
  static bool allows(const Part*, const Place&) { return true; }
  static void narrow_keys(const Part*, const Span&, int&, int&) {}
  static void narrow_positions(const Part*, const Span&, int&, int&) {}
};
template <class Kind, class... Rest>
struct All<Kind, Rest...> {
  static constexpr bool kBand = Kind::kBand && All<Rest...>::kBand,
                        kExact = Kind::kExact && All<Rest...>::kExact;
  static void narrow_band(const Part* parts, int& low, int& high) {
    Kind::narrow_band(*parts, low, high);
    All<Rest...>::narrow_band(parts + kParts<Kind>, low, high);
  }
  static Cover cover(const Part* parts, const Span& span) {
    const Cover first = Kind::cover(*parts, span);
    if (first == Cover::kNone) return first;
    const Cover rest = All<Rest...>::cover(parts + kParts<Kind>, span);
    return rest == Cover::kAll ? first : rest;
  }
  static bool allows(const Part* parts, const Place& place) {
    // Without a branch, so that pairs share what is read for a row or a key.
    const bool first = Kind::allows(*parts, place),
               rest = All<Rest...>::allows(parts + kParts<Kind>, place);
    return first & rest;
  }
  static void narrow_keys(const Part* parts, const Span& span, int& first, int& end) {
    Kind::narrow_keys(*parts, span, first, end);
    All<Rest...>::narrow_keys(parts + kParts<Kind>, span, first, end);
  }
  static void narrow_positions(const Part* parts, const Span& span, int& first, int& end) {
    Kind::narrow_positions(*parts, span, first, end);
    All<Rest...>::narrow_positions(parts + kParts<Kind>, span, first, end);
  }
  // By those that are exact, and what the others allow.
  static void narrow_exact_keys(const Part* parts, const Span& span, int& first, int& end) {
    if constexpr (Kind::kExact) Kind::narrow_keys(*parts, span, first, end);
    All<Rest...>::narrow_exact_keys(parts + kParts<Kind>, span, first, end);
  }
  static void narrow_exact_positions(const Part* parts, const Span& span, int& first, int& end) {
    if constexpr (Kind::kExact) Kind::narrow_positions(*parts, span, first, end);
    All<Rest...>::narrow_exact_positions(parts + kParts<Kind>, span, first, end);
  }
  static bool allows_beside(const Part* parts, const Place& place) {
    const bool rest = All<Rest...>::allows_beside(parts + kParts<Kind>, place);
    if constexpr (Kind::kExact) return rest;
    return Kind::allows(*parts, place) & rest;
  }
};

}  // namespace fovea::cuda
