// Central differences in double against written gradients.
#pragma once

#include "cases/cases.h"

namespace fovea {

// Every element of every gradient the reference writes for this case.
void expect_gradients_of_reference(const cases::Case&);

}  // namespace fovea
