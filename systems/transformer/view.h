// Pictures of the Transformer beside its attention: the position encoding and the rate over the
// steps.
#pragma once

#include "explain/explanation.h"
#include "train/option_values.h"
#include "translate/model.h"

namespace fovea::systems {

std::vector<explain::Explanation> more_pictures(translate::Model& model,
                                                const OptionValues& option_values);

}  // namespace fovea::systems
