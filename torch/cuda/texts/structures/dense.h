#pragma once

namespace fovea::cuda {

struct Dense : Unbounded {
  static constexpr bool kExact = true;
  static Cover cover(const Part&, const Span&) { return Cover::kAll; }
  static bool allows(const Part&, const Place&) { return true; }
};

}  // namespace fovea::cuda
