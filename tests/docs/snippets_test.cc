// Every choice has a page, with equation, picture, cost and a program; every program compiles, runs
// and prints what its page says.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fovea/engine.h"

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

namespace fovea {
namespace {

namespace fs = std::filesystem;

template <class Variant>
struct Names;
template <class... Choice>
struct Names<std::variant<Choice...>> {
  static std::set<std::string> all() { return {Choice::kName...}; }
};

void expect_pages(const std::string& folder, const std::set<std::string>& names) {
  const char* source = std::getenv("FOVEA_SOURCE_DIR");
  if (!source) GTEST_SKIP() << "FOVEA_SOURCE_DIR is not set: run by ctest";
  const fs::path pages = fs::path(source) / "docs" / folder;
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(pages))
    if (entry.path().extension() == ".md") found.insert(entry.path().stem().string());
  EXPECT_EQ(found, names);
  for (const std::string& name : found) {
    std::ifstream file(pages / (name + ".md"));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const char* part : {"\n\n    ", "* **Cost**", "```cpp\n", "int main()", "\nprints\n"})
      EXPECT_NE(text.find(part), std::string::npos) << folder << "/" << name << ": no " << part;
    // ![what it shows](name.svg)
    const size_t start = text.find("!["), middle = text.find("](", start),
                 end = text.find(".svg)", middle);
    ASSERT_NE(end, std::string::npos) << folder << "/" << name << ": no picture";
    EXPECT_GT(middle, start + 2) << folder << "/" << name << ": a picture without words";
    EXPECT_TRUE(fs::exists(pages / (text.substr(middle + 2, end - middle - 2) + ".svg")))
        << folder << "/" << name << ": no such picture";
  }
}

TEST(Pages, EveryScoreAndModifierHasOne) {
  std::set<std::string> names = Names<engine::Score::Kind>::all();
  names.merge(Names<engine::Modifier>::all());
  expect_pages("scores", names);
}
TEST(Pages, EveryNormaliserHasOne) {
  expect_pages("normalisers", Names<engine::Normaliser>::all());
}
TEST(Pages, EveryStructureHasOne) {
  std::set<std::string> names = Names<choice::StructureKind<engine::View>>::all();
  names.erase("any_of");  // | and ~ share a page with &
  names.erase("not");
  names.insert("together");
  expect_pages("structures", names);
}

}  // namespace
}  // namespace fovea
