// check_finite: the first row of a call that sees a score of NaN or +infinity.
#pragma once

#include <array>
#include <optional>

#include "torch/composed/block.h"

namespace fovea::composed {

// Throws InvalidArgument naming a row.
[[noreturn]] void refuse_row(int64_t batch, int64_t head, int64_t row);

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
