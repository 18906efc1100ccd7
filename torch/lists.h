// Lists that a schema lets be absent. libtorch's ahead-of-time runtime (AOTInductor) hands over an
// empty list as nothing, so no list of ours that may be empty is required.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>

namespace fovea::operators {

template <class Argument>
struct Absentable {
  using Type = Argument;
  static Argument given(Argument argument) { return argument; }
  static Argument taken(Argument argument) { return argument; }
};
template <>
struct Absentable<at::TensorList> {
  using Type = std::optional<at::TensorList>;
  static at::TensorList given(const Type& list) { return list.value_or(at::TensorList()); }
  static Type taken(at::TensorList list) { return list.empty() ? Type() : Type(list); }
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
