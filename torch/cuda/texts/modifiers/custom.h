// e' = f(e, b, h, i, j): a user's expressions, which the program holds as a class `Function` with the
// value and, backward, its derivative by e.
#pragma once

namespace fovea::cuda {

template <class Function>
struct Custom : PlainModifier {
  static constexpr bool kLooksBack = true;
  static T value(const Change&, const Place& p, T e) {
    return Function::value(e, p.batch, p.head, p.i, p.j);
  }
  static T backward(const Change&, const Place& p, T e, T de) {
    return de * Function::derivative(e, p.batch, p.head, p.i, p.j);
  }
};

}  // namespace fovea::cuda
