// How the scores e of one query become its weights.
#pragma once

#include <cstdint>
#include <variant>

namespace fovea::choice {

// exp(e) / (sum exp(e) + exp(sink)); sink [1] or [H], or empty for none.
template <class Array>
struct Softmax {
  static constexpr const char* kName = "softmax";
  Array sink;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("sink", sink);
  }
};
// K / sum K. Kernels with negative values are allowed.
template <class Array>
struct KernelRatio {
  static constexpr const char* kName = "kernel_ratio";
  template <class Visit>
  void fields(Visit&&) {}
};
// The score itself.
template <class Array>
struct Unnormalised {
  static constexpr const char* kName = "unnormalised";
  template <class Visit>
  void fields(Visit&&) {}
};
// 1 / (number of keys the query may see).
template <class Array>
struct Uniform {
  static constexpr const char* kName = "uniform";
  template <class Visit>
  void fields(Visit&&) {}
};
// 1 / (1 + exp(-e)): each weight depends on its own score alone.
template <class Array>
struct Sigmoid {
  static constexpr const char* kName = "sigmoid";
  template <class Visit>
  void fields(Visit&&) {}
};
// The projection of e onto the simplex.
template <class Array>
struct Sparsemax {
  static constexpr const char* kName = "sparsemax";
  template <class Visit>
  void fields(Visit&&) {}
};
// alpha-entmax: max(0, (alpha-1) e - tau)^(1/(alpha-1)), alpha >= 1; alpha = 1 is softmax. alpha as
// an array, [1] or [H], has a gradient; below 1 it counts as 1, in weights and gradients.
template <class Array>
struct Entmax {
  static constexpr const char* kName = "entmax";
  double alpha = 1.5;
  Array alpha_tensor;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("alpha", alpha);
    visit("alpha_tensor", alpha_tensor);
  }
};
// Softmax over the k largest scores, of equal ones the lower index; all keys if fewer are seen.
template <class Array>
struct TopK {
  static constexpr const char* kName = "top_k";
  int64_t k = 1;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("k", k);
  }
};
// One key: that of the largest score, or one drawn from the softmax. The lse output is the log of
// its softmax probability.
template <class Array>
struct Hard {
  static constexpr const char* kName = "hard";
  bool sample = false;
  template <class Visit>
  void fields(Visit&& visit) {
    visit("sample", sample);
  }
};

template <class Array>
using Normaliser =
    std::variant<Softmax<Array>, KernelRatio<Array>, Unnormalised<Array>, Uniform<Array>,
                 Sigmoid<Array>, Sparsemax<Array>, Entmax<Array>, TopK<Array>, Hard<Array>>;

}  // namespace fovea::choice
