// Where a mask is true. array: bool, broadcasts to [B, H, L, S].
#pragma once

namespace fovea::cuda {

struct Keep : Unbounded {
  static Cover cover(const Part&, const Span&) { return Cover::kSome; }
  static bool allows(const Part& part, const Place& p) {
    return element<bool>(part.array[0], p.batch, p.head, p.row, p.j);
  }
};

}  // namespace fovea::cuda
