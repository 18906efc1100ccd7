// Short runs of the systems of text on generated data, every verb, and input that means harm.
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "systems/word2vec/negative_sampling.h"
#include "tests/systems/run/runs.h"
#include "train/answers.h"
#include "train/run/tensor_file.h"

namespace fovea::systems {
namespace {

using test::Runs;

class WordRuns : public Runs {
 protected:
  static double metric(const Json& report, const char* name) {
    return report.at("metrics").at(name).get<double>();
  }
  std::string answer(const std::string& run, const std::string& input) const {
    systems::Run opened = systems::open(base_ / run);
    std::istringstream lines(input);
    std::ostringstream answers;
    systems::predict(opened, {lines, "input"}, answers);
    return answers.str();
  }
  Json json_answer(const std::string& run, const std::string& input) const {
    systems::Run opened = systems::open(base_ / run);
    std::istringstream lines(input);
    std::stringbuf answers;
    JsonLines objects(&answers);
    systems::predict(opened, {lines, "input"}, objects);
    return Json::parse(answers.str());
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(base_ / name, std::ios::binary) << text;
    return (base_ / name).string();
  }
  // Lines no one should fear: nothing, only unknown words, a hundred thousand words.
  void check_hostile_lines(const std::string& run) const {
    std::string long_line;
    for (int i = 0; i < 100000; ++i) long_line += i % 7 ? "great " : "film . ";
    const std::string answers = answer(run, "\nqwertz uiopü asdf\n" + long_line + "\n");
    EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 3) << run;
    EXPECT_EQ(answers.find("nan"), std::string::npos) << run;
  }
};

TEST_F(WordRuns, WordSum) {
  const Json report = train("sum", {.system = "word-sum", .set = {"epochs=6"}});
  EXPECT_GE(metric(report, "accuracy"), 0.90);
  check_every_verb("sum", "the plot was great\n");
  check_hostile_lines("sum");
  const std::string answers = answer("sum", "really great\nnot really great\n");
  EXPECT_EQ(answers.find("positive\t"), 0u);
  EXPECT_NE(answers.find("great:"), std::string::npos);
  // A word is named once, with all it carried, in digits that mean something.
  const auto carried = [&](const std::string& line, const std::string& word) {
    const std::string all = answer("sum", line + "\n");
    const size_t at = all.find(word + ":");
    EXPECT_NE(at, std::string::npos) << all;
    EXPECT_EQ(all.find(word + ":", at + 1), std::string::npos) << all;
    return std::stod(all.substr(at + word.size() + 1));
  };
  // The first picture: a word adds the same with "not" and without.
  systems::Run opened = systems::open(base_ / "sum");
  const explain::Explanation first = systems::explain(opened, nullptr).at(0);
  std::vector<float> great;
  for (const explain::Link& link : first.maps.at(0).links)
    if (first.keys[static_cast<size_t>(link.key)].text == "great") great.push_back(link.weight);
  ASSERT_EQ(great.size(), 2u);
  EXPECT_EQ(great[0], great[1]);
  EXPECT_EQ(first.queries.size(), 4u);
  const double once = carried("awful", "awful");
  EXPECT_LT(once, 0);
  EXPECT_NEAR(carried("awful awful awful", "awful"), 3 * once, 0.01 * std::abs(3 * once));
  EXPECT_NE(answer("sum", "qwertz\n").find("qwertz(unknown):0\n"), std::string::npos);
  // Beside words that carry something too, and in JSON.
  const std::string some = "not great awful film qwertz asdf qwertz\n";
  EXPECT_TRUE(answer("sum", some).ends_with(" qwertz(unknown):0 asdf(unknown):0\n"));
  EXPECT_EQ(json_answer("sum", some).at("unknown"), Json({"qwertz", "asdf"}));
}

TEST_F(WordRuns, FixedAttentionOnNegation) {
  const Json one = train("one", {.system = "fixed-attention", .set = {"queries=1", "epochs=10"}});
  EXPECT_GT(metric(one, "accuracy"), 0.64);
  EXPECT_LT(metric(one, "accuracy"), 0.75) << "a threshold on word counts cannot do better";
  const Json context = train(
      "context",
      {.system = "fixed-attention", .set = {"context=self-attention", "rate=0.003", "epochs=8"}});
  EXPECT_GE(metric(context, "accuracy"), 0.97);
  check_every_verb("one", "the plot was not great\n");
  check_hostile_lines("one");
}

TEST_F(WordRuns, DocumentAttentionLooksWhereItIsAsked) {
  const Json report = train("atae", {.system = "document-attention"});
  EXPECT_GE(metric(report, "accuracy"), 0.95);
  EXPECT_GE(metric(report, "accuracy_mixed"), 0.90);
  const Json blind =
      train("blind", {.system = "document-attention", .set = {"epochs=3", "aspect=blind"}});
  EXPECT_LE(metric(blind, "accuracy_mixed"), 0.60)
      << "who does not know what is asked cannot answer where the clauses disagree";
  check_every_verb("atae",
                   "food\tthe food was great but the service was awful\nthe food was great\n");
  EXPECT_NE(answer("atae", "spaceship\tthe food was great\n").find("aspect 'spaceship' is unknown"),
            std::string::npos);
  EXPECT_THROW(answer("atae", "food\tthe food\twas great\n"), InvalidArgument);
  check_hostile_lines("atae");
}

TEST_F(WordRuns, HierarchicalFindsTheHiddenSentence) {
  const Json report = train(
      "han", {.system = "hierarchical", .set = {"epochs=1", "rate=0.005", "normaliser=sparsemax"}});
  EXPECT_GE(metric(report, "accuracy"), 0.95);
  EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.90);
  check_every_verb("han", "the teacher meets the pilot . the plot was awful .\n");
  check_hostile_lines("han");
}

