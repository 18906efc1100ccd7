// Two ways to say the same thing, whose results agree.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "tests/engine/bounds.h"
#include "tests/engine/run.h"

namespace fovea {

inline const double kClose = bounds::rounded(1);
inline constexpr cases::Shape kShape{2, 2, 1, 19, 35, 5, 3};

using Change = std::function<void(cases::Built&)>;

// The case as it is, and the same data with something changed: output, lse and gradients of query,
// key, value agree.
inline void expect_identity(const cases::Case& c, const Change& change, double tolerance = kClose) {
  SCOPED_TRACE(c.name());
  cases::Built plain = cases::build(c), other = cases::build(c);
  change(other);
  const Results expected = run_forward(plain), got = run_forward(other);
  expect_same(got.output, expected.output, tolerance, "output");
  if (!got.lse.empty() && !expected.lse.empty()) {
    expect_same(got.lse, expected.lse, tolerance, "lse");
  }
  const auto d_expected = run_backward(plain), d_got = run_backward(other);
  for (int array = 0; array < 3; ++array) {
    expect_same(d_got[array], d_expected[array], tolerance, "gradient " + std::to_string(array));
  }
}

inline engine::View filled(cases::Storage& storage, std::initializer_list<int64_t> size,
                           engine::DType dtype, double value) {
  const engine::View view = storage.zeros(dtype, size);
  cases::Storage::each(view, [&](int64_t at) { cases::Storage::set(view, at, value); });
  return view;
}

}  // namespace fovea
