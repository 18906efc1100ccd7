#include "tests/engine/against_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/engine/arrays.h"

namespace fovea {

using cases::Case;
using engine::DType;

engine::Parallel threads(size_t workers) {
  return {.workers = workers, .run = [](size_t n, const std::function<void(size_t)>& body) {
            std::vector<std::thread> all;
            for (size_t i = 0; i < n; ++i) all.emplace_back([&body, i] { body(i); });
            for (auto& thread : all) thread.join();
          }};
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-11;
    case DType::kBFloat16:
      return 2e-2;
    case DType::kFloat16:
      return 3e-3;
    default:
      return 3e-5;
  }
}

double difference(const reference::Tensor<double>& got, const std::vector<double>& want) {
  EXPECT_EQ(got.data.size(), want.size());
  double worst = 0, scale = 1e-3;
  for (size_t i = 0; i < std::min(got.data.size(), want.size()); ++i) {
    if (got.data[i] == want[i]) continue;  // an empty row's lse is -infinity in both
    scale = std::max(scale, std::abs(want[i]));
    const double d = std::abs(got.data[i] - want[i]);
    if (std::isnan(d)) return d;
    worst = std::max(worst, d);
  }
  return worst / scale;
}

double tolerance(const Case& c) {
  return c.content == cases::Content::kLarge && c.dtype != DType::kFloat64 ? 2e-3
                                                                           : tolerance(c.dtype);
}

void expect_right(const Case& c, size_t workers) {
  SCOPED_TRACE(c.name());
  cases::Built built = cases::build(c);
  int64_t empty = -1;
  built.result.empty_rows = &empty;
  const engine::Parallel parallel = threads(workers);
  engine::forward(built.problem, built.result, parallel);
  const auto want = reference::forward<double>(built.problem);
  EXPECT_EQ(empty, want.empty_rows);
  EXPECT_LE(difference(reference::Tensor<double>(built.result.output), want.output.data),
            tolerance(c))
      << "output";
  if (built.result.lse) {
    EXPECT_LE(difference(reference::Tensor<double>(built.result.lse), want.lse), tolerance(c))
        << "lse";
  }
  engine::backward(built.problem, built.result, built.gradients, parallel);
  const auto gradients =
      reference::backward<double>(built.problem, built.gradients.output, built.gradients.lse);
  const auto got = arrays_of(built.gradients);
  const auto wanted = arrays_of(gradients);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(difference(reference::Tensor<double>(got[i].view), wanted[i]->data), 4 * tolerance(c))
        << got[i].name;
  }
}

}  // namespace fovea
