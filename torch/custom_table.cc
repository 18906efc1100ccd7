#include "torch/custom_table.h"

#include <mutex>
#include <tuple>
#include <vector>

namespace fovea {
namespace {

std::mutex lock;
std::vector<Custom>& table() {
  static std::vector<Custom> functions;
  return functions;
}

auto identity(const Custom& c) {
  return std::tie(c.value_f32, c.derivative_f32, c.value_f64, c.derivative_f64, c.context);
}

}  // namespace

int64_t custom_handle(const Custom& custom) {
  const std::lock_guard guard(lock);
  auto& known = table();
  for (size_t n = 0; n < known.size(); ++n) {
    if (identity(known[n]) == identity(custom)) return static_cast<int64_t>(n);
  }
  known.push_back(custom);
  return static_cast<int64_t>(known.size()) - 1;
}

Custom custom_of(int64_t handle) {
  const std::lock_guard guard(lock);
  if (handle < 0 || handle >= static_cast<int64_t>(table().size())) {
    throw InvalidArgument("custom.handle: " + std::to_string(handle) +
                          ", expected one given by fovea");
  }
  return table()[static_cast<size_t>(handle)];
}

}  // namespace fovea
