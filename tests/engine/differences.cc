#include "tests/engine/differences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/reference/reference.h"
#include "tests/engine/arrays.h"

namespace fovea {
namespace {

using cases::Storage;
using engine::View;

// sum of output * its gradient + sum of lse * its gradient
double loss(const cases::Built& built) {
  const auto result = reference::forward<double>(built.problem);
  const reference::Tensor<double> d_output(built.gradients.output), d_lse(built.gradients.lse);
  double sum = 0;
  for (size_t n = 0; n < result.output.data.size(); ++n) {
    sum += result.output.data[n] * d_output.data[n];
  }
  for (size_t n = 0; n < d_lse.data.size(); ++n) {
    if (std::isfinite(result.lse[n])) sum += result.lse[n] * d_lse.data[n];
  }
  return sum;
}

}  // namespace

void expect_gradients_of_reference(const cases::Case& c) {
  constexpr double kStep = 1e-6;
  SCOPED_TRACE(c.name());
  cases::Built built = cases::build(c);
  const auto gradients =
      reference::backward<double>(built.problem, built.gradients.output, built.gradients.lse);
  const auto arrays = arrays_of(built.problem);
  const auto written = arrays_of(gradients);
  ASSERT_EQ(arrays.size(), written.size());
  for (size_t n = 0; n < arrays.size(); ++n) {
    const View view = arrays[n].view;
    size_t element = 0;
    int wrong = 0;
    Storage::each(view, [&](int64_t at) {
      const double value = Storage::get(view, at);
      const auto moved = [&](double by) {
        Storage::set(view, at, value + by);
        const double result = loss(built);
        Storage::set(view, at, value);
        return result;
      };
      const double difference = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      const double gradient = written[n]->data[element++];
      if (std::fabs(difference - gradient) > 1e-7 + 1e-6 * std::fabs(gradient) && wrong++ < 2) {
        ADD_FAILURE() << arrays[n].name << "[" << element - 1 << "]: difference " << difference
                      << ", gradient " << gradient;
      }
    });
  }
}

}  // namespace fovea