TEST_F(WordRuns, ALabelOutOfRangeAndAWrongColumnAreNamed) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 2 ? "1 good film\n" : "0 bad film\n";
  train("own", {.system = "word-sum", .data = write("own.txt", text), .set = {"epochs=1"}});
  const auto error = [&](const std::string& content) {
    try {
      systems::evaluate(base_ / "own", write("other.txt", content), "test");
    } catch (const InvalidArgument& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  EXPECT_NE(error("0 bad\n7 what\n").find("other.txt:2: label"), std::string::npos);
  EXPECT_NE(error("0\tbad\n1\tgood\tagain\n").find("other.txt:2: 3 columns, expected 2"),
            std::string::npos);
  EXPECT_THROW(train("one-class", {.system = "word-sum",
                                   .data = write("one.txt", "1 a\n1 b\n1 c\n"),
                                   .set = {"epochs=1"}}),
               InvalidArgument);
}

TEST_F(WordRuns, HidingIsOfferedWhereItIsDoneAndNeedsItsFolder) {
  EXPECT_THROW(train("sum", {.system = "word-sum", .set = {"hide=true"}}), UsageError);
  EXPECT_THROW(train("asked", {.system = "document-attention", .set = {"documents=9"}}),
               UsageError);
  try {
    train("han", {.system = "hierarchical", .set = {"hide=true"}});
    ADD_FAILURE() << "hide=true without --data was accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("expected --data"), std::string::npos);
  }
  EXPECT_THROW(train("many", {.system = "hierarchical", .set = {"documents=9"}}), UsageError);
}

// Too few documents to set any aside: no figures, rather than an accuracy of nothing.
TEST_F(WordRuns, NoItemsGiveNoFigures) {
  std::string text;
  for (int i = 0; i < 7; ++i) text += std::to_string(i % 2) + "\tsome film " + "abcdefg"[i] + "\n";
  const Json report =
      train("few", {.system = "word-sum", .data = write("few.tsv", text), .set = {"epochs=1"}});
  EXPECT_EQ(report.at("items"), 0);
  EXPECT_TRUE(report.at("metrics").empty()) << report.dump();
  EXPECT_NE(report.at("notes").dump().find("no items"), std::string::npos);
}

TEST_F(WordRuns, TheAspectOfThreeColumnsIsAsked) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += i % 2 ? "1\tfood\tthe food was great\n" : "0\tbar\tthe bar was awful\n";
  train("asked",
        {.system = "document-attention", .data = write("asked.tsv", text), .set = {"epochs=1"}});
  EXPECT_EQ(answer("asked", "food\tthe food\n").find("unknown"), std::string::npos);
}

