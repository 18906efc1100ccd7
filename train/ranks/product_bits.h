// Whether float products have the same bits on all ranks. MKL and oneDNN choose their code by the
// processor, beyond what libtorch's CPU capability tells, and by variables of their own.
#pragma once

#include <string>

namespace fovea::train {

// A hash of some products of one thread. Where it differs, so do gradients and answers.
std::string bits_of_products();

}  // namespace fovea::train
