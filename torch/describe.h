// The choices as they are declared, for bindings that are not C++.
#pragma once

#include <string>

namespace fovea {

// JSON: {"score": [{"name": "dot", "fields": [["scale", "number?", null]]}, ...], "modifier": [...],
// "normaliser": [...], "structure": [...]}. A field has a name, a type and a default: "number",
// "number?" (may be absent), "whole", "truth", "tensor", or a list of the names it can be.
std::string describe_choices();

}  // namespace fovea
