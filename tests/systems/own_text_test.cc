// A user's own text: what was read is said, what cannot be meant is refused, and easy text is learnt.
#include "data/files/file.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems {
namespace {

class OwnText : public test::Runs {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(base_ / name) << text;
    return (base_ / name).string();
  }
  std::string said(const TrainRequest& request) const {
    try {
      train("refused", request);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing";
  }
};

// Of 72 easy lines every epoch has an accuracy of 1 soon; the first of them is not the best.
TEST_F(OwnText, EqualAccuraciesKeepTheEpochOfLeastLoss) {
  const char* subjects[] = {"invoice charge refund", "password login locked",
                            "parcel late courier"};
  std::string lines = "label,text\n";
  for (int i = 0; i < 72; ++i)
    lines += std::string(i % 3 == 0   ? "billing"
                         : i % 3 == 1 ? "account"
                                      : "delivery") +
             ",my " + subjects[i % 3] + " number " + std::to_string(i) + "\n";
  const TrainRequest request{.system = "word-sum",
                             .data = write("easy.csv", lines),
                             .set = {"epochs=30", "monitor=accuracy"}};
  const Json report = train("easy", request);
  EXPECT_EQ(report.at("metrics").at("accuracy"), 1.0) << report.dump();
  std::ifstream file(base_ / "easy/config.json");
  EXPECT_EQ(Json::parse(file).at("facts").at("classes").size(), 3u);
}

// A few lines to choose by have few accuracies. While the loss falls between equal ones, patience is
// not used up.
TEST_F(OwnText, GoesOnWhileTheLossOfEqualAccuraciesFalls) {
  std::string lines;
  for (int i = 1; i <= 36; ++i) {
    const std::string number = std::to_string(i);
    lines += "pos\tthis is lovely " + number + "\nneg\tthis is terrible " + number + "\n";
  }
  const Json report = train("few", {.system = "word-sum", .data = write("few.tsv", lines)});
  EXPECT_EQ(report.at("metrics").at("accuracy"), 1.0) << report.dump();
}

TEST_F(OwnText, WhatCannotBeMeantIsRefused) {
  EXPECT_NE(said({.system = "word-sum", .data = write("one.csv", "label,text\ngood,fine day\n")})
                .find("expected at least two classes"),
            std::string::npos);
  EXPECT_NE(said({.system = "word-sum", .data = write("own.txt", "ab c\nde f\ngh i\n")})
                .find("3 lines and as many classes"),
            std::string::npos);
  EXPECT_NE(said({.system = "bert",
                  .data = write("line.tsv", "good\tfine day\n"),
                  .set = {"task=classify"}})
                .find("expected at least two classes"),
            std::string::npos);
  // A header without a label's name: the text would be the label, and an array one long label.
  EXPECT_NE(said({.system = "word-sum",
                  .data = write("scores.csv",
                                "note,score\nfine day,1\nfine day,1\nfine film,2\nno "
                                "day,2\nbad day,3\nbad film,1\n")})
                .find("5 of 7 labels occur once ("),
            std::string::npos);
  for (const char* array : {"[{\"label\": 1, \"text\": \"a\"},\n{\"label\": 2, \"text\": \"b\"},\n"
                            "{\"label\": 1, \"text\": \"c\"}]\n",
                            "[\n  {\n    \"label\": 1, \"text\": \"a\"\n  }\n]\n"}) {
    const std::string words = said({.system = "word-sum", .data = write("array.json", array)});
    EXPECT_NE(words.find("array.json:1: expected {\"label\": …, \"text\": \"…\"} (or \"topic\", "
                         "\"message\" and the like) on each line"),
              std::string::npos)
        << words;
  }
  // Of pairs some are to learn from, some to choose by, some to judge; equal sources are one.
  for (const char* pairs : {"a cat\teine Katze\n", "a\tb\na\tc\na\td\nb\te\n"})
    for (const char* system : {"seq2seq", "alignment"}) {
      const std::string path = write("pairs.tsv", pairs),
                        words = said({.system = system, .data = path});
      EXPECT_TRUE(words.starts_with(path + ": ")) << words;
      EXPECT_NE(words.find("expected at least 3 lines of source<TAB>target"), std::string::npos)
          << words;
      EXPECT_FALSE(std::filesystem::exists(base_ / "refused"));
    }
}

TEST_F(OwnText, ATableOfOneRowAndBagsOfOneLabelAreRefused) {
  for (const char* rows : {"x,y\n1,2\n", "x,y\n1,2\n1,2\n3,4\n"})
    EXPECT_NE(said({.system = "mixture-of-experts", .data = write("rows.csv", rows)})
                  .find(", expected at least 3: for training, validation and test"),
              std::string::npos)
        << rows;
  std::string bags = "bag,label,f0\n";
  for (int i = 0; i < 30; ++i)
    bags += std::to_string(i / 3) + ",1," + std::to_string(i * 0.1) + "\n";
  for (const char* system : {"pooling", "mil"})
    EXPECT_NE(said({.system = system, .data = write("bags.csv", bags)})
                  .find("bags.csv: every bag has label 1, expected bags of both labels"),
              std::string::npos)
        << system;
}

TEST_F(OwnText, PairsOfAFewWordsAreAlignedAndDrawn) {
  std::string lines;
  for (const char* colour : {"red", "blue", "old"})
    for (const char* thing : {"house", "car"})
      lines += std::string("the ") + colour + " " + thing + "\t" + thing + " le " + colour + "\n";
  // Two lines with one source: one side of the split has both, the others have a pair each.
  lines += "the red house\tla maison\n";
  train("words",
        {.system = "alignment", .data = write("pairs.tsv", lines), .set = {"method=ibm1"}});
  check_every_verb("words", "the red car\tcar le red\n");
  systems::Run run = systems::open(base_ / "words");
  std::istringstream wrong("the red car ||| car le red\n\nno pair\n");
  Input input{wrong, "input"};
  try {
    systems::explain(run, &input);
    ADD_FAILURE() << "a line that is no pair was passed over";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "input:3: expected `source ||| target` or source<TAB>target");
  }
}

TEST_F(OwnText, UnknownWordsAndFarRowsAreNamed) {
  const auto notes = [&](const std::string& name, const std::string& text) {
    systems::Run run = systems::open(base_ / name);
    std::istringstream lines(text);
    std::ostringstream answers;
    std::vector<std::string> out;
    Input input{lines, "input"};
    input.noted = [&](const std::string& note) { out.push_back(note); };
    systems::predict(run, input, answers);
    EXPECT_FALSE(answers.str().empty());
    return out;
  };
  train("words", {.system = "bahdanau", .set = {"epochs=0", "generator=reordered", "width=8"}});
  EXPECT_EQ(notes("words", "xyzzy qwrt\n"),
            std::vector<std::string>{"input:1: never seen in training: 'xyzzy', 'qwrt'"});
  train("curve", {.system = "nadaraya-watson", .set = {"grid=3"}});
  EXPECT_TRUE(notes("curve", "times\n20\n").empty());
  const auto far = notes("curve", "times\n20\n5000\n");
  ASSERT_EQ(far.size(), 1u);
  EXPECT_TRUE(far[0].starts_with("input:3: times 5000 lies outside of the data, ")) << far[0];
}

}  // namespace
}  // namespace fovea::systems
