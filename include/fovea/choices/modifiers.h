// Modifiers change a score. They are given to it in a chain: Dot{}.relative(…).soft_cap(30).
// They apply in the order given: relative positions first, then the soft cap, then the others.
// Another order is refused.
// i is the query's position among the keys: its row plus the call's query_offset (PerItem in
// fovea/choices/structures.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

namespace fovea::choice {

// score + bias; any broadcast of [B, H, L, S], indexed by the row of the query: row 0 is the first
// query given, whatever its position.
template <class Array>
struct Bias {
  static constexpr const char* kName = "bias";
  Array bias;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("bias", bias);
  }
};

// score + bias of the pair's edge; [edges] or [edges, H], in the order of the graph's columns. With
// the structure Graph only.
template <class Array>
struct EdgeBias {
  static constexpr const char* kName = "edge_bias";
  Array bias;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("bias", bias);
  }
};

// score - slope_h * |i - j| ; slopes [H].
template <class Array>
struct Alibi {
  static constexpr const char* kName = "alibi";
  Array slopes;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("slopes", slopes);
  }
};

// Shaw et al. 2018: q.(k + rK_c) * scale and sum a (v + rV_c), c = clip(j - i, -clip, clip).
// Tables [2 clip + 1, E] and [2 clip + 1, Ev]; either may be empty. On a dot score only.
template <class Array>
struct Relative {
  static constexpr const char* kName = "relative";
  Array key_table;
  Array value_table;
  int64_t clip = 0;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("key_table", key_table);
    visit("value_table", value_table);
    visit("clip", clip);
  }
};

// cap * tanh(score / cap).
template <class Array>
struct SoftCap {
  static constexpr const char* kName = "soft_cap";
  double cap = 0;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("cap", cap);
  }
};

// The position of consecutive scores: the query at `query`, the keys at `key`, `key` + 1, ...
struct RowPosition {
  int64_t batch, head, query, key;
};

// A user's function of score and position, called for a row at a time. `value` replaces the scores;
// `derivative` multiplies `gradient` by d value / d score at `scores`, the scores before the
// function. Make one with fovea::elementwise.
template <class Array>
struct Custom {
  static constexpr const char* kName = "custom";
  void (*value_f32)(const void* context, float* scores, size_t n, RowPosition) = nullptr;
  void (*derivative_f32)(const void* context, const float* scores, float* gradient, size_t n,
                         RowPosition) = nullptr;
  void (*value_f64)(const void* context, double* scores, size_t n, RowPosition) = nullptr;
  void (*derivative_f64)(const void* context, const double* scores, double* gradient, size_t n,
                         RowPosition) = nullptr;
  const void* context = nullptr;
  // The same two for CUDA, which compiles them into its kernels: C++ expressions of `score`, `batch`,
  // `head`, `query`, `key` and `infinity`. Null: the function runs on the CPU only.
  const char* device_value = nullptr;
  const char* device_derivative = nullptr;
  template <class Visit>
  void fields(Visit&&) {}
};

template <class Array>
using Modifier = std::variant<Bias<Array>, Alibi<Array>, Relative<Array>, SoftCap<Array>,
                              Custom<Array>, EdgeBias<Array>>;

}  // namespace fovea::choice
