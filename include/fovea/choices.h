// The three choices that make an attention mechanism, as plain values: score, normaliser,
// structure.
//
// Each type is a template over the array it refers to, so that the engine (raw views), the libtorch
// layer (tensors) and the bindings share one definition of names, fields and defaults. `fields`
// lists a type's fields once; flattening for an operator's schema, parsing a command line and
// printing all go through it.
#pragma once

#include "fovea/choices/modifiers.h"
#include "fovea/choices/normalisers.h"
#include "fovea/choices/scores.h"
#include "fovea/choices/structures.h"