TEST_F(WordRuns, VectorsBeginAndStay) {
  std::string text, vectors;
  for (int i = 0; i < 80; ++i) text += i % 2 ? "1 good film\n" : "0 bad film\n";
  const std::string file = write("vectors.txt", "good 0.5 -0.25 1\nbad 2 0 1\nelsewhere 1 1 1\n"),
                    data = write("text.txt", text);
  train("frozen", {.system = "word-sum",
                   .data = data,
                   .set = {"epochs=2", "embedding=frozen", "vectors=" + file}});
  EXPECT_EQ(systems::open(base_ / "frozen").config.at("facts").at("width"), 3);
  // Another run's words to begin with, here of the same vocabulary and without a step of learning.
  train("again", {.system = "word-sum",
                  .data = data,
                  .set = {"epochs=0", "vectors=" + (base_ / "frozen").string()}});
  const auto words_of = [&](const char* name) {
    return fovea::train::read_tensors((base_ / name / "model.safetensors").string())
        .tensors.at("embedding.weight");
  };
  EXPECT_TRUE(words_of("again").equal(words_of("frozen")));
  EXPECT_THROW(
      train("no-run", {.system = "word-sum", .data = data, .set = {"vectors=" + base_.string()}}),
      InvalidArgument);
  EXPECT_THROW(train("none", {.system = "word-sum", .data = data, .set = {"embedding=frozen"}}),
               UsageError);
  EXPECT_THROW(
      train("absent", {.system = "word-sum", .data = data, .set = {"vectors=" + file + ".absent"}}),
      InvalidArgument);
}

// ---- word2vec -----------------------------------------------------------------------------------

TEST(NegativeSampling, AStepFollowsTheGradient) {
  const word2vec::Plan plan{
      .architecture = word2vec::Architecture::kCbow, .width = 3, .negatives = 2};
  const std::vector<int32_t> context = {0, 1}, negatives = {3, 4};
  std::vector<float> input, output;
  for (int i = 0; i < 15; ++i)
    input.push_back(0.3f * std::sin(static_cast<float>(i))),
        output.push_back(0.3f * std::cos(static_cast<float>(i)));
  // −log σ(u_2·v) − Σ log σ(−u_k·v), v the mean of rows 0 and 1
  const auto loss = [&](const std::vector<double>& in, const std::vector<double>& out) {
    const auto score = [&](int word) {
      double sum = 0;
      for (int c = 0; c < 3; ++c)
        sum += out[static_cast<size_t>(3 * word + c)] *
               (in[static_cast<size_t>(c)] + in[static_cast<size_t>(3 + c)]) / 2;
      return sum;
    };
    return std::log1p(std::exp(-score(2))) + std::log1p(std::exp(score(3))) +
           std::log1p(std::exp(score(4)));
  };
  const std::vector<double> in(input.begin(), input.end()), out(output.begin(), output.end());
  constexpr float kRate = 0.01f;
  std::vector<float> moved_in = input, moved_out = output;
  EXPECT_NEAR(word2vec::step(plan, kRate, context, 2, negatives, moved_in.data(), moved_out.data()),
              loss(in, out), 1e-2);
  for (size_t i = 0; i < 15; ++i) {
    auto up = in, down = in;
    up[i] += 1e-5, down[i] -= 1e-5;
    EXPECT_NEAR((moved_in[i] - input[i]) / kRate, -(loss(up, out) - loss(down, out)) / 2e-5, 3e-3)
        << "input " << i;
    up = out, down = out;
    up[i] += 1e-5, down[i] -= 1e-5;
    EXPECT_NEAR((moved_out[i] - output[i]) / kRate, -(loss(in, up) - loss(in, down)) / 2e-5, 3e-3)
        << "output " << i;
  }
}

