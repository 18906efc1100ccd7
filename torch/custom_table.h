// Users' own functions by number, so that the text of an operator can name them without containing a
// pointer.
#pragma once

#include "fovea/attend.h"

namespace fovea {

// The same function always gets the same number.
int64_t custom_handle(const Custom& custom);
Custom custom_of(int64_t handle);

}  // namespace fovea
