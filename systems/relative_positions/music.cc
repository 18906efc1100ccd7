// Timing in music: four voices as one row of tokens, each predicted from those before it. Pieces of
// the user's, or canons: each voice repeats the one above it, always at the same distance.
#include <fmt/format.h>

#include <limits>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/formats/text.h"
#include "data/music/chorales.h"
#include "data/music/midi.h"
#include "systems/relative_positions/generated.h"
#include "systems/relative_positions/sequence_task.h"
#include "systems/relative_positions/tasks.h"
#include "systems/relative_positions/view.h"
#include "train/answers.h"
#include "train/interrupt.h"

namespace fovea::systems::relative_positions {
namespace {

using data::Chorale;

constexpr int64_t kCanonSixteenths = 64, kMusicClip = 128, kShownPrompt = 16, kShownAll = 48;

class Music : public SequenceTask {
 public:
  using SequenceTask::SequenceTask;

  void read(const Source& source) override {
    splits_ = {};
    if (source.path.empty())
      generate(source.seed);
    else
      read_file(source);
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
      of(split).clear();
      for (const int64_t piece : splits_.of(split)) add_windows(of(split), at(piece));
    }
  }
  std::string read_in_words() const override {
    return fmt::format("{} pieces: {} for training, {} for validation, {} for test", pieces_.size(),
                       splits_.train.size(), splits_.validation.size(), splits_.test.size());
  }
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }

