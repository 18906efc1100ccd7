#include "torch/custom_table.h"

#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

namespace fovea {
namespace {

// A function and, because its owner may go, its expressions.
struct Kept {
  Custom custom;
  std::string value, derivative;

  explicit Kept(const Custom& given) : custom(given) {
    keep(value, custom.device_value);
    keep(derivative, custom.device_derivative);
  }
  Kept(const Kept&) = delete;

 private:
  static void keep(std::string& here, const char*& text) {
    if (!text) return;
    here = text;
    text = here.c_str();
  }
};

std::mutex lock;
std::deque<Kept>& table() {
  static std::deque<Kept> functions;  // whose members stay where they are
  return functions;
}

std::string_view words_of(const char* text) { return text ? text : ""; }

auto identity(const Custom& c) {
  return std::tuple(c.value_f32, c.derivative_f32, c.value_f64, c.derivative_f64, c.context,
                    words_of(c.device_value), words_of(c.device_derivative));
}

}  // namespace

int64_t custom_handle(const Custom& custom) {
  const std::lock_guard guard(lock);
  auto& known = table();
  for (size_t n = 0; n < known.size(); ++n) {
    if (identity(known[n].custom) == identity(custom)) return static_cast<int64_t>(n);
  }
  known.emplace_back(custom);
  return static_cast<int64_t>(known.size()) - 1;
}

Custom custom_of(int64_t handle) {
  const std::lock_guard guard(lock);
  if (handle < 0 || handle >= static_cast<int64_t>(table().size())) {
    throw InvalidArgument("custom.handle: " + std::to_string(handle) +
                          ", expected one given by fovea");
  }
  return table()[static_cast<size_t>(handle)].custom;
}

}  // namespace fovea
