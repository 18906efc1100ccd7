// Which pairs are allowed: query i may see key j.
// Causal, Window, Prefix, Strided and Fixed depend on positions: i is the row of the query plus the
// call's query_offset, so that decoding with a cache sees the same keys as the whole call.
// Documents, Blocks and Keep index arrays by the row of the query, without the offset: pass the
// arrays of the rows that are given.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fovea::choice {

enum class Alignment : uint8_t { kTopLeft, kBottomRight };

// A whole number: one for all items of the batch, or one for each, int [B] ([1]: for all).
template <class Array>
struct PerItem {
  int64_t number = 0;
  Array each{};  // if there is one, it replaces the number

  PerItem() = default;
  PerItem(int64_t all) : number(all) {}                 // NOLINT: implicit from a number
  PerItem(Array numbers) : each(std::move(numbers)) {}  // NOLINT: implicit from an array
};

template <class Array>
struct Dense {
  static constexpr const char* kName = "dense";
  template <class Visit>
  void fields(Visit&&) {}
};
// j <= i. Top left: i counts from the call's query_offset, 0 by default. Bottom right: the last
// query is at the position of the last key. It sets query_offset to S - L (S: the key length, if
// lengths are given) for all structures and modifiers of the call; another offset is refused.
template <class Array>
struct Causal {
  static constexpr const char* kName = "causal";
  Alignment alignment = Alignment::kTopLeft;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("alignment", alignment);
  }
};
// i - left <= j <= i + right; -1 is unbounded.
template <class Array>
struct Window {
  static constexpr const char* kName = "window";
  int64_t left = -1, right = -1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("left", left);
    visit("right", right);
  }
};
// j <= i or j < length; lengths [B] (int32), if given, has a length for each item instead.
template <class Array>
struct Prefix {
  static constexpr const char* kName = "prefix";
  int64_t length = 0;
  Array lengths{};
  template <class Visit>
  void fields(Visit&& visit) {
    visit("length", length);
    visit("lengths", lengths);
  }
};
// Equal ids: int32 [L] or [B, L] for the queries, [S] or [B, S] for the keys, indexed by row.
template <class Array>
struct Documents {
  static constexpr const char* kName = "documents";
  Array query_ids, key_ids;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("query_ids", query_ids);
    visit("key_ids", key_ids);
  }
};
// Blocks of size x size; mask bool, any broadcast of [B, H, ceil(L/size), ceil(S/size)], by row.
template <class Array>
struct Blocks {
  static constexpr const char* kName = "blocks";
  Array mask;
  int64_t size = 64;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("mask", mask);
    visit("size", size);
  }
};
// Where mask is true; bool, any broadcast of [B, H, L, S], by row.
template <class Array>
struct Keep {
  static constexpr const char* kName = "keep";
  Array mask;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("mask", mask);
  }
};
// Packed tensors (total, H, E); int32 offsets [B + 1].
template <class Array>
struct Ragged {
  static constexpr const char* kName = "ragged";
  Array query_offsets, key_offsets;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("query_offsets", query_offsets);
    visit("key_offsets", key_offsets);
  }
};
// Packed tensors (total, H, E); row r of the CSR (int32) lists the keys that query r sees, in any
// order. For modifiers and other structures in the call, row r has position r + query_offset.
template <class Array>
struct Graph {
  static constexpr const char* kName = "graph";
  Array row_offsets, columns;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("row_offsets", row_offsets);
    visit("columns", columns);
  }
};
// Keys and values in pages, as a server keeps its cache: pools [pages, page_size, Hkv, E]. Key j of
// item b is row j mod page_size of page table[b][j / page_size], for j < lengths[b]. int32, table
// [B, pages of an item at most], lengths [B]. What the table has past an item's keys is not read.
// Items may share pages. S, for masks and biases, is the table's width times the page's size.
template <class Array>
struct Paged {
  static constexpr const char* kName = "paged";
  Array table, lengths;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("table", table);
    visit("lengths", lengths);
  }
};
// j <= i and (i - j <= stride or (i - j) mod stride = 0).
template <class Array>
struct Strided {
  static constexpr const char* kName = "strided";
  int64_t stride = 1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("stride", stride);
  }
};
// j <= i and (floor(j / stride) = floor(i / stride) or j mod stride >= stride - summary).
template <class Array>
struct Fixed {
  static constexpr const char* kName = "fixed";
  int64_t stride = 1, summary = 1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("stride", stride);
    visit("summary", summary);
  }
};

