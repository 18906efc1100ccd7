// What the nodes of the autograd graph share. They derive from libtorch's Node, because its class
// for users' functions (torch::autograd::Function) is refused inside torch.func.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "torch/operators.h"

namespace fovea::operators {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// libtorch 2.13 and newer count references inside the node, older versions outside.
using NodePointer = std::decay_t<decltype(torch::autograd::Edge::function)>;

template <class Kind>
auto make_node() {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<torch::autograd::Node>>) {
    // Theirs frees a long graph without recursion.
    return std::shared_ptr<Kind>(new Kind, [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<Kind>();
  }
}

// A call's tensors and numbers, kept for backward.
struct SavedCall {
  SavedVariable query, key, value, key_lengths, seed, query_offset;
  std::vector<SavedVariable> arrays;
  std::string choices;
  std::vector<c10::SymInt> numbers;
  double dropout_p = 0;

  void save(const Tensor& query_, const Tensor& key_, const Tensor& value_, at::TensorList arrays_,
            c10::string_view choices_, c10::SymIntArrayRef numbers_,
            const OptionalTensor& key_lengths_, double dropout_p_, const OptionalTensor& seed_,
            const OptionalTensor& query_offset_) {
    query = SavedVariable(query_, false);
    key = SavedVariable(key_, false);
    value = SavedVariable(value_, false);
    for (const Tensor& array : arrays_) arrays.emplace_back(array, false);
    choices = {choices_.data(), choices_.size()};
    numbers = numbers_.vec();
    key_lengths = SavedVariable(key_lengths_, false);
    dropout_p = dropout_p_;
    seed = SavedVariable(seed_, false);
    query_offset = SavedVariable(query_offset_, false);
  }
  void release() {
    for (SavedVariable* x : {&query, &key, &value, &key_lengths, &seed, &query_offset})
      x->reset_data();
    for (SavedVariable& x : arrays) x.reset_data();
  }
  std::vector<Tensor> unpacked_arrays() const {
    std::vector<Tensor> all;
    for (const SavedVariable& x : arrays) all.push_back(x.unpack());
    return all;
  }
};

inline OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

// The tangent of a tensor in forward mode, undefined if it has none; and the tensor without it.
inline Tensor tangent_of(const Tensor& x) { return x.defined() ? x._fw_grad(0) : Tensor(); }
inline Tensor primal_of(const Tensor& x) { return x.defined() ? x._fw_primal(0) : x; }
inline std::vector<Tensor> primals_of(at::TensorList list) {
  std::vector<Tensor> all;
  for (const Tensor& x : list) all.push_back(primal_of(x));
  return all;
}

// The operands that have a tangent in forward mode, among query, key, value and the arrays.
struct Tangents {
  std::vector<Tensor> directions;
  std::vector<int64_t> given;
};
inline Tangents tangents_of(const Tensor& query, const Tensor& key, const Tensor& value,
                            at::TensorList arrays) {
  Tangents all;
  int64_t n = 0;
  const auto add = [&](const Tensor& x) {
    if (x.is_floating_point()) {
      if (const Tensor tangent = tangent_of(x); tangent.defined()) {
        all.directions.push_back(tangent);
        all.given.push_back(n);
      }
    }
    ++n;
  };
  for (const Tensor* x : {&query, &key, &value}) add(*x);
  for (const Tensor& x : arrays) add(x);
  return all;
}

}  // namespace fovea::operators
