// check_finite: the first row of a call that sees a score of NaN or +infinity.
#pragma once

#include <array>
#include <optional>

#include "torch/composed/block.h"

namespace fovea::composed {

class FirstSpoiled {
 public:
  // Rows of a block, bool [B, H, l]. Waits for the device.
  void look(const Block& block, const at::Tensor& spoiled);
  // Throws InvalidArgument naming the lowest, if there was one.
  void check() const;

 private:
  std::optional<std::array<int64_t, 3>> first_;  // batch item, head, row
};

}  // namespace fovea::composed