// j < count: the first keys, which StreamingLLM keeps as its sinks.
template <class Array>
struct First {
  static constexpr const char* kName = "first";
  int64_t count = 0;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("count", count);
  }
};

template <class Array>
struct Structure;
// A pair that any of the parts allows; written a | b.
template <class Array>
struct AnyOf {
  static constexpr const char* kName = "any_of";
  std::vector<Structure<Array>> parts;
};
// A pair that the one part does not allow; written ~a.
template <class Array>
struct Not {
  static constexpr const char* kName = "not";
  std::vector<Structure<Array>> parts;
};
// AnyOf and Not: they have parts, and no fields of their own.
template <class Kind>
concept HasParts = requires(const Kind& kind) {
  kind.parts;
};

template <class Array>
using StructureKind =
    std::variant<Dense<Array>, Causal<Array>, Window<Array>, Prefix<Array>, Documents<Array>,
                 Blocks<Array>, Keep<Array>, Ragged<Array>, Graph<Array>, Strided<Array>,
                 Fixed<Array>, First<Array>, Paged<Array>, AnyOf<Array>, Not<Array>>;

// Whether a kind says how tensors lie in memory, besides which pairs are allowed.
template <class Array, class Kind>
inline constexpr bool kSaysLayout =
    std::is_same_v<Kind, Ragged<Array>> || std::is_same_v<Kind, Graph<Array>> ||
    std::is_same_v<Kind, Paged<Array>>;

// One structure, or several: a pair is allowed if all of them allow it. Ragged, Graph and Paged say
// how tensors lie in memory, so they stand here and not inside AnyOf or Not.
template <class Array>
struct Structure {
  std::vector<StructureKind<Array>> all_of;

  Structure() = default;
  template <class T>
  requires std::is_constructible_v<StructureKind<Array>, T> Structure(T value) {
    all_of.emplace_back(std::move(value));
  }  // NOLINT: a structure type is a structure
};

// Every kind of a structure, those inside AnyOf and Not too, in the order they are written:
// visit(kind&).
template <class S, class Visit>
void each_kind(S& structure, const Visit& visit) {
  for (auto& one : structure.all_of) {
    std::visit(
        [&]<class Kind>(Kind& kind) {
          if constexpr (HasParts<Kind>) {
            for (auto& part : kind.parts) each_kind(part, visit);
          } else {
            visit(kind);
          }
        },
        one);
  }
}

template <class T, class Array>
concept StructureLike = std::is_constructible_v<Structure<Array>, T>;

// Causal{} & Window{.left = 8}: the pairs that both allow. Both sides may be kinds or structures.
template <template <class> class A, template <class> class B, class Array>
requires(StructureLike<A<Array>, Array>&& StructureLike<B<Array>, Array>) Structure<Array>
operator&(const A<Array>& a, const B<Array>& b) {
  Structure<Array> both = a;
  const Structure<Array> other = b;
  both.all_of.insert(both.all_of.end(), other.all_of.begin(), other.all_of.end());
  return both;
}
// Causal{} & (Window{.left = 1020} | First{4}): the pairs that either allows.
template <template <class> class A, template <class> class B, class Array>
requires(StructureLike<A<Array>, Array>&& StructureLike<B<Array>, Array>) Structure<Array>
operator|(const A<Array>& a, const B<Array>& b) {
  AnyOf<Array> either;
  for (const Structure<Array>& side : {Structure<Array>(a), Structure<Array>(b)}) {
    const auto* inner =
        side.all_of.size() == 1 ? std::get_if<AnyOf<Array>>(&side.all_of[0]) : nullptr;
    if (inner)
      either.parts.insert(either.parts.end(), inner->parts.begin(), inner->parts.end());
    else
      either.parts.push_back(side);
  }
  return either;
}
// ~Window{.left = 8}: the pairs that it does not allow.
template <template <class> class A, class Array>
requires(StructureLike<A<Array>, Array>) Structure<Array>
operator~(const A<Array>& a) {
  const Structure<Array> inner = a;
  if (inner.all_of.size() == 1) {
    if (const auto* twice = std::get_if<Not<Array>>(&inner.all_of[0])) return twice->parts[0];
  }
  return Not<Array>{{inner}};
}

}  // namespace fovea::choice
