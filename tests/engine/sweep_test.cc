// The whole product: every score, modifier, normaliser and structure with every other, forward and
// backward, in every type, at awkward sizes, with hostile contents; and which combinations are
// refused. Prints its own summary.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "cases/cases.h"
#include "engine/call/meaning.h"
#include "engine/call/view.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Case;
using cases::Content;
using cases::Shape;
using engine::DType;

// Sizes around what the kernels are built of: nothing, one, vectors of 4, 8 and 16 lanes, panels
// and tiles of 64 and more.
constexpr Shape kAwkward[] = {
    {1, 1, 1, 0, 5, 4, 3},     {1, 2, 1, 5, 0, 4, 3},    {1, 1, 1, 1, 1, 1, 1},
    {2, 2, 2, 3, 4, 2, 1},     {1, 2, 1, 7, 9, 8, 7},    {1, 3, 1, 8, 8, 7, 9},
    {1, 2, 2, 9, 15, 5, 16},   {2, 4, 2, 13, 16, 3, 2},  {1, 1, 1, 15, 17, 16, 8},
    {1, 1, 1, 17, 31, 17, 15}, {3, 2, 1, 11, 33, 9, 17}, {1, 2, 1, 2, 37, 6, 5},
};
constexpr Shape kTiles[] = {
    {1, 1, 1, 63, 64, 4, 3},  {1, 1, 1, 64, 65, 5, 4},   {1, 1, 1, 65, 63, 3, 2},
    {1, 1, 1, 33, 127, 4, 5}, {1, 1, 1, 16, 129, 33, 3}, {1, 1, 1, 3, 511, 4, 2},
    {1, 1, 1, 2, 513, 3, 4},  {1, 2, 1, 129, 31, 4, 4},
};

// Structures together, besides each alone.
const std::vector<std::vector<std::string>> kCompositions = {
    {"window", "documents"}, {"causal", "keep"},           {"ragged", "causal_bottom_right"},
    {"graph", "causal"},     {"prefix", "keep_keys"},      {"strided", "documents_per_batch"},
    {"ragged", "keep"},      {"graph_shuffled", "blocks"},
};

struct Tally {
  int ran = 0;
  double worst = 0;
  std::string where;
};

struct Summary {
  int combinations = 0, ran = 0, refused = 0, runs = 0, kinks = 0, differences = 0, failures = 0;
  std::map<std::string, int> reasons;
  std::map<std::string, Tally> scores, modifiers, normalisers, structures, types;
};

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : "&") + name;
  return all;
}

class Sweep {
 public:
  // A combination in all its sizes, types and contents.
  void combination(const Case& choices) {
    const int turn = summary_.combinations++;
    if (turn % every_ != from_ || refused(choices)) return;
    ++summary_.ran;
    Case c = choices;
    c.seed = static_cast<uint64_t>(turn) + 1;

    c.dtype = DType::kFloat64;
    c.shape = {2, 2, 1, 5, 7, 4, 3};
    c.dropout_p = turn % 2 ? 0.2 : 0;
    run(c);
    differences(c);

    c.dtype = DType::kFloat32;
    c.shape = kAwkward[turn % std::size(kAwkward)];
    c.layout = turn % 3 ? cases::Layout::kStrided : cases::Layout::kContiguous;
    c.key_lengths = turn % 4 == 1;
    run(c);

    c.shape = {2, 2, 1, 6, 11, 5, 4};
    c.content = Content::kPoison;
    c.key_lengths = true;
    run(c);
    step(c);

    c.layout = cases::Layout::kContiguous;
    c.key_lengths = false;
    c.content = Content::kLarge;
    // A modifier acts on K itself, and no float holds K at such distances.
    const bool vanishes =
        c.score.starts_with("kernel") && !c.modifiers.empty() && c.normaliser == "kernel_ratio";
    if (!vanishes) run(c);

    c.content = Content::kPlain;
    c.dtype = turn % 2 ? DType::kBFloat16 : DType::kFloat16;
    c.dropout_p = 0;
    run(c);

    if (turn % 9 == 0) {
      c.dtype = turn % 2 ? DType::kFloat32 : DType::kFloat64;
      c.shape = kTiles[turn / 9 % std::size(kTiles)];
      run(c);
    }
  }

