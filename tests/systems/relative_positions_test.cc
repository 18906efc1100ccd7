// Relative positions: what the generators promise, the cache, and runs of the three tasks.
#include <torch/torch.h>

#include "data/music/midi.h"
#include "systems/relative_positions/generated.h"
#include "systems/relative_positions/model.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::relative_positions {
namespace {

TEST(Canons, EachVoiceRepeatsTheOneAbove) {
  data::Random random(5);
  for (int i = 0; i < 20; ++i) {
    const data::Chorale piece = draw_canon(random, 64);
    ASSERT_EQ(piece.sixteenths(), 64);
    for (int64_t t = 0; t < 64; ++t)
      for (int64_t v = 1; v < data::kVoices; ++v) {
        const int64_t at = t * data::kVoices + v, token = piece.tokens[static_cast<size_t>(at)];
        if (t < kCanonDelay * v) {
          EXPECT_EQ(token, t == 0 ? data::kRestToken : data::kHoldToken);
          continue;
        }
        const int64_t before = piece.tokens[static_cast<size_t>(at - kCanonDistance)];
        EXPECT_EQ(data::pitch_of_token(token),
                  before == data::kHoldToken ? 0 : data::pitch_of_token(before) - kCanonInterval);
      }
    EXPECT_EQ(data::chorale_text(data::parse_chorale(data::chorale_text(piece), "canon", 1)),
              data::chorale_text(piece));
  }
}

TEST(LabelledGraphTask, TheAnswerIsAtTheEndOfTheDecidingEdge) {
  data::Random random(6);
  for (int i = 0; i < 50; ++i) {
    const data::LabelledGraph graph = draw_graph(random);
    const auto& edge = graph.edges[static_cast<size_t>(deciding_edge(graph))];
    EXPECT_EQ(edge.from, graph.asked);
    EXPECT_NE(edge.to, graph.asked);
    EXPECT_EQ(edge.label, graph.question);
    EXPECT_EQ(graph.kinds[static_cast<size_t>(edge.to)], graph.answer);
  }
}

TEST(SequenceModel, StepsWithACacheAreTheWhole) {
  for (const Positions positions :
       {Positions::kRelative, Positions::kSinusoidal, Positions::kBoth, Positions::kNone}) {
    torch::manual_seed(4);
    SequenceModel model({.vocabulary = 7,
                         .width = 8,
                         .heads = 2,
                         .hidden = 8,
                         .layers = 2,
                         .clip = 3,
                         .positions = positions});
    model.eval();
    const torch::NoGradGuard no_grad;
    const torch::Tensor tokens = torch::randint(7, {2, 11}, torch::kLong);
    const torch::Tensor whole = model.forward(tokens);
    SequenceCache cache;
    for (int64_t at = 0, n = 3; at < 11; at += n, n = 1)
      EXPECT_TRUE(torch::allclose(model.step(tokens.narrow(1, at, n), cache),
                                  whole.narrow(1, at, n), 1e-4, 1e-5))
          << "position " << at;
    EXPECT_EQ(cache.length(), 11);
  }
}

class RelativeRuns : public test::Runs {
 protected:
  std::string answers(const std::string& name, const std::string& input,
                      const std::vector<std::string>& set = {}) const {
    systems::Run run = systems::open(base_ / name, "cpu", 0, set);
    std::istringstream lines(input);
    std::ostringstream out;
    systems::predict(run, {lines, "input"}, out);
    return out.str();
  }
};

TEST_F(RelativeRuns, CopiesReachRowsThreeTimesAsLong) {
  const auto accuracy = [&](const std::string& positions) {
    const Json report =
        train(positions,
              {.system = "relative-positions",
               .set = {"positions=" + positions, "rows=1500", "batch=16", "width=32", "layers=1"},
               .epochs = 3});
    return report.at("metrics").at("accuracy").get<double>();
  };
  EXPECT_GT(accuracy("relative"), 0.99);
  EXPECT_LT(accuracy("sinusoidal"), 0.9);
  EXPECT_EQ(answers("relative", "a b c d e f g h\n"), ". . . . . a b c\n");
  check_every_verb("relative", "a b c d e f g h\n");
  check_blank_line("relative", "a b c d e f g h\n");
  EXPECT_NE(said([&] { answers("relative", "a z\n"); }).find("input:1: 'z', expected a letter"),
            std::string::npos);
  std::string endless;  // time and pictures take the square of it
  for (int i = 0; i < 5000; ++i) endless += "a ";
  const std::string refused = "input:2: 5000 tokens, more than 4096 tokens, the limit `sentence`";
  EXPECT_NE(said([&] { answers("relative", "a b\n" + endless + "\n"); }).find(refused),
            std::string::npos);
  systems::Run run = systems::open(base_ / "relative");
  std::istringstream lines("a b\n" + endless + "\n");
  Input input{lines, "input"};
  EXPECT_NE(said([&] { systems::explain(run, &input); }).find(refused), std::string::npos);
}

TEST_F(RelativeRuns, MusicTakesEveryVerbAndWritesMidi) {
  train("music",
        {.system = "relative-positions",
         .set = {"task=music", "canons=20", "width=8", "heads=2", "hidden=8", "farthest=8"},
         .epochs = 1});
  const std::string begun = "74 - 72 -\t67 - - -\t0 - 60 62\t48 48 - 0";
  check_every_verb("music", begun + "\n");
  const std::vector<std::string> few = {"sixteenths=6"};
  const std::string line = answers("music", begun + "\n", few);
  const data::Chorale piece = data::parse_chorale(line.substr(0, line.size() - 1), "answer", 1);
  EXPECT_EQ(piece.sixteenths(), 10);
  EXPECT_EQ(std::vector<int64_t>(piece.tokens.begin(), piece.tokens.begin() + 16),
            data::parse_chorale(begun, "begun", 1).tokens);
  EXPECT_EQ(answers("music", begun + "\n", {"sixteenths=6", "form=midi"}), data::midi_of(piece));
  EXPECT_NE(answers("music", begun + "\n", {"sixteenths=6", "sample_seed=2"}), line);
  // A blank line is a piece from nothing; a MIDI file holds one.
  EXPECT_NO_THROW(answers("music", "\n", few));
  EXPECT_NE(said([&] {
              answers("music", begun + "\n" + begun + "\n", {"form=midi"});
            }).find("input:2: a second piece, expected one line for a MIDI file"),
            std::string::npos);
  std::string voice = "74";
  for (int i = 0; i < 1100; ++i) voice += " -";
  EXPECT_NE(said([&] {
              answers("music", voice + "\t" + voice + "\t" + voice + "\t" + voice + "\n", few);
            }).find("input:1: 4404 tokens, more than 4096"),
            std::string::npos);
}

TEST_F(RelativeRuns, GraphsNeedTheLabelsOfEdges) {
  const auto figure = [&](const std::string& name, const std::string& labels) {
    return train(
        name, {.system = "relative-positions",
               .set = {"task=graphs", "edge_labels=" + labels, "rows=1500", "batch=16", "width=32"},
               .epochs = 5});
  };
  const Json with = figure("with", "true"), without = figure("without", "false");
  EXPECT_GT(with.at("metrics").at("accuracy").get<double>(), 0.95);
  EXPECT_GT(with.at("attention").at("hit_rate").get<double>(), 0.9);
  EXPECT_LT(without.at("metrics").at("accuracy").get<double>(), 0.6);
  const std::string line = "0 left\tred blue green\t0:left:1 0:right:2 1:left:2\n";
  EXPECT_TRUE(answers("with", line).starts_with("blue\t"));
  check_every_verb("with", line);
  EXPECT_NE(said([&] {
              answers("with", "0 left\tred pink\t0:left:1\n");
            }).find("kind 'pink' was not in the training data"),
            std::string::npos);
  // A node without any edge still has an answer.
  EXPECT_NO_THROW(answers("with", "0 left\tred\t\n"));
}

}  // namespace
}  // namespace fovea::systems::relative_positions
