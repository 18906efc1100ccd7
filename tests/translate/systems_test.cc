// The translation systems as a user meets them: short trainings on generated data, every verb, and
// lines nobody expects.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "data/files/file.h"
#include "io/write.h"
#include "explain/explanation.h"
#include "explain/table_rows.h"
#include "fovea/error.h"
#include "systems/beam_search/view.h"
#include "systems/run/session.h"
#include "train/run/manifest.h"
#include "train/usage_error.h"
#include "translate/codec.h"
#include "translate/corpus/corpus.h"
#include "translate/links.h"
#include "translate/pictures.h"

namespace fovea::translate {
namespace {

namespace fs = std::filesystem;

class Systems : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) / ("fovea_translate_" + std::to_string(getpid()));
    fs::remove_all(base_);
    fs::create_directories(base_);
  }
  void TearDown() override { fs::remove_all(base_); }

  Json train(const std::string& system, std::vector<std::string> set,
             const std::string& data = "") const {
    train::Progress silent(train::Progress::Style::kSilent);
    return systems::train({.system = system,
                           .data = data,
                           .set = std::move(set),
                           .threads = 1,
                           .out = base_ / system,
                           .overwrite = true},
                          silent);
  }
  std::string predict(const std::string& system, const std::string& text,
                      const std::vector<std::string>& set = {}) const {
    systems::Run run = systems::open(base_ / system, "cpu", 1, set);
    std::istringstream in(text);
    std::ostringstream out;
    systems::predict(run, {in, "input"}, out);
    return out.str();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(base_ / name) << text;
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  // A tiny parallel text: words and their capitals.
  std::string tiny() const {
    std::string source, target;
    for (int i = 0; i < 40; ++i) {
      const std::string a(1, static_cast<char>('a' + i % 7)), b(1, static_cast<char>('h' + i % 5));
      source += a + " " + b + "\n";
      target += std::string(1, static_cast<char>('A' + i % 7)) + " " +
                static_cast<char>('H' + i % 5) + "\n";
    }
    for (const char* part : {"train", "val", "test"}) {
      write(std::string(part) + ".en", source);
      write(std::string(part) + ".de", target);
    }
    return base_.string();
  }

  fs::path base_;
};

TEST_F(Systems, HostileLinesGetASensibleAnswer) {
  train("transformer", {"epochs=1", "width=16", "heads=2", "hidden=16", "layers=1", "tokens=words"},
        tiny());
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "a ";
  const std::vector<std::string> said = lines(predict(
      "transformer", "a h\n\n   \n" + many + "\n東京 ☃\n\xff\xfe bytes\nb i\n", {"beam=2"}));
  ASSERT_EQ(said.size(), 7u);  // a line out for every line in, in order
  EXPECT_EQ(said[1], "");
  EXPECT_EQ(said[2], "");
  EXPECT_EQ(said[0],
            lines(predict("transformer", "a h\n", {"beam=2"}))[0]);  // company changes nothing
  EXPECT_EQ(predict("transformer", "\n"), "\n");                     // nor does solitude
  systems::Run run = systems::open(base_ / "transformer", "cpu", 1);
  std::istringstream marked("\xEF\xBB\xBFh a\n");  // as some editors begin a file
  std::ostringstream answer;
  std::vector<std::string> noted;
  systems::predict(
      run, {marked, "input", {}, [&](const std::string& note) { noted.push_back(note); }}, answer);
  EXPECT_EQ(noted, std::vector<std::string>{}) << "the mark is no part of a word";
}

TEST_F(Systems, APictureOfAnEndlessSentenceIsRefusedOrCutShort) {
  train("luong", {"epochs=1", "width=8", "embedding=8", "tokens=words"}, tiny());
  systems::Run run = systems::open(base_ / "luong", "cpu", 1, {}, Use::kExplain);
  const auto explained = [&](int words) {
    std::string line = "a h\n";
    for (int i = 0; i < words; ++i) line += "a ";
    std::istringstream lines(line + "\n");
    Input input{lines, "input"};
    return systems::explain(run, &input);
  };
  size_t most = 0;
  for (const explain::Explanation& one : explained(400)) {
    size_t rows = 0;
    for (const explain::Table& table : one.tables) rows += table.rows.size();
    most = std::max(most, rows);
    EXPECT_LT(rows, 2 * explain::kMostTableRows) << one.title;
  }
  EXPECT_GT(most, 0u);
  try {
    explained(5000);
    FAIL() << "a sentence of 5000 tokens was drawn";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).find("input:2: 5000 tokens, more than 4096 tokens"), 0u)
        << error.what();
  }
}

