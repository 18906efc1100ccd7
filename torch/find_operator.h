// An operator of the dispatcher, by name.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace fovea::operators {

template <class Signature>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace fovea::operators
