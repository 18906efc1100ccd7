// A problem through the engine, its results as plain numbers.
#pragma once

#include <string>
#include <vector>

#include "cases/cases.h"
#include "engine/dispatch.h"
#include "fovea/engine.h"

namespace fovea {

using Numbers = std::vector<double>;

struct Results {
  Numbers output, lse;
  int64_t empty_rows = 0;
};

// One worker, one piece of work after another: the cases are small.
const engine::Parallel& serial();
// Threads that come and go, `workers` of them for each call.
engine::Parallel threads(size_t workers);

// Elements in row-major order.
Numbers numbers(const engine::View&);
void assign(const engine::View&, const Numbers&);

Results run_forward(cases::Built&);
// Gradients of query, key and value, then of what the choices own, from built.gradients.output and
// .lse.
std::vector<Numbers> run_backward(cases::Built&);

// The id of the path that serves a problem: with these arrays, or with arrays that suit it.
std::string path_of(const engine::Problem& problem, engine::Task task,
                    const engine::Result* result = nullptr,
                    const engine::Gradients* gradients = nullptr);

// Fails where two lists differ by more than `tolerance`.
void expect_same(const Numbers& got, const Numbers& expected, double tolerance,
                 const std::string& what);

}  // namespace fovea