TEST(BeamTree, GreedySearchIsMarkedWhereItLeavesTheBest) {
  using Fate = nn::BeamNode::Fate;
  using State = explain::TreeNode::State;
  const std::shared_ptr<Codec> words =
      learn_codec({"a b c"}, {.kind = CodecKind::kWords, .size = 0, .min_count = 1});
  const int64_t a = words->encode("a").ids[0], b = words->encode("b").ids[0],
                c = words->encode("c").ids[0];
  const nn::SearchResult found{.n_best = {{.tokens = {b, kEnd}, .log_probability = -2}},
                               .tree = {{-1, kBegin, 0, Fate::kKept},
                                        {0, a, -0.5, Fate::kKept},
                                        {0, b, -1, Fate::kKept},
                                        {1, c, -3, Fate::kPruned},
                                        {2, kEnd, -2, Fate::kFinished}}};
  const nn::SearchResult greedy{.tree = {{-1, kBegin, 0, Fate::kKept},
                                         {0, a, -0.5, Fate::kKept},
                                         {0, b, -1, Fate::kPruned},
                                         {1, c, -3, Fate::kKept},
                                         {3, kEnd, -4, Fate::kFinished}}};
  const PictureContext context{"beam-search", *words, *words};
  const explain::Explanation picture =
      systems::beam_search::with_greedy(beam_picture(context, found, ""), found, greedy, *words);
  const auto state = [&](size_t i) { return picture.tree.at(i).state; };
  ASSERT_EQ(picture.tree.size(), 6u);
  EXPECT_EQ(state(0), State::kLive) << "the root is on the way to the best";
  EXPECT_EQ(state(1), State::kGreedy);
  EXPECT_EQ(state(2), State::kLive);
  EXPECT_EQ(state(3), State::kGreedy) << "the beam pruned it";
  EXPECT_EQ(state(4), State::kBest);
  EXPECT_EQ(state(5), State::kGreedy) << "the beam did not come so far";
  EXPECT_EQ(picture.tree[5].parent, 3);
  EXPECT_EQ(picture.tree[5].score, -4);
}

TEST_F(Systems, ABeamSaysWhatItFoundAndWhatGreedySearchFound) {
  train("beam-search", {"epochs=1", "width=8", "embedding=8", "tokens=words"}, tiny());
  systems::Run run = systems::open(base_ / "beam-search", "cpu", 1, {}, Use::kExplain);
  const std::vector<explain::Explanation> shown = systems::explain(run, nullptr);
  ASSERT_FALSE(shown.empty());
  const std::vector<std::string> said = lines(shown[0].outcome);
  ASSERT_GE(said.size(), 3u) << shown[0].outcome;
  EXPECT_TRUE(said[0].starts_with("“"));
  EXPECT_TRUE(said[1].starts_with("beam of 4: "));
  EXPECT_TRUE(said[2].starts_with("greedy search: "));
  for (const std::string& line : {said[1], said[2]})
    EXPECT_TRUE(line.ends_with(" (right)") || line.ends_with(" (wrong)")) << line;
  ASSERT_EQ(shown[0].notes.size(), 1u);
  EXPECT_TRUE(shown[0].notes[0].starts_with("Of 40 test sentences, a beam of 4 translates "))
      << shown[0].notes[0];
  std::istringstream own("a h\n");
  Input input{own, "input"};
  EXPECT_EQ(systems::explain(run, &input).at(0).outcome.find("(wrong)"), std::string::npos)
      << "nobody says what is right";
}

