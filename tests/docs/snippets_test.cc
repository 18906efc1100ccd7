// Every program in the documentation compiles, runs and prints what its page says.
#include <gtest/gtest.h>

#define FOVEA_SNIPPET(NAME, TEXT) int snippet_##NAME();
#include "snippets.inc"
#undef FOVEA_SNIPPET

#define FOVEA_SNIPPET(NAME, TEXT)                              \
  TEST(SnippetTest, NAME) {                                    \
    ::testing::internal::CaptureStdout();                      \
    const int status = snippet_##NAME();                       \
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), TEXT); \
    EXPECT_EQ(status, 0);                                      \
  }
#include "snippets.inc"
