// For a task whose items are held by ranks, such as nodes of a graph that is divided.
#pragma once

namespace fovea::train {

class HeldItems {
 public:
  virtual ~HeldItems() = default;
  // Whether this training is such a one. Then all ranks compute every batch together: loss() is given
  // the whole batch and returns that of the items which this rank holds, whose count may be 0.
  virtual bool ranks_hold_items() const = 0;
};

}  // namespace fovea::train