TEST(NegativeSampling, ThreadsChangeNothingAndSentencesAreNotCrossed) {
  word2vec::Text text;
  std::vector<int64_t> counts(4, 0);
  text.sentences = {0};
  for (int i = 0; i < 4000;
       ++i) {  // words 0 and 1 meet, words 2 and 3 meet; the pairs only ever follow each other
    const int32_t base = i % 2 ? 2 : 0;
    text.words.insert(text.words.end(), {base, base + 1, base, base + 1});
    text.sentences.push_back(static_cast<int64_t>(text.words.size()));
    counts[static_cast<size_t>(base)] += 2, counts[static_cast<size_t>(base + 1)] += 2;
  }
  word2vec::Plan plan{.width = 8, .window = 5, .negatives = 2, .epochs = 3, .sample = 0};
  const word2vec::Learned one = word2vec::learn(text, counts, plan, {});
  plan.threads = 3;
  EXPECT_EQ(word2vec::learn(text, counts, plan, {}).input, one.input);
  const auto score = [&](int a, int b) {
    float sum = 0;
    for (int c = 0; c < 8; ++c)
      sum += one.input[static_cast<size_t>(8 * a + c)] * one.output[static_cast<size_t>(8 * b + c)];
    return sum;
  };
  EXPECT_GT(score(0, 1), score(0, 2) + 1);
  EXPECT_GT(score(2, 3), score(2, 1) + 1);
  EXPECT_LT(one.losses.back(), one.losses.front());
}

TEST_F(WordRuns, Word2vecPutsWordsOfASlotTogether) {
  for (const std::string model : {"skip-gram", "cbow"}) {
    const Json report =
        train(model,
              {.system = "word2vec",
               .set = {"model=" + model, "epochs=3", model == "cbow" ? "rate=0.1" : "rate=0.025"}});
    EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.9) << model;
    EXPECT_TRUE(std::filesystem::exists(base_ / model / "vectors.txt"));
  }
  const std::string answers = answer("skip-gram", "teacher\nteacher doctor great\n");
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 2);
  EXPECT_THROW(answer("skip-gram", "spaceship\n"), InvalidArgument);
  EXPECT_THROW(answer("skip-gram", "teacher doctor\n"), InvalidArgument);
  systems::Run run = systems::open(base_ / "skip-gram");
  for (const explain::Explanation& picture : systems::explain(run, nullptr)) {
    EXPECT_NO_THROW(explain::check(picture));
    // The words of a slot are used alike, and still their cosines rank them.
    for (const auto& row : picture.tables.at(0).rows) {
      std::istringstream cosines(row.at(2));
      double largest = 0, smallest = 0;
      std::string to;
      ASSERT_TRUE(cosines >> largest >> to >> smallest) << row.at(2);
      EXPECT_GT(largest, smallest) << row.at(0);
    }
  }
  // What it wrote, another system begins with.
  const std::string vectors = "vectors=" + (base_ / "cbow" / "vectors.txt").string();
  EXPECT_GE(
      metric(train("begun", {.system = "word-sum", .set = {"epochs=2", vectors}}), "accuracy"),
      0.8);
  // Its folder stands for the file within, of either format.
  const auto begun_with = [&](const std::string& name, const std::filesystem::path& from) {
    train(name, {.system = "word-sum", .set = {"epochs=0", "vectors=" + from.string()}});
    return fovea::train::read_tensors((base_ / name / "model.safetensors").string())
        .tensors.at("embedding.weight");
  };
  const torch::Tensor words = begun_with("of-file", base_ / "cbow" / "vectors.txt");
  EXPECT_TRUE(begun_with("of-folder", base_ / "cbow").equal(words));
  train("binary",
        {.system = "word2vec", .set = {"model=cbow", "epochs=3", "rate=0.1", "format=binary"}});
  EXPECT_TRUE(begun_with("of-binary", base_ / "binary").equal(words));
}

TEST_F(WordRuns, TextTooShortForVectorsIsNamed) {
  try {
    train("short", {.system = "word2vec", .data = write("short.txt", "a film\nno film\n")});
    ADD_FAILURE() << "no word occurs five times";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("short.txt: no word occurs 5 times"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(WordRuns, BagAndTfIdf) {
  for (const std::string model : {"bag", "tf-idf"}) {
    const Json report =
        train(model, {.system = "word2vec", .set = {"model=" + model, "epochs=3", "rate=0.01"}});
    EXPECT_GE(metric(report, "accuracy"), 0.88) << model;
  }
  check_every_verb("tf-idf", "the plot was great\n\n");
}

}  // namespace
}  // namespace fovea::systems
