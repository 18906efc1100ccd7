// Timing: at each position say which symbol stood so many positions back. Learned on short rows and
// tested on longer ones, at positions that were never seen in training.
#include <fmt/format.h>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/files/part_named.h"
#include "data/formats/text.h"
#include "data/random.h"
#include "data/split.h"
#include "systems/relative_positions/sequence_task.h"
#include "systems/relative_positions/tasks.h"
#include "systems/relative_positions/view.h"
#include "train/answers.h"

namespace fovea::systems::relative_positions {
namespace {

constexpr const char* kSymbols = "abcdefghijklmnopqrstuvwxyz";
constexpr int64_t kPaperClip = 16;

class Copy : public SequenceTask {
 public:
  using SequenceTask::SequenceTask;

  void read(const Source& source) override {
    generated_ = source.path.empty();
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) of(split).clear();
    if (source.path.empty())
      generate(source.seed);
    else
      read_file(source);
  }
  std::string read_in_words() const override {
    return fmt::format("{} rows to learn from, {} to choose by, {} to judge",
                       of(Split::kTrain).size(), of(Split::kValidation).size(),
                       of(Split::kTest).size());
  }

  Written write() const override {
    Written out{.data = "rows.tsv", .truth = "the distance, which is the same for all"};
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest})
      for (const Sequence& row : of(split))
        out.files["rows.tsv"] += std::string(data::name_of(split)) + "\t" + letters_of(row) + "\n";
    return out;
  }
  std::vector<uint64_t> item_keys(Split split) const override {
    std::vector<uint64_t> out;
    if (!generated_)
      for (const Sequence& row : of(split)) out.push_back(data::item_key(letters_of(row)));
    return out;
  }

  // A line is a row of symbols; the answer says for each what stood so far back, `.` where nothing
  // did.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      const torch::NoGradGuard no_grad;
      const Sequence row = asked(ids_of(line, input.name, number));
      const torch::Tensor best = model_->forward(tensor_of(row.inputs)).argmax(-1)[0].cpu();
      std::string answer;
      for (size_t p = 0; p < row.inputs.size(); ++p) {
        if (p > 0) answer += ' ';
        answer +=
            row.deciding[p] < 0 ? '.' : kSymbols[best[static_cast<int64_t>(p)].item<int64_t>()];
      }
      return {answer + "\n"};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<Sequence> rows;
    if (input != nullptr) {
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        rows.push_back(asked(ids_of(line, input->name, number)));
      });
    } else if (!of(Split::kTest).empty()) {
      rows.push_back(of(Split::kTest)[0]);
      rows[0].inputs.resize(std::min<size_t>(rows[0].inputs.size(), kShownTokens));
    }
    std::vector<explain::Explanation> out;
    for (const Sequence& row : rows) {
      Shown shown{.title = fmt::format("Which symbol stood {} back", distance())};
      for (const int64_t token : row.inputs) shown.tokens.emplace_back(1, kSymbols[token]);
      shown.deciding = row.deciding;
      for (explain::Explanation& one : pictures(*model_, tensor_of(row.inputs), shown))
        out.push_back(std::move(one));
    }
    return out;
  }

 protected:
  int64_t vocabulary() const override { return options_.integer("symbols"); }
  int64_t clip() const override {
    const int64_t given = options_.integer("farthest");
    return given > 0 ? given : kPaperClip;
  }

 private:
  static std::string letters_of(const Sequence& row) {
    std::string out;
    for (const int64_t token : row.inputs) {
      if (!out.empty()) out += ' ';
      out += kSymbols[token];
    }
    return out;
  }
  int64_t distance() const { return options_.integer("distance"); }
  void generate(uint64_t seed) {
    data::Random random(data::mix(seed, 0x2901));
    const int64_t rows = options_.integer("rows"), length = options_.integer("length");
    for (const auto& [split, count, symbols] :
         {std::tuple(Split::kTrain, rows, length), std::tuple(Split::kValidation, rows / 8, length),
          std::tuple(Split::kTest, rows / 4, options_.integer("test_length"))})
      for (int64_t i = 0; i < count; ++i) {
        std::vector<int64_t> row;
        for (int64_t p = 0; p < symbols; ++p)
          row.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary()))));
        of(split).push_back(asked(std::move(row)));
      }
  }
  // split<TAB>letters
  void read_file(const Source& source) {
    data::each_line(
        data::read_file(source.path), source.path, [&](size_t number, std::string_view line) {
          const size_t tab = line.find('\t');
          if (tab == std::string_view::npos)
            throw data::FileError(source.path, number,
                                  fmt::format("{}, expected split<TAB>letters", data::shown(line)));
          const Split split = source.all_test
                                  ? Split::kTest
                                  : data::part_named(line.substr(0, tab), source.path, number);
          of(split).push_back(asked(ids_of(line.substr(tab + 1), source.path, number)));
        });
    if (of(Split::kTrain).empty() && !source.all_test)
      throw data::FileError(source.path, 0, "no row marked train, expected at least one");
  }
  Sequence asked(std::vector<int64_t> row) const {
    Sequence out;
    for (int64_t p = 0; p < static_cast<int64_t>(row.size()); ++p) {
      const bool known = p >= distance();
      out.targets.push_back(known ? row[static_cast<size_t>(p - distance())] : kNoTarget);
      out.deciding.push_back(known ? p - distance() : -1);
    }
    out.inputs = std::move(row);
    return out;
  }
  std::vector<int64_t> ids_of(std::string_view line, const std::string& name, size_t number) const {
    std::vector<int64_t> out;
    for (const std::string& word : data::words(line)) {
      const int64_t id = word.size() == 1 ? word[0] - 'a' : -1;
      if (id < 0 || id >= vocabulary())
        throw data::FileError(name, number,
                              fmt::format("{}, expected a letter from a to {}", data::shown(word),
                                          kSymbols[vocabulary() - 1]));
      out.push_back(id);
    }
    if (out.empty()) throw data::FileError(name, number, "a blank line, expected letters");
    data::check_count(data::Limit::kSentence, out.size());
    return out;
  }

  bool generated_ = true;
};

}  // namespace

std::unique_ptr<Task> make_copy(const RunOptions& run_options) {
  return std::make_unique<Copy>(run_options);
}

}  // namespace fovea::systems::relative_positions
