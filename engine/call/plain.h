// The most common call, checked in one go. A call with one key takes 0.2 microseconds; going through
// all checks of all choices would take a third of that.
#pragma once

#include "engine/call/problem.h"

namespace fovea::engine {

// True if the call is plain and surely valid: dot product and softmax, dense or causal, arrays of rank
// 4 that have elements, output and perhaps statistics, and nothing else. Then *geometry is what
// resolve would return, and check_result and check_places would not throw. False says nothing about
// the call. It then goes through the full checks, which have the messages.
bool resolve_plain(const Problem& problem, const Result& result, Geometry* geometry);

}  // namespace fovea::engine