TEST_F(Systems, AControlIsDrawnInTheSamePlot) {
  const std::vector<std::string> small = {"epochs=1", "width=8", "embedding=8", "tokens=words"};
  train("seq2seq", small, tiny());
  train("bahdanau", small, tiny());
  systems::Run control = systems::open(base_ / "seq2seq", "cpu", 1);
  std::string json = "[";
  for (const explain::Explanation& e : systems::explain(control, nullptr))
    json += (json.size() > 1 ? "," : "") + explain::to_json(e);
  write("control.json", json + "]");
  write("other.json", "[]");
  systems::Run run = systems::open(base_ / "bahdanau", "cpu", 1,
                                   {"control=" + (base_ / "control.json").string()}, Use::kExplain);
  std::vector<std::string> labels;
  for (const explain::Explanation& e : systems::explain(run, nullptr)) {
    for (const explain::Plot& plot : e.plots) {
      if (plot.title != "Longer sentences") continue;
      for (const explain::Curve& curve : plot.curves) labels.push_back(curve.label);
    }
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"BLEU", "exact, per cent", "seq2seq: BLEU",
                                              "seq2seq: exact, per cent"}));
  systems::Run wrong = systems::open(base_ / "bahdanau", "cpu", 1,
                                     {"control=" + (base_ / "other.json").string()}, Use::kExplain);
  EXPECT_THROW(systems::explain(wrong, nullptr), InvalidArgument);
}

// The title says what the schedule does, not what the paper's does.
TEST_F(Systems, TheRateIsDescribedAsItIs) {
  const auto titles = [&](const std::string& schedule) {
    train("transformer",
          {"epochs=1", "width=16", "heads=2", "hidden=16", "layers=1", "tokens=words", "warmup=10",
           "schedule=" + schedule},
          tiny());
    systems::Run run = systems::open(base_ / "transformer", "cpu", 1, {});
    std::string all;
    for (const explain::Explanation& e : systems::explain(run, nullptr)) all += e.title + "\n";
    return all;
  };
  EXPECT_NE(titles("cosine").find("The rate rises, then falls along a cosine"), std::string::npos);
  EXPECT_NE(titles("inverse_sqrt").find("one over the root of the step"), std::string::npos);
  EXPECT_EQ(titles("step").find("The rate"), std::string::npos) << "changes with epochs, not steps";
}

TEST_F(Systems, WrongInputIsOneLineAndLosesNothing) {
  train(
      "luong",
      {"epochs=1", "width=8", "embedding=8", "tokens=words", "score=location", "longest_source=6"},
      tiny());
  systems::Run run = systems::open(base_ / "luong", "cpu", 1);
  const auto attempt = [&](const std::string& text, std::ostringstream& out) {
    std::istringstream in(text);
    std::string message;
    try {
      systems::predict(run, {in, "input"}, out);
    } catch (const std::exception& error) {
      message = error.what();
    }
    return message;
  };
  std::ostringstream out;
  std::string long_line;
  for (int i = 0; i < 9; ++i) long_line += "a ";
  const std::string message = attempt("a h\nb i\n" + long_line + "\na h\n", out);
  EXPECT_NE(message.find("longest_source"), std::string::npos) << message;
  EXPECT_NE(message.find("input:3"), std::string::npos) << message;
  std::istringstream heard("a h\nb i\n" + long_line + "\na h\n");
  std::ostringstream all;
  std::vector<std::string> refused;
  systems::predict(
      run, {heard, "input", [&](const std::string& error) { refused.push_back(error); }}, all);
  EXPECT_EQ(refused, std::vector<std::string>{message});
  const std::vector<std::string> said = lines(all.str());
  ASSERT_EQ(said.size(), 4u);
  EXPECT_EQ(said[2], "");
  EXPECT_EQ(said[3], said[0]);
  EXPECT_EQ(lines(out.str()).size(), 2u) << "what was translated before is not lost";
  write("val.de", "one line\n");
  EXPECT_THROW(train("seq2seq", {"epochs=1"}, base_.string()), std::exception);
}

