// Kernels of points too far apart for the square of their distance: such pairs weigh nothing and
// move nothing, and every other pair is as the reference has it.
#include <gtest/gtest.h>

#include <string>

#include "cases/cases.h"
#include "engine/reference/reference.h"
#include "engine/simd/hold.h"
#include "hwy/targets.h"
#include "tests/engine/comparison.h"
#include "tests/engine/arrays.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;

constexpr const char* kKernels[] = {"kernel_gaussian", "kernel_laplace",    "kernel_logistic",
                                    "kernel_sigmoid",  "kernel_silverman",  "kernel_cauchy",
                                    "kernel_box",      "kernel_triangular", "kernel_epanechnikov",
                                    "kernel_quartic",  "kernel_triweight",  "kernel_tricube",
                                    "kernel_cosine"};
constexpr int64_t kQueries = 7, kKeys = 41;

Case case_of(const std::string& score, const std::string& normaliser, DType dtype, int64_t width) {
  return {.score = score,
          .normaliser = normaliser,
          .shape = {.batch = 1,
                    .heads = 2,
                    .key_heads = 2,
                    .queries = kQueries,
                    .keys = kKeys,
                    .width = width,
                    .value_width = 2},
          .dtype = dtype};
}

// Adds `far` to the first coordinate of every `each`-th row.
void move(const engine::View& rows, size_t width, size_t each, double far) {
  Numbers all = numbers(rows);
  for (size_t i = 0; i < all.size(); i += each * width) all[i] += far;
  assign(rows, all);
}
void stretch(const engine::View& view, double factor) {
  Numbers all = numbers(view);
  for (double& x : all) x *= factor;
  assign(view, all);
}

template <class Body>
void on_every_target(const Body& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    engine::hold_simd_target(hwy::TargetName(target));
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  engine::hold_simd_target(nullptr);
}

bool has_no_meaning(const std::string& score, const std::string& normaliser) {
  return score == "kernel_silverman" && normaliser == "softmax";  // no logarithm
}

// Of width 2 in float32 a ratio takes the path of kernel means, of width 5 that of tiles.
TEST(FarPoints, WeighNothingAndMoveNothing) {
  on_every_target([] {
    for (const char* score : kKernels) {
      for (const char* normaliser : {"kernel_ratio", "softmax", "unnormalised"}) {
        if (has_no_meaning(score, normaliser)) continue;
        for (const int64_t width : {2, 5}) {
          for (const double far : {1e18, 1e19, 3e19, 1e25, 3e38}) {
            cases::Built built = cases::build(case_of(score, normaliser, DType::kFloat32, width));
            SCOPED_TRACE(std::string(score) + " " + normaliser + " " + std::to_string(width) + " " +
                         std::to_string(far));
            move(built.problem.key, static_cast<size_t>(width), 6, far);
            expect_agreement(built, serial());
          }
        }
      }
    }
  });
}

// In double their squares overflow past 1e154.
TEST(FarPoints, InDoublePrecision) {
  for (const char* score : kKernels) {
    for (const char* normaliser : {"kernel_ratio", "unnormalised"}) {
      cases::Built built = cases::build(case_of(score, normaliser, DType::kFloat64, 3));
      SCOPED_TRACE(std::string(score) + " " + normaliser);
      move(built.problem.key, 3, 6, 1e150);
      expect_agreement(built, serial());
    }
  }
}

// Two far points at one place see each other and nobody else.
TEST(FarPoints, SeeTheirNeighbours) {
  on_every_target([] {
    for (const char* score : kKernels) {
      cases::Built built = cases::build(case_of(score, "kernel_ratio", DType::kFloat32, 2));
      SCOPED_TRACE(score);
      Numbers query = numbers(built.problem.query), key = numbers(built.problem.key);
      query[0] = key[0] = key[4] = 1e20;
      query[1] = key[1] = key[5] = 0;
      assign(built.problem.query, query), assign(built.problem.key, key);
      expect_agreement(built, serial());
    }
  });
}

// A narrow bandwidth does it too, where coordinates are moderate; and rows whose nearest key is far
// enough for kernels to underflow are weighed by logarithms.
TEST(FarPoints, ByANarrowBandwidth) {
  constexpr double kNarrow = 1e-12;
  on_every_target([] {
    for (const char* score : kKernels) {
      cases::Built built = cases::build(case_of(score, "kernel_ratio", DType::kFloat32, 2));
      SCOPED_TRACE(score);
      // Silverman's has no logarithm, and the Gaussian's is steep.
      if (score != std::string("kernel_silverman"))
        move(built.problem.query, 2, 3, score == std::string("kernel_gaussian") ? 40 : 300);
      stretch(built.problem.query, kNarrow), stretch(built.problem.key, kNarrow);
      stretch(std::get<engine::Kernel>(built.problem.score.kind).bandwidth, kNarrow);
      move(built.problem.key, 2, 6, 1e10);
      expect_agreement(built, serial());
    }
  });
}

}  // namespace
}  // namespace fovea
