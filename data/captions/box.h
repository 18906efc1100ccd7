// A rectangle of a picture, in shares of its width and height.
#pragma once

namespace fovea::data {

struct Box {
  double left = 0, top = 0, width = 0, height = 0;  // from 0 to 1
  double middle_x() const { return left + width / 2; }
  double middle_y() const { return top + height / 2; }
};

}  // namespace fovea::data