  const Summary& summary() const { return summary_; }

 private:
  // What of the engine's own list refuses a problem, or null.
  static const char* reason_against(const engine::Problem& problem) {
    for (const engine::Refusal& refusal : engine::refusals()) {
      if (refusal.applies(problem)) return refusal.what;
    }
    return nullptr;
  }

  // Whether the engine's own list refuses it; then the call must refuse it too, with that reason.
  bool refused(const Case& c) {
    cases::Built built = cases::build(c);
    const char* reason = reason_against(built.problem);
    if (!reason) return false;
    ++summary_.refused;
    ++summary_.reasons[reason];
    try {
      engine::forward(built.problem, built.result, serial());
      ADD_FAILURE() << c.name() << ": ran, expected Unsupported (" << reason << ")";
    } catch (const Unsupported& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
    return true;
  }

  void run(const Case& c) {
    ++summary_.runs;
    cases::Built built = cases::build(c);
    double worst = 0;
    std::string where;
    try {
      for (const Agreement& a : compare(built, serial())) {
        if (!a.within) {
          std::ostringstream what;
          what << a.array << " off by " << a.error << ", allowed " << a.bound << " (naive "
               << a.naive << ")";
          fail(c, what.str());
        }
        if (a.multiple > worst) worst = a.multiple, where = a.array;
      }
    } catch (const std::exception& error) {
      fail(c, error.what());
    }
    record(c, worst, where + " of " + c.name());
  }

  // The same with queries that start at another position in each item, where the structure does not
  // say where they stand; some by differences.
  void step(Case c) {
    c.query_offset = true;
    if (reason_against(cases::build(c).problem)) return;
    run(c);
    if (summary_.combinations % 4) return;
    c.dtype = DType::kFloat64;
    c.content = Content::kPlain;
    differences(c);
  }

  void differences(const Case& c) {
    ++summary_.differences;
    try {
      for (const std::string& wrong : check_differences(c, &summary_.kinks)) fail(c, wrong);
    } catch (const std::exception& error) {
      fail(c, error.what());
    }
  }

  void record(const Case& c, double worst, const std::string& where) {
    const auto note = [&](Tally& tally) {
      ++tally.ran;
      if (worst > tally.worst) tally.worst = worst, tally.where = where;
    };
    note(summary_.scores[c.score]);
    for (const auto& modifier : c.modifiers) note(summary_.modifiers[modifier]);
    note(summary_.normalisers[c.normaliser]);
    note(summary_.structures[joined(c.structure)]);
    note(summary_.types[engine::name_of(c.dtype)]);
  }

  void fail(const Case& c, const std::string& what) {
    static const int kShown = std::getenv("FOVEA_SWEEP_ALL") ? 1 << 30 : 40;
    if (summary_.failures++ < kShown) ADD_FAILURE() << c.name() << ": " << what;
  }

  Summary summary_;
  static int number_of(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
  }

  // A sanitised build is some twenty times slower: FOVEA_SWEEP_EVERY=13 takes one combination in
  // thirteen. FOVEA_SWEEP_FROM says which is the first, so that several processes share the work.
  const int every_ = number_of("FOVEA_SWEEP_EVERY", 1);
  const int from_ = number_of("FOVEA_SWEEP_FROM", 0);
};

void print(const char* title, const std::map<std::string, Tally>& table) {
  std::printf("  %-34s %8s  %s\n", title, "runs", "worst error, x naive (where)");
  for (const auto& [name, tally] : table) {
    std::printf("    %-32s %8d  %6.2f  %s\n", name.c_str(), tally.ran, tally.worst,
                tally.where.c_str());
  }
}

void print(const Summary& s, double seconds) {
  std::printf("\nSweep (%s): %d combinations exist, %d ran, %d refused\n", engine::simd_target(),
              s.combinations, s.ran, s.refused);
  for (const auto& [reason, count] : s.reasons) {
    std::printf("  refused %5d: %s\n", count, reason.c_str());
  }
  std::printf("  %d runs forward and backward, %d checked by differences (%d arrays at a kink)\n",
              s.runs, s.differences, s.kinks);
  print("score", s.scores);
  print("modifier", s.modifiers);
  print("normaliser", s.normalisers);
  print("structure", s.structures);
  print("type", s.types);
  std::printf("  %d failures, %.0f s\n", s.failures, seconds);
}

std::vector<std::vector<std::string>> all_structures() {
  std::vector<std::vector<std::string>> all;
  for (const auto& row : cases::structures()) all.push_back({row.name});
  all.insert(all.end(), kCompositions.begin(), kCompositions.end());
  return all;
}

TEST(Sweep, EveryCombinationAgreesWithTheReference) {
  const auto start = std::chrono::steady_clock::now();
  Sweep sweep;
  for (const auto& score : cases::scores()) {
    for (const auto& normaliser : cases::normalisers()) {
      for (const auto& structure : all_structures()) {
        sweep.combination(
            {.score = score.name, .normaliser = normaliser.name, .structure = structure});
      }
    }
  }
  // Modifiers: each with every normaliser and structure on a dot product, and with every score.
  for (const auto& modifier : cases::modifiers()) {
    for (const auto& normaliser : cases::normalisers()) {
      for (const auto& structure : all_structures()) {
        sweep.combination(
            {.modifiers = {modifier.name}, .normaliser = normaliser.name, .structure = structure});
      }
    }
    for (const auto& score : cases::scores()) {
      for (const char* normaliser : {"softmax", "sparsemax", "unnormalised", "kernel_ratio"}) {
        sweep.combination({.score = score.name,
                           .modifiers = {modifier.name},
                           .normaliser = normaliser,
                           .structure = {"keep"}});
      }
    }
  }
  // Several at once, in order.
  for (const auto& normaliser : cases::normalisers()) {
    for (const auto& structure : all_structures()) {
      sweep.combination({.modifiers = {"relative", "soft_cap", "bias", "alibi", "custom"},
                         .normaliser = normaliser.name,
                         .structure = structure});
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  print(sweep.summary(), seconds.count());
  EXPECT_EQ(sweep.summary().failures, 0);
  EXPECT_LE(sweep.summary().kinks, 1 + sweep.summary().differences / 50);
}

// The names of a variant's alternatives.
template <class Variant>
struct Names;
template <class... Choice>
struct Names<std::variant<Choice...>> {
  static std::set<std::string> all() { return {Choice::kName...}; }
};

template <class Row>
std::set<std::string> kinds(const std::vector<Row>& rows) {
  std::set<std::string> all;
  for (const Row& row : rows) all.insert(row.kind);
  return all;
}

std::set<std::string> without(std::set<std::string> all, const char* one) {
  EXPECT_EQ(all.erase(one), 1u) << one;
  return all;
}

// A bias of edges needs a graph, and pages are a layout of the keys: edge_bias_test and pages_test go
// through the product for these.
TEST(Sweep, LeavesNoAlternativeOut) {
  EXPECT_EQ(kinds(cases::scores()), Names<engine::Score::Kind>::all());
  EXPECT_EQ(kinds(cases::modifiers()), without(Names<engine::Modifier>::all(), "edge_bias"));
  EXPECT_EQ(kinds(cases::normalisers()), Names<engine::Normaliser>::all());
  EXPECT_EQ(kinds(cases::structures()),
            without(Names<choice::StructureKind<engine::View>>::all(), "paged"));
  std::set<choice::KernelName> kernels;
  for (const auto& row : cases::scores()) {
    const cases::Built built = cases::build({.score = row.name});
    const auto* kernel = std::get_if<engine::Kernel>(&built.problem.score.kind);
    if (kernel) kernels.insert(kernel->name);
  }
  EXPECT_EQ(kernels.size(), static_cast<size_t>(choice::KernelName::kCosine) + 1);
}

}  // namespace
}  // namespace fovea