// Each kind learns which word stands for which, and its page has what it should show.
TEST_F(Systems, LightTransformersLearnAndShowTheirKernels) {
  for (const std::string kind : {"light", "dynamic", "quaternion"}) {
    const Json report = train("dynamic-convolution",
                              {"kind=" + kind, "epochs=60", "width=16", "heads=2", "hidden=32",
                               "layers=1", "tokens=words", "batch=10", "rate=0.01", "warmup=10"},
                              tiny());
    EXPECT_GT(report["metrics"]["exact"].get<double>(), 0.9) << kind;
    systems::Run run = systems::open(base_ / "dynamic-convolution", "cpu", 1);
    bool band = false;
    for (const explain::Explanation& e : systems::explain(run, nullptr)) {
      for (const explain::Plot& plot : e.plots) {
        if (plot.title != "Encoder layer 1: kernels, mean over the sentence") continue;
        band = true;
        ASSERT_EQ(plot.curves.size(), 2u) << "a head each";
        EXPECT_EQ(plot.curves[0].x, (std::vector<double>{-1, 0, 1}));
        EXPECT_NEAR(plot.curves[0].y[0] + plot.curves[0].y[1] + plot.curves[0].y[2], 1, 1e-5);
        EXPECT_EQ(e.structure, "window");
      }
    }
    EXPECT_EQ(band, kind != "quaternion");
  }
}

