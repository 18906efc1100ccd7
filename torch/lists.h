// Lists in the operators' schemas that may be empty. libtorch's ahead-of-time runtime (AOTInductor)
// cannot pass an empty list, so the schemas never have one. The list of whole numbers is optional
// instead. A list of no tensors becomes a list with one absent tensor: the list itself must not be
// optional, because the dispatcher would not look for tensors in it and vmap would miss them.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>
#include <vector>

namespace fovea::operators {

template <class Argument>
struct Absentable {
  using Type = Argument;
  static Argument given(Argument argument) { return argument; }
  static Argument taken(Argument argument) { return argument; }
};
template <>
struct Absentable<at::TensorList> {
  using List = c10::List<std::optional<at::Tensor>>;
  using Type = const List&;
  static std::vector<at::Tensor> given(const List& list) {
    std::vector<at::Tensor> tensors;  // without a place for none: a tiny call would feel that
    for (size_t n = 0; n < list.size(); ++n) {
      if (auto tensor = list.get(n); tensor && tensor->defined()) {
        tensors.push_back(*std::move(tensor));
      }
    }
    return tensors;
  }
  static List taken(at::TensorList tensors) {
    static const List* const none = new List({std::nullopt});  // outlives every call
    if (tensors.empty()) return *none;
    List list;
    list.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) list.push_back(tensor);
    return list;
  }
};
template <>
struct Absentable<c10::SymIntArrayRef> {
  using Type = at::OptionalSymIntArrayRef;
  static c10::SymIntArrayRef given(const Type& list) {
    return list.has_value() ? *list : c10::SymIntArrayRef();
  }
  static Type taken(c10::SymIntArrayRef list) { return list.empty() ? Type() : Type(list); }
};

// A kernel's signature as its schema has it, and the kernel behind that.
template <class Signature>
struct WithLists;
template <class Result, class... Arguments>
struct WithLists<Result(Arguments...)> {
  using Type = Result(typename Absentable<Arguments>::Type...);

  template <Result (*kernel)(Arguments...)>
  static Result call(typename Absentable<Arguments>::Type... arguments) {
    return kernel(Absentable<Arguments>::given(arguments)...);
  }
  template <class Operator>
  static Result through(const Operator& op, Arguments... arguments) {
    return op.call(Absentable<Arguments>::taken(arguments)...);
  }
};

// For registration: m.impl("attend", with_lists<attend_cpu>()).
template <auto kernel>
constexpr auto with_lists() {
  using Lists = WithLists<std::remove_pointer_t<decltype(kernel)>>;
  return &Lists::template call<kernel>;
}

}  // namespace fovea::operators
