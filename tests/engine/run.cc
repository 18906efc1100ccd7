#include "tests/engine/run.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/engine/arrays.h"
#include "tests/engine/bounds.h"

namespace fovea {

using cases::Storage;

const engine::Parallel& serial() {
  static const engine::Parallel one{1, [](size_t n, const std::function<void(size_t)>& body) {
                                      for (size_t i = 0; i < n; ++i) body(i);
                                    }};
  return one;
}

engine::Parallel threads(size_t workers) {
  return {.workers = workers, .run = [](size_t n, const std::function<void(size_t)>& body) {
            std::vector<std::thread> all;
            for (size_t i = 0; i < n; ++i) all.emplace_back([&body, i] { body(i); });
            for (std::thread& thread : all) thread.join();
          }};
}

Numbers numbers(const engine::View& view) {
  Numbers all;
  Storage::each(view, [&](int64_t at) { all.push_back(Storage::get(view, at)); });
  return all;
}

void assign(const engine::View& view, const Numbers& values) {
  size_t n = 0;
  Storage::each(view, [&](int64_t at) { Storage::set(view, at, values.at(n++)); });
  ASSERT_EQ(n, values.size());
}

Results run_forward(cases::Built& built) {
  Results results;
  built.result.empty_rows = &results.empty_rows;
  engine::forward(built.problem, built.result, serial());
  built.result.empty_rows = nullptr;
  results.output = numbers(built.result.output);
  if (built.result.lse) results.lse = numbers(built.result.lse);
  return results;
}

std::vector<Numbers> run_backward(cases::Built& built) {
  run_forward(built);
  engine::backward(built.problem, built.result, built.gradients, serial());
  std::vector<Numbers> all;
  for (const NamedView& array : arrays_of(built.gradients)) all.push_back(numbers(array.view));
  return all;
}

std::string path_of(const engine::Problem& problem, engine::Task task, const engine::Result* result,
                    const engine::Gradients* gradients) {
  const engine::Geometry geometry = engine::resolve(problem);
  return engine::find_path({task, problem, geometry, serial(), result, gradients})->id;
}

void expect_same(const Numbers& got, const Numbers& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t n = 0; n < got.size(); ++n) {
    ASSERT_TRUE(close(got[n], expected[n], tolerance))
        << what << ", element " << n << ": " << got[n] << ", expected " << expected[n];
  }
}

}  // namespace fovea
