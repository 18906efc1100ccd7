// A few rows that share a key head against many keys, for every number of rows, type and target.
#include <gtest/gtest.h>

#include "cases/cases.h"
#include "engine/simd/hold.h"
#include "hwy/targets.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;
using engine::DType;

// Parts of 256 keys, four of them a ticket: whole ones, one begun, one key past.
TEST(DecodePath, AgreesForEveryNumberOfRowsTypeAndTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    engine::hold_simd_target(hwy::TargetName(target));
    SCOPED_TRACE(hwy::TargetName(target));
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
      for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 16}) {
        // A vector and a rest; for some, whole blocks of vectors before them.
        const int64_t width = rows == 1 || rows == 5 ? 117 : 21;
        const Case c{.normaliser = rows % 2 ? "softmax" : "softmax_sink",
                     .shape = {.batch = 1,
                               .heads = 2 * rows,
                               .key_heads = 2,
                               .queries = 1,
                               .keys = 1281 - rows % 3,
                               .width = width,
                               .value_width = width + 16},
                     .dtype = dtype,
                     .content = cases::Content::kPoison,
                     .layout = cases::Layout::kStrided};
        expect_forward_agreement(c);
        EXPECT_EQ(path_of(cases::build(c).problem, engine::Task::kForward), "decode") << c.name();
      }
    }
  }
  engine::hold_simd_target(nullptr);
}

// Rows of one head that see different keys.
TEST(DecodePath, AgreesForAStepOfSeveralQueries) {
  for (const char* structure : {"causal_bottom_right", "window", "prefix"}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      expect_forward_agreement({.structure = {structure},
                                .shape = {.batch = 2,
                                          .heads = 4,
                                          .key_heads = 2,
                                          .queries = 6,
                                          .keys = 1300,
                                          .width = 16,
                                          .value_width = 16},
                                .dtype = dtype,
                                .key_lengths = true});
    }
  }
}

}  // namespace
}  // namespace fovea
