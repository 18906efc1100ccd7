#include "systems/bert/answers.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/text.h"
#include "train/answers.h"
#include "train/descent/finite.h"
#include "train/usage_error.h"

namespace fovea::systems::bert {

bool is_asked(const OptionValues& options, const std::string& answer,
              const std::string& otherwise) {
  const std::string& asked = options.text("answer");
  return (asked == "auto" ? otherwise : asked) == answer;
}

void answer_in_batches(const Input& input, std::ostream& out, const LineAnswers& how) {
  const torch::NoGradGuard no_grad;
  const auto read = [&](size_t number, const std::string& line) {
    Sequence sequence;
    data::visit_line(line, input.name, number, [&](size_t, std::string_view text) {
      if (data::trimmed(text).empty())
        throw data::FileError(input.name, number, "a blank line, expected a text");
      sequence = how.read(text);
    });
    return sequence;
  };
  data::LineReader reader(input.stream, input.name);
  size_t number = 1;
  for (auto lines = reader.next_lines(how.at_once); !lines.empty();
       lines = reader.next_lines(how.at_once)) {
    std::vector<std::optional<Sequence>> all;  // empty if a line is refused
    std::vector<const Sequence*> asked;
    for (size_t i = 0; i < lines.size(); ++i) {
      try {
        all.emplace_back(read(number + i, lines[i]));
      } catch (const UsageError&) {
        throw;
      } catch (const InvalidArgument&) {
        all.emplace_back();
      }
    }
    for (const auto& one : all)
      if (one) asked.push_back(&*one);
    const std::vector<std::string> answers =
        asked.empty() ? std::vector<std::string>() : how.answers(asked);
    size_t at = 0;
    for (size_t i = 0; i < lines.size(); ++i)
      answer_line(
          input, number + i, lines[i], out,
          [&](size_t line_number, std::string_view line, std::ostream& to) {
            if (!all[i]) read(line_number, std::string(line));  // says what is wrong with it
            if (all[i]->cut > 0 && input.noted)
              input.noted(fmt::format("{}:{}: longer than the context; {} tokens are not seen",
                                      input.name, line_number, all[i]->cut));
            to << answers[at++] << '\n';
          });
    number += lines.size();
  }
}

std::vector<std::string> embedded_lines(Start& start,
                                        const std::vector<const Sequence*>& sequences) {
  const torch::Tensor vectors =
      train::finite(start.model()->embeddings(packed(sequences, start.device())), "embeddings")
          .cpu()
          .contiguous();
  std::vector<std::string> out;
  for (int64_t i = 0; i < vectors.size(0); ++i) {
    const float* row = vectors.const_data_ptr<float>() + i * vectors.size(1);
    fmt::memory_buffer line;
    for (int64_t j = 0; j < vectors.size(1); ++j)
      fmt::format_to(std::back_inserter(line), "{}{:.8g}", j == 0 ? "" : " ", row[j]);
    out.push_back(fmt::to_string(line));
  }
  return out;
}

std::vector<std::string> state_lines(Start& start, const std::vector<const Sequence*>& sequences) {
  const torch::Tensor states =
      train::finite(start.model()->encoder(packed(sequences, start.device())), "states")
          .cpu()
          .contiguous();
  const float* row = states.const_data_ptr<float>();
  std::vector<std::string> out;
  for (const Sequence* one : sequences) {
    Json tokens = Json::array(), rows = Json::array();
    for (const int64_t id : one->ids) {
      tokens.push_back(start.pieces().piece(id));
      rows.push_back(std::vector<float>(row, row + states.size(1)));
      row += states.size(1);
    }
    out.push_back(Json{{"tokens", std::move(tokens)}, {"states", std::move(rows)}}.dump());
  }
  return out;
}

std::optional<std::vector<std::string>> common_lines(Start& start, const OptionValues& options,
                                                     const std::vector<const Sequence*>& sequences,
                                                     const std::string& otherwise) {
  if (is_asked(options, "embed", otherwise)) return embedded_lines(start, sequences);
  if (is_asked(options, "states", otherwise)) return state_lines(start, sequences);
  return {};
}

std::vector<int64_t> places_to_fill(Start& start, const Sequence& sequence) {
  if (!start.model()->heads().fill)
    throw UsageError(
        "answer: fill, expected embed: the model has no head that fills in words "
        "(cls.predictions in a folder)");
  const int64_t mask = start.pieces().number("[MASK]");
  std::vector<int64_t> places;
  for (size_t i = 0; i < sequence.ids.size(); ++i)
    if (sequence.ids[i] == mask) places.push_back(static_cast<int64_t>(i));
  if (places.empty())
    throw InvalidArgument(
        sequence.cut > 0 ? fmt::format("no [MASK] among the first {} tokens, which the context "
                                       "holds; expected at least one to fill in",
                                       sequence.ids.size())
                         : std::string("no [MASK], expected at least one to fill in"));
  return places;
}

std::vector<std::vector<Guess>> guesses(Start& start, const Sequence& sequence, int64_t count) {
  const text::WordPiece& pieces = start.pieces();
  const std::vector<int64_t> places = places_to_fill(start, sequence);
  const torch::Tensor states = start.model()->encoder(packed(sequence, start.device()));
  torch::Tensor scores =
      start.model()
          ->words_at(states, torch::tensor(places, torch::kLong).to(start.device()))
          .cpu()
          .to(torch::kDouble)
          .narrow(1, 0, pieces.size());
  for (int64_t id = 0; id < pieces.size(); ++id)
    if (pieces.is_special(id)) scores.select(1, id).fill_(-std::numeric_limits<double>::infinity());
  const auto [best, at] = scores.softmax(1).topk(std::min(count, pieces.size()));
  std::vector<std::vector<Guess>> out(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    for (int64_t k = 0; k < best.size(1); ++k) {
      const Guess guess{at[static_cast<int64_t>(i)][k].item<int64_t>(),
                        best[static_cast<int64_t>(i)][k].item<double>()};
      if (!pieces.is_special(guess.piece)) out[i].push_back(guess);
    }
  return out;
}

std::vector<std::string> filled_lines(Start& start, const std::vector<const Sequence*>& sequences,
                                      int64_t count) {
  std::vector<std::string> out;
  for (const Sequence* sequence : sequences) {
    std::string line;
    for (const auto& place : guesses(start, *sequence, count)) {
      if (!line.empty()) line += " | ";
      for (size_t k = 0; k < place.size(); ++k)
        line += fmt::format("{}{} {:.4f}", k == 0 ? "" : "\t", start.pieces().piece(place[k].piece),
                            place[k].probability);
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace fovea::systems::bert
