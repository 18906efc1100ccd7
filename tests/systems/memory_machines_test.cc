// NTM and DNC on copy and repeat-copy: the encoding by hand, short runs that learn, sequences longer
// than trained, a memory of one row, files of one's own, pictures.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <sstream>

#include "data/files/file.h"
#include "systems/machines/sequences.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems {
namespace {

using machines::Job;
using machines::Sequence;

TEST(BitSequences, RepeatCopyIsEncodedAsSaid) {
  const machines::Encoded e =
      machines::encoded({Sequence{{"10", "01"}, 2}, Sequence{{"11"}, 1}}, Job::kRepeatCopy);
  // Two words, the mark with the number 2, four words of answer, its end.
  const torch::Tensor input = torch::tensor(
      {{1.f, 0.f, 0.f, 0.f}, {0.f, 1.f, 0.f, 0.f}, {0.f, 0.f, 1.f, 2.f}, {0.f, 0.f, 0.f, 0.f}});
  EXPECT_TRUE(torch::equal(e.input.select(1, 0).narrow(0, 0, 4), input));
  EXPECT_EQ(e.input.select(1, 0).narrow(0, 4, 4).abs().max().item<float>(), 0);
  const torch::Tensor wanted = torch::tensor(
      {{1.f, 0.f, 0.f}, {0.f, 1.f, 0.f}, {1.f, 0.f, 0.f}, {0.f, 1.f, 0.f}, {0.f, 0.f, 1.f}});
  EXPECT_TRUE(torch::equal(e.wanted.select(1, 0).narrow(0, 3, 5), wanted));
  EXPECT_TRUE(
      torch::equal(e.asked.select(1, 0), torch::tensor({0.f, 0.f, 0.f, 1.f, 1.f, 1.f, 1.f, 1.f})));
  // The shorter one is padded at its end, where nothing is asked.
  EXPECT_TRUE(
      torch::equal(e.asked.select(1, 1), torch::tensor({0.f, 0.f, 1.f, 1.f, 0.f, 0.f, 0.f, 0.f})));
}

TEST(BitSequences, ACurriculumGrowsToTheLongest) {
  std::vector<int64_t> words;
  for (int64_t epoch = 0; epoch < 5; ++epoch)
    words.push_back(machines::words_learned(epoch, /*curriculum=*/3, /*longest=*/8));
  EXPECT_EQ(words, (std::vector<int64_t>{2, 4, 6, 8, 8}));
  EXPECT_EQ(machines::words_learned(0, /*curriculum=*/0, /*longest=*/8), 8);
  EXPECT_EQ(machines::words_learned(0, /*curriculum=*/100, /*longest=*/8), 1);
}

TEST(BitSequences, MistakesAreNamed) {
  const auto said = [](std::string_view line, Job job, int64_t bits) -> std::string {
    try {
      machines::parsed(line, job, bits, "in", 3);
    } catch (const data::FileError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(said("01 1", Job::kCopy, 0), "in:3: expected words of 2 bits, found '1'");
  EXPECT_EQ(said("01 12", Job::kCopy, 0), "in:3: expected words of 2 bits, found '12'");
  EXPECT_EQ(said("011", Job::kCopy, 2), "in:3: expected words of 2 bits, found '011'");
  EXPECT_EQ(said(" ", Job::kCopy, 0), "in:3: a blank line, expected words of bits");
  EXPECT_EQ(said("01 x2", Job::kCopy, 0), "in:3: expected words of bits, found '01 x2'");
  EXPECT_EQ(
      said("01 10", Job::kRepeatCopy, 0),
      "in:3: expected words of bits and how often to say them, x2, at the end, found '01 10'");
  EXPECT_EQ(said("x2", Job::kRepeatCopy, 0),
            "in:3: expected at least one word of bits, found none");
  EXPECT_EQ(said("01 x0", Job::kRepeatCopy, 0), "in:3: 0 repeats, expected 1 to 1000");
  // Few words, said often: hours.
  EXPECT_EQ(said("0 1 1 0 1 x1000", Job::kRepeatCopy, 0)
                .find("in:3: with the answer, 5007 tokens, more than 4096"),
            0u);
}

class MemoryMachines : public test::Runs {
 protected:
  std::string answers(const std::string& name, const std::string& input,
                      std::vector<std::string>* notes = nullptr) const {
    systems::Run run = systems::open(base_ / name);
    std::istringstream lines(input);
    std::ostringstream out;
    Input given{lines, "input"};
    if (notes) given.noted = [notes](const std::string& note) { notes->push_back(note); };
    systems::predict(run, given, out);
    return out.str();
  }
  static double metric(const Json& report, const char* name) {
    return report.at("metrics").at(name).get<double>();
  }
};

const std::vector<std::string> kSmall = {"bits=3",    "longest=3", "rows=8",         "width=6",
                                         "hidden=24", "rate=0.01", "sequences=6000", "epochs=5"};

TEST_F(MemoryMachines, AnNtmLearnsToCopyAndAnswersWhatIsLongerThanItSaw) {
  const Json report = train("ntm", {.system = "ntm", .set = kSmall});
  // Guessing is wrong in half of the bits: 3 of a sequence.
  EXPECT_LT(metric(report, "wrong_bits"), 0.5);
  EXPECT_GT(metric(report, "wrong_bits_longer"), 0);  // counted apart
  EXPECT_GT(report.at("attention").at("hit_rate").get<double>(), 0.5);
  check_every_verb("ntm", "101 010\n");
  check_blank_line("ntm", "101 010\n");
  EXPECT_EQ(answers("ntm", "101 010\n001\n"), "101 010\n001\n");
  // Longer than trained, and than the memory: an answer of as many words, and a word about it.
  std::vector<std::string> notes;
  const std::string many = answers("ntm", "101 010 001 101 111 000 010 110 011\n", &notes);
  EXPECT_EQ(many.size(), 9 * 4u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "input:1: 9 words, the longest in training had 3");
}

TEST_F(MemoryMachines, ADncLearnsToRepeat) {
  const Json report =
      train("dnc", {.system = "dnc",
                    .set = {"bits=3", "longest=3", "repeats=2", "rows=8", "width=8", "hidden=24",
                            "rate=0.01", "sequences=4000", "epochs=4", "curriculum=1"}});
  // Guessing: 4.5 bits of a sequence, and the end of the answer.
  EXPECT_LT(metric(report, "wrong_bits"), 3.5);
  check_every_verb("dnc", "101 010 x2\n");
  std::vector<std::string> notes;
  answers("dnc", "101 x2\n101 x3\n", &notes);
  EXPECT_EQ(notes, std::vector<std::string>{"input:2: 3 repeats, the most in training were 2"});
  systems::Run run = systems::open(base_ / "dnc");
  std::istringstream one("101 x2\n");
  Input input{one, "input"};
  const auto pictures = systems::explain(run, &input);
  std::vector<std::string> titles;
  for (const explain::Explanation& picture : pictures)
    titles.push_back(picture.title.substr(0, picture.title.find(':')));
  EXPECT_EQ(titles, (std::vector<std::string>{"Written", "Read", "The memory", "Usage", "Links"}));
  // A word, the mark, two words of answer, the end; on the word's row both answers should look.
  EXPECT_EQ(pictures[0].queries.size(), 5u);
  EXPECT_EQ(pictures[0].keys.size(), 8u);
  ASSERT_TRUE(pictures[1].truth);
  ASSERT_EQ(pictures[1].truth->sure.size(), 2u);
  EXPECT_EQ(pictures[1].truth->sure[0].key, pictures[1].truth->sure[1].key);
  EXPECT_EQ(pictures[2].maps.size(), 5u);
}

// The paper's output takes the controller's state too, and was the only one at first.
TEST_F(MemoryMachines, ADncFromBeforeTheChoiceOfOutputOpens) {
  train("before",
        {.system = "dnc",
         .set = {"output=controller+reads", "bits=2", "longest=2", "sequences=200", "epochs=1"}});
  const std::string path = (base_ / "before/config.json").string();
  const std::string said = answers("before", "10 01 x2\n");
  Json config;
  std::ifstream(path) >> config;
  ASSERT_EQ(config.at("options").erase("output"), 1u);
  std::ofstream(path) << config.dump();
  sign_again("before");
  EXPECT_EQ(answers("before", "10 01 x2\n"), said);
}

TEST_F(MemoryMachines, AMemoryOfOneRowRuns) {
  for (const std::string system : {"ntm", "dnc"}) {
    const Json report = train(
        system,
        {.system = system, .set = {"rows=1", "bits=2", "longest=2", "sequences=200", "epochs=1"}});
    EXPECT_GT(metric(report, "loss"), 0);
    check_every_verb(system, system == "ntm" ? "10 01\n" : "10 01 x2\n");
  }
}

TEST_F(MemoryMachines, ADncAnswersQuestionsAboutStories) {
  const Json report =
      train("stories",
            {.system = "dnc",
             .set = {"task=stories", "stories=160", "epochs=2", "hidden=16", "line_width=16"}});
  // Two tasks, of one supporting line and of two, whose mean is the error.
  EXPECT_TRUE(report.at("metrics").contains("failed_tasks"));
  EXPECT_GT(report.at("attention").at("hit_rate").get<double>(), 0);
  const std::string story = "Mary went to the kitchen.\nMary took the milk.\nWhere is the milk?\n";
  check_every_verb("stories", story);
  std::vector<std::string> notes;
  EXPECT_EQ(answers("stories", story + "\nWhere is Zorro?\n", &notes).find('\n'),
            answers("stories", story).find('\n'));
  EXPECT_EQ(notes, (std::vector<std::string>{"input:5: never seen in training: 'zorro'",
                                             "input:5: no story before the question"}));
  std::string longer;
  for (int i = 0; i < 17; ++i) longer += "Mary went to the kitchen.\n";
  notes.clear();
  answers("stories", longer + "Where is Mary?\n", &notes);
  EXPECT_EQ(notes,
            std::vector<std::string>{"input:18: a story of 17 lines: the memory has 16 rows"});
  // Three lines, one of them the question, and two steps to think.
  systems::Run run = systems::open(base_ / "stories");
  std::istringstream one(story);
  Input input{one, "input"};
  const auto pictures = systems::explain(run, &input);
  ASSERT_EQ(pictures.size(), 5u);
  EXPECT_EQ(pictures[1].queries.size(), 5u);
  EXPECT_EQ(pictures[1].queries[2].text, "Where is the milk?");
}

TEST_F(MemoryMachines, FilesOfOnesOwn) {
  std::ofstream file(base_ / "own.txt");
  data::Random random(4);
  for (int i = 0; i < 200; ++i)
    file << machines::text_of(machines::draw(random, {.bits = 4, .longest = 5}), Job::kCopy)
         << "\n";
  file.close();
  const std::string path = (base_ / "own.txt").string();
  train("own", {.system = "ntm", .data = path, .set = {"epochs=1", "hidden=8"}});
  EXPECT_EQ(answers("own", "1010 0101\n").size(), 10u);
  // Whoever asks with words of another width is told.
  EXPECT_EQ(said([&] { answers("own", "101\n"); }),
            "input:1: expected words of 4 bits, found '101'");
  std::ofstream(base_ / "long.txt") << "1010 0101 1111 0000 1010 0101 1100\n";
  const Json judged = systems::evaluate(base_ / "own", (base_ / "long.txt").string(), "test");
  EXPECT_TRUE(judged.at("metrics").contains("wrong_bits_longer"));
  EXPECT_FALSE(judged.at("metrics").contains("wrong_bits")) << "no sequence was short enough";
}

}  // namespace
}  // namespace fovea::systems
