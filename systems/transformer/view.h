// Pictures of the Transformer beside its attention: the position encoding and the rate over the
// steps.
#pragma once

#include "explain/explanation.h"
#include "train/settings.h"
#include "translate/model.h"

namespace fovea::systems {

std::vector<explain::Explanation> more_pictures(translate::Model& model, const Settings& settings);

}  // namespace fovea::systems
