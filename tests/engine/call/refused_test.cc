// What is refused: the engine's own list, that it holds at the call, and that docs/refused.md says
// the same. FOVEA_WRITE_DOCS=1 writes the page.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "engine/call/meaning.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;

std::string page() {
  std::string text =
      "# What is refused, and why\n"
      "\n"
      "Every score works with every normaliser and every structure, but for the combinations "
      "below, which have no\n"
      "meaning. They throw `fovea::Unsupported` with the reason. The list is the engine's own "
      "(`engine/call/meaning.cc`);\n"
      "`tests/engine/call/refused_test.cc` writes this page and checks it.\n"
      "\n"
      "| combination | reason |\n"
      "|---|---|\n";
  for (const engine::Refusal& refusal : engine::refusals()) {
    text += "| " + std::string(refusal.what) + " | " + refusal.reason + " |\n";
  }
  return text;
}

// An example of each refusal.
struct Example {
  Case built_from{};
  engine::Structure structure{};               // where there is one, instead of the case's
  std::optional<engine::Modifier> modifier{};  // likewise, besides the case's
};
std::map<std::string, Example> examples() {
  const auto graph_inside = [] {
    static cases::Built graph = cases::build({.structure = {"graph"}});
    return graph.problem.structure;
  };
  const auto ragged = [] {
    static cases::Built built = cases::build({.structure = {"ragged"}});
    return built.problem.structure;
  };
  return {
      {"silverman kernel with a normaliser of log-scores", {{.score = "kernel_silverman"}}},
      {"relative positions on a score other than dot",
       {{.score = "cosine", .modifiers = {"relative_key"}}}},
      {"modifiers out of order", {{.modifiers = {"bias", "soft_cap"}}}},
      {"ragged with graph", {{.structure = {"ragged", "graph"}}}},
      {"paged with ragged or graph", {{.structure = {"ragged"}}, engine::Paged{} & ragged()}},
      {"key_lengths with paged", {{.key_lengths = true}, engine::Paged{}}},
      {"edge_bias without a graph", {{}, {}, engine::EdgeBias{}}},
      {"ragged, graph or paged inside a union or a complement", {{}, ~graph_inside()}},
      {"query_offset with causal to the bottom right",
       {{.structure = {"causal_bottom_right"}, .query_offset = true}}},
  };
}

TEST(Refused, EveryReasonIsGivenAtTheCall) {
  const auto all = examples();
  for (const engine::Refusal& refusal : engine::refusals()) {
    const auto example = all.find(refusal.what);
    ASSERT_NE(example, all.end()) << "no example of '" << refusal.what << "'";
    cases::Built built = cases::build(example->second.built_from);
    if (!example->second.structure.all_of.empty())
      built.problem.structure = example->second.structure;
    if (example->second.modifier)
      built.problem.score.modifiers.push_back(*example->second.modifier);
    const auto expect_refusal = [&](const char* call, auto&& run) {
      try {
        run();
        ADD_FAILURE() << call << " took " << example->second.built_from.name();
      } catch (const Unsupported& error) {
        EXPECT_NE(std::string(error.what()).find(refusal.reason), std::string::npos)
            << error.what();
      }
    };
    expect_refusal("forward", [&] { engine::forward(built.problem, built.result, serial()); });
    expect_refusal("backward", [&] {
      engine::backward(built.problem, built.result, built.gradients, serial());
    });
  }
  EXPECT_EQ(all.size(), engine::refusals().size());
}

TEST(Refused, ThePageSaysTheSame) {
  const char* source = std::getenv("FOVEA_SOURCE_DIR");
  if (!source) GTEST_SKIP() << "FOVEA_SOURCE_DIR is not set: run by ctest";
  const std::string path = std::string(source) + "/docs/refused.md";
  if (std::getenv("FOVEA_WRITE_DOCS")) std::ofstream(path) << page();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, page()) << "write docs/refused.md anew: FOVEA_WRITE_DOCS=1 ctest -R refused_test";
}

}  // namespace
}  // namespace fovea
