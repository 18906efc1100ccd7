// What ranks do together besides adding gradients: they validate, and their weights stay the same.
#pragma once

#include <functional>
#include <string>

#include "train/descent/fit.h"

namespace fovea::train {

// All validate, because tasks may share the work. Returns rank 0's metrics, on every rank, and with them
// come the buffers that its validation changed. `what` is what the others are said to wait for.
Metrics validate_together(Ranks& ranks, const torch::nn::Module& model,
                          const std::function<Metrics()>& validate, const std::string& what);

// Throws if the weights of a rank differ from rank 0's: its processor rounds in another way, or its
// memory is faulty.
void check_same_weights(Ranks& ranks, const torch::nn::Module& model, const std::string& when);

}  // namespace fovea::train