TEST_F(Systems, LightTransformersRefuseSizesThatDoNotFit) {
  const auto refusal = [&](std::vector<std::string> set) {
    set.insert(set.end(), {"epochs=1", "tokens=words"});
    try {
      train("dynamic-convolution", set, tiny());
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  for (const std::string kernels : {"", "4", "3,", "3,x", "0", "-3", "1003", "3 7"})
    EXPECT_EQ(
        refusal({"kernels=" + kernels}),
        "--set kernels=" + kernels + ": expected odd numbers from 1 to 1001, separated by commas");
  EXPECT_EQ(refusal({"width=30", "heads=4"}), "--set width=30: expected a multiple of 4 (heads=4)");
  EXPECT_EQ(refusal({"kind=quaternion", "width=24", "heads=4"}),
            "--set width=24: expected a multiple of 16 (4 × heads=4)");
  EXPECT_EQ(refusal({"kind=quaternion", "hidden=30"}),
            "--set hidden=30: expected a multiple of 4, the parts of a quaternion");
}

TEST_F(Systems, AVocabularyOfAnotherRunIsRefused) {
  train("transformer",
        {"epochs=1", "width=16", "heads=2", "hidden=16", "layers=1", "tokens=pieces",
         "vocabulary=40"},
        tiny());
  std::vector<std::string> text;
  for (int i = 0; i < 200; ++i)
    text.push_back("other words " + std::to_string(i * 7919) + " entirely");
  const std::string other = learn_codec(text, {.kind = CodecKind::kPieces, .size = 60})->bytes();
  const std::filesystem::path run = base_ / "transformer";
  const auto refused_by = [&](const std::string& words) {
    try {
      systems::open(run, "cpu", 1);
      ADD_FAILURE() << "expected an error";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  };
  io::write_file(run / "source.vocabulary", other);
  refused_by("source.vocabulary: damaged");
  // Even where the manifest says that it belongs there.
  const std::filesystem::path path = run / train::kManifestFile;
  train::Manifest manifest = train::Manifest::parse(data::read_file(path.string()), path.string());
  manifest.add("source.vocabulary", other);
  io::write_file(path, manifest.text());
  refused_by("target_embedding");
}

TEST_F(Systems, NBestForcedDecodingAndAlignmentsAgree) {
  train("bahdanau",
        {"epochs=25", "width=16", "embedding=16", "tokens=words", "batch=8", "rate=0.02",
         "dropout=0"},
        tiny());
  const std::vector<std::string> best =
      lines(predict("bahdanau", "a h\n", {"n_best=3", "alpha=0"}));
  ASSERT_EQ(best.size(), 3u);
  double before = 0;
  for (const std::string& line : best) {
    // number ||| text ||| log-probability ||| score; what forced decoding says of the text is the
    // same.
    const size_t a = line.find(" ||| "), b = line.find(" ||| ", a + 5),
                 c = line.find(" ||| ", b + 5);
    const std::string text = line.substr(a + 5, b - a - 5);
    const double log_probability = std::stod(line.substr(b + 5, c - b - 5));
    EXPECT_LE(log_probability, before);
    before = log_probability;
    const std::string forced = predict("bahdanau", "a h\t" + text + "\n", {"forced=true"});
    EXPECT_NEAR(std::stod(forced), log_probability, 1e-4) << line;
  }
  const std::string aligned = predict("bahdanau", "a h\n", {"align=true"});
  EXPECT_NE(aligned.find(" ||| "), std::string::npos) << aligned;
  EXPECT_NE(aligned.find("-0"), std::string::npos) << aligned;
}

TEST_F(Systems, UnknownWordsTakeTheSourceWordLookedAt) {
  // Nearly every target word is unknown to a vocabulary this small, so the answer is full of
  // unknown words to replace.
  train("bahdanau",
        {"epochs=1", "width=8", "embedding=8", "tokens=words", "vocabulary=8", "min_count=6"},
        tiny());
  const std::string plain = predict("bahdanau", "a h\n"),
                    replaced = predict("bahdanau", "a h\n", {"replace_unknown=true"});
  EXPECT_EQ(replaced.find("<unk>"), std::string::npos) << replaced;
  if (plain.find("<unk>") != std::string::npos) {
    EXPECT_NE(replaced, plain);
  }
}

TEST_F(Systems, AlignersFindTheTrueLinks) {
  EXPECT_GT(train("alignment", {"method=diagonal"}).at("metrics").at("aer").get<double>(), 0.7);
  const Json counted = train("alignment", {"method=ibm1", "both=true"});
  EXPECT_LT(counted.at("metrics").at("aer").get<double>(), 0.05);
  EXPECT_LT(counted.at("metrics").at("aer_intersection").get<double>(), 0.03);
  EXPECT_EQ(predict("alignment", "\n"), "\n");
  const std::string links =
      predict("alignment", "the big dog sees the cat ||| no such words\n", {"output=soft"});
  EXPECT_EQ(Json::parse(links).at("weights").size(), 3u);
  EXPECT_THROW(predict("alignment", "no separator\n"), InvalidArgument);
}

TEST_F(Systems, GoldFilesAreReadAndChecked) {
  write("x.src-tgt", "a b ||| c d \ne ||| f\n");
  write("x.gold", "1-1 2p2\n1-1 4-9\n");  // the last points outside
  const std::vector<Pair> pairs = read_gold_corpus((base_ / "x.src-tgt").string());
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].source, "a b");
  EXPECT_EQ(pairs[0].links.sure.size(), 1u);
  EXPECT_EQ(pairs[0].links.possible.size(), 2u);
  EXPECT_EQ(pairs[1].links.possible.size(), 1u);
  write("x.gold", "1-1\n");
  EXPECT_THROW(read_gold_corpus((base_ / "x.src-tgt").string()), std::exception);
}

TEST_F(Systems, ThreeHeadsAnswerThreeQuestionsAndOneCannot) {
  const Json three = train("multi-head", {});
  EXPECT_GE(three.at("metrics").at("accuracy").get<double>(), 0.99);
  EXPECT_GE(three.at("attention").at("hit_rate").get<double>(), 0.4);  // by chance 0.22
  EXPECT_NE(predict("multi-head", "cat-o today fox-a sees\n").find("fox sees cat"),
            std::string::npos);
  EXPECT_LE(train("multi-head", {"heads=1"}).at("metrics").at("accuracy").get<double>(), 0.98);
}

TEST(Links, AWordMayBeLeftOut) {
  const at::Tensor weights = torch::tensor({{0.7f, 0.1f}, {0.2f, 0.1f}});
  EXPECT_EQ(likely_links(weights), (metrics::Links{{0, 0}}));
  EXPECT_EQ(best_links(weights), (metrics::Links{{0, 0}, {0, 1}}));
}

}  // namespace
}  // namespace fovea::translate
