// The three choices that make an attention mechanism, as plain values: score, normaliser,
// structure.
//
// Each type is a template over the type of its arrays, so that the engine (raw views) and the
// libtorch layer (tensors) share one definition of names, fields and defaults. `fields` lists a
// type's fields once. Everything that goes through all fields uses it: arguments of the operators,
// the command line, messages, the description for Python.
#pragma once

#include "fovea/choices/modifiers.h"
#include "fovea/choices/normalisers.h"
#include "fovea/choices/scores.h"
#include "fovea/choices/structures.h"