  // A line is the beginning of a piece, four voices with tabs between them; a blank line is none.
  void predict(Input input, std::ostream& out) override {
    const bool midi = options_.text("form") == "midi";
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      if (midi && number > 1)
        throw data::FileError(input.name, number,
                              "a second piece, expected one line for a MIDI file");
      Chorale begun;
      if (!data::trimmed(line).empty()) begun = data::parse_chorale(line, input.name, number);
      const Chorale whole = continued(begun, options_.integer("sixteenths"));
      return {
          midi ? data::midi_of(whole, options_.integer("tempo")) : data::chorale_text(whole) + "\n",
          [whole] {
            const std::string text = data::chorale_text(whole);
            Json fields;
            size_t from = 0;
            for (const char* voice : {"soprano", "alto", "tenor", "bass"}) {
              const size_t end = text.find('\t', from);
              fields[voice] = text.substr(from, end - from);
              from = end + 1;
            }
            return fields;
          }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<Chorale> begun;
    if (input != nullptr)
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        begun.push_back(data::parse_chorale(line, input->name, number));
      });
    else if (!splits_.test.empty())
      begun.push_back(first(at(splits_.test[0]), kShownPrompt));
    std::vector<explain::Explanation> out;
    for (const Chorale& piece : begun) {
      const Chorale whole =
          continued(piece, std::max<int64_t>(kShownAll - piece.sixteenths(), kShownPrompt));
      out.push_back(piano_roll(*model_, whole, piece.sixteenths()));
      Shown shown{.title = "Where each token looks"};
      std::vector<int64_t> inputs = read_from(whole).inputs;
      inputs.resize(std::min<size_t>(inputs.size(), 2 * kShownTokens));
      for (const int64_t token : inputs) shown.tokens.push_back(text_of(token));
      shown.deciding = deciding_of(whole);
      for (explain::Explanation& one : pictures(*model_, tensor_of(inputs), shown))
        out.push_back(std::move(one));
    }
    return out;
  }

  Written write() const override {
    Written out{.data = "canons.tsv", .truth = "truth.jsonl, the token that each follows from"};
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest})
      for (const int64_t piece : splits_.of(split)) {
        out.files["canons.tsv"] += fmt::format("{}\tcanon {}\t{}\n", data::name_of(split),
                                               piece + 1, data::chorale_text(at(piece)));
        out.files["truth.jsonl"] += Json{{"keys", deciding_of(at(piece))}}.dump() + "\n";
      }
    return out;
  }

 protected:
  int64_t vocabulary() const override { return data::kMusicTokens; }
  int64_t clip() const override {
    const int64_t given = options_.integer("farthest");
    return given > 0 ? given : kMusicClip;
  }

 private:
  const Chorale& at(int64_t piece) const { return pieces_[static_cast<size_t>(piece)]; }

  void generate(uint64_t seed) {
    canons_ = true;
    pieces_.clear();
    data::Random random(data::mix(seed, 0x2902));
    const int64_t all = options_.integer("canons");
    for (int64_t i = 0; i < all; ++i) pieces_.push_back(draw_canon(random, kCanonSixteenths));
    splits_ =
        data::in_order({.train = all - 2 * (all / 5), .validation = all / 5, .test = all / 5});
  }

  void read_file(const Source& source) {
    canons_ = false;
    data::Chorales read = data::read_chorales(source.path);
    pieces_ = std::move(read.pieces);
    std::vector<uint64_t> keys;
    for (const Chorale& piece : pieces_) keys.push_back(data::item_key(data::chorale_text(piece)));
    const bool drawn = source.all_test || source.folds > 0;
    if (drawn) {
      data::SplitRequest request = split_request(source);
      request.keys = keys;
      splits_ = data::split(static_cast<int64_t>(pieces_.size()), request);
    } else {
      for (size_t i = 0; i < pieces_.size(); ++i)
        splits_.of(read.parts[i]).push_back(static_cast<int64_t>(i));
      if (splits_.train.empty())
        throw data::FileError(source.path, 0, "no piece marked train, expected at least one");
    }
    splits_.keys = std::move(keys);
  }

  // Windows begin where a sixteenth does, each with the start token.
  void add_windows(std::vector<Sequence>& to, const Chorale& piece) const {
    const int64_t step = std::max<int64_t>(options_.integer("context") / data::kVoices, 1);
    for (int64_t from = 0; from < piece.sixteenths(); from += step) {
      Chorale part;
      part.tokens.assign(
          piece.tokens.begin() + from * data::kVoices,
          piece.tokens.begin() + std::min(from + step, piece.sixteenths()) * data::kVoices);
      to.push_back(read_from(part));
      if (canons_ && from == 0) to.back().deciding = deciding_of(part);
    }
  }
  static Sequence read_from(const Chorale& part) {
    Sequence out;
    out.inputs = {data::kStartToken};
    out.inputs.insert(out.inputs.end(), part.tokens.begin(), part.tokens.end() - 1);
    out.targets = part.tokens;
    return out;
  }
  // In a canon: for each note of a follower the input that holds what it repeats.
  std::vector<int64_t> deciding_of(const Chorale& piece) const {
    std::vector<int64_t> out(piece.tokens.size(), -1);
    if (!canons_) return out;
    for (int64_t i = 0; i < static_cast<int64_t>(piece.tokens.size()); ++i)
      if (i % data::kVoices > 0 && i / data::kVoices >= kCanonDelay * (i % data::kVoices) &&
          data::pitch_of_token(piece.tokens[static_cast<size_t>(i)]) > 0)
        out[static_cast<size_t>(i)] = i - kCanonDistance + 1;
    return out;
  }

  static Chorale first(const Chorale& piece, int64_t sixteenths) {
    Chorale out;
    out.tokens.assign(
        piece.tokens.begin(),
        piece.tokens.begin() + std::min(sixteenths, piece.sixteenths()) * data::kVoices);
    return out;
  }
  static std::string text_of(int64_t token) {
    return token == data::kStartToken  ? "start"
           : token == data::kHoldToken ? "-"
                                       : std::to_string(data::pitch_of_token(token));
  }

  // So many more sixteenths, drawn token by token; earlier ones are read from the cache.
  Chorale continued(const Chorale& begun, int64_t sixteenths) {
    data::check_count(data::Limit::kSentence, begun.tokens.size());
    const torch::NoGradGuard no_grad;
    data::Random random(static_cast<uint64_t>(options_.integer("sample_seed")));
    std::vector<int64_t> read = {data::kStartToken};
    read.insert(read.end(), begun.tokens.begin(), begun.tokens.end());
    SequenceCache cache;
    torch::Tensor scores = model_->step(tensor_of(read), cache)[0][-1];
    Chorale out = begun;
    const auto end = static_cast<size_t>((begun.sixteenths() + sixteenths) * data::kVoices);
    while (out.tokens.size() < end) {
      train::stop_if_interrupted("while writing music");
      out.tokens.push_back(drawn(scores, static_cast<int64_t>(out.tokens.size()), random));
      if (out.tokens.size() < end)
        scores = model_->step(tensor_of({out.tokens.back()}), cache)[0][-1];
    }
    return out;
  }
  // The token at `place` of a piece; in the first sixteenth nothing can go on.
  int64_t drawn(const torch::Tensor& scores, int64_t place, data::Random& random) const {
    torch::Tensor s = scores.to(torch::kCPU, torch::kDouble).clone();
    s[data::kStartToken] = -std::numeric_limits<double>::infinity();
    if (place < data::kVoices) s[data::kHoldToken] = -std::numeric_limits<double>::infinity();
    const double temperature = options_.number("temperature");
    if (temperature == 0) return s.argmax().item<int64_t>();
    const torch::Tensor sums = (s / temperature).softmax(0).cumsum(0);
    const double at = random.uniform() * sums[-1].item<double>();
    // The last token that can be drawn, where rounding leaves none.
    return std::min((sums <= at).sum().item<int64_t>(), data::kMusicTokens - 1);
  }

  bool canons_ = false;
  std::vector<Chorale> pieces_;
  data::Splits splits_;
};

}  // namespace

std::unique_ptr<Task> make_music(const RunOptions& run_options) {
  return std::make_unique<Music>(run_options);
}

}  // namespace fovea::systems::relative_positions
