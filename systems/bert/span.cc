// Questions whose answer is a stretch of a text: a score for its first and for its last token.
#include <fmt/format.h>
#include <torch/torch.h>

#include <limits>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/files/json.h"
#include "data/formats/text.h"
#include "data/random.h"
#include "systems/bert/documents.h"
#include "systems/bert/start.h"
#include "systems/bert/tasks.h"
#include "systems/bert/view.h"
#include "train/descent/finite.h"
#include "train/descent/fit.h"
#include "train/descent/optimiser.h"
#include "train/descent/recipe.h"
#include "train/interrupt.h"

namespace fovea::systems::bert {
namespace {

constexpr int64_t kLongestAnswer = 30;  // tokens

struct Place {
  int64_t first = 0, last = 0;  // in the sequence
};

// `question<TAB>context<TAB>answer`, or JSON Lines of "question", "context", "answer" and perhaps
// "start", the answer's first byte in the context.
Question parse_question(std::string_view line, const std::string& path, size_t number) {
  Question out;
  const auto refuse = [&](const std::string& what) { throw data::FileError(path, number, what); };
  out.start = -1;
  if (line.starts_with('{')) {
    const data::Json json = data::json_in(line);
    const auto text = [&](const char* name) {
      if (!json.is_object() || !json.contains(name) || !json[name].is_string())
        refuse(fmt::format("{}: missing, expected a text", name));
      return json[name].get<std::string>();
    };
    out.question = text("question"), out.context = text("context"), out.answer = text("answer");
    if (json.contains("start")) {
      if (!json["start"].is_number_unsigned()) refuse("start: expected a number of bytes");
      out.start = json["start"].get<int64_t>();
    }
  } else {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (first == line.npos || second == line.npos)
      refuse("one or two columns, expected question, context and answer with tabs between");
    out.question = line.substr(0, first);
    out.context = line.substr(first + 1, second - first - 1);
    out.answer = line.substr(second + 1);
  }
  if (out.answer.empty()) refuse("answer: empty, expected a part of the context");
  const size_t found =
      out.start >= 0 && static_cast<size_t>(out.start) <= out.context.size()
          ? (out.context.substr(static_cast<size_t>(out.start)).starts_with(out.answer)
                 ? static_cast<size_t>(out.start)
                 : std::string::npos)
          : out.context.find(out.answer);
  if (found == std::string::npos)
    refuse(fmt::format("answer: {} is not in the context there", data::shown(out.answer)));
  out.start = static_cast<int64_t>(found);
  return out;
}

class Spans : public BertTask<GradientTask> {
 public:
  explicit Spans(const RunOptions& run_options)
      : BertTask(run_options), run_options_(run_options), options_(run_options_.options) {}

  void read(const Source& source) override {
    questions_.clear(), items_.clear();
    data::SplitRequest request = split_request(source);
    if (source.path.empty()) {
      for (int64_t i = 0; i < options_.integer("documents"); ++i)
        questions_.push_back(draw_question(data::mix(source.seed, static_cast<uint64_t>(i))));
    } else {
      data::each_line(data::read_file(source.path), source.path,
                      [&](size_t number, std::string_view line) {
                        if (!data::trimmed(line).empty())
                          questions_.push_back(parse_question(line, source.path, number));
                      });
    }
    for (const Question& one : questions_)
      request.keys.push_back(data::item_key(one.question + "\n" + one.context));
    splits_ = data::split(static_cast<int64_t>(questions_.size()), request);
  }
  std::string read_in_words() const override {
    return fmt::format("{} questions: {} for training, {} for validation, {} for test",
                       questions_.size(), splits_.train.size(), splits_.validation.size(),
                       splits_.test.size());
  }
  void prepare() override {
    std::vector<std::string> lines;
    for (const int64_t item : splits_.train) {
      lines.push_back(questions_[static_cast<size_t>(item)].question);
      lines.push_back(questions_[static_cast<size_t>(item)].context);
    }
    start_.prepare(lines, {.span = true});
  }

  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }
  std::vector<int64_t> lengths() const override {
    std::vector<int64_t> out;
    for (const int64_t item : splits_.train)
      out.push_back(static_cast<int64_t>(encoded(item).sequence.ids.size()));
    return out;
  }
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }
  Loss loss(const fovea::Batch& batch) override {
    std::vector<const Sequence*> some;
    std::vector<int64_t> first, last;
    for (const int64_t position : batch.items) {
      const Encoded& one = encoded(splits_.train[static_cast<size_t>(position)]);
      some.push_back(&one.sequence);
      first.push_back(one.answer.first), last.push_back(one.answer.last);
    }
    const torch::Tensor all = padded_scores(some);
    const auto entropy = [&](int64_t which, const std::vector<int64_t>& labels) {
      return torch::nn::functional::cross_entropy(
          all.select(2, which), torch::tensor(labels, torch::kLong).to(start_.device()));
    };
    return {(entropy(0, first) + entropy(1, last)) / 2, static_cast<int64_t>(first.size())};
  }
  Evaluation evaluate(Split) override;
  void predict(Input, std::ostream&) override;
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override {
    Written out{.data = "questions.jsonl", .truth = "questions.jsonl, where the answer begins"};
    for (const Question& one : questions_)
      out.files["questions.jsonl"] += Json{{"question", one.question},
                                           {"context", one.context},
                                           {"answer", one.answer},
                                           {"start", one.start}}
                                          .dump() +
                                      "\n";
    return out;
  }

 private:
  struct Encoded {
    Sequence sequence;
    Place answer;
  };
  const Encoded& encoded(int64_t item) const;
  Sequence sequence_of(std::string_view question, std::string_view context) const {
    return start_.sequences().two(start_.pieces().encode(question),
                                  start_.pieces().encode(context));
  }
  // [B, longest, 2]; beyond a sequence's end minus infinity.
  torch::Tensor padded_scores(const std::vector<const Sequence*>& some);
  // The best place in the second part, first token before last, and its probability.
  std::vector<std::pair<Place, double>> places(const std::vector<const Sequence*>& some);
  std::string text_of(const Sequence& sequence, const Place& place) const;

  const RunOptions run_options_;
  const OptionValues& options_;
  std::vector<Question> questions_;
  data::Splits splits_;
  mutable std::vector<std::optional<Encoded>> items_;  // made when first asked for
};

const Spans::Encoded& Spans::encoded(int64_t item) const {
  items_.resize(questions_.size());
  auto& out = items_[static_cast<size_t>(item)];
  if (out) return *out;
  const Question& one = questions_[static_cast<size_t>(item)];
  out.emplace(Encoded{.sequence = sequence_of(one.question, one.context), .answer = {}});
  const auto before = static_cast<int64_t>(
      start_.pieces()
          .encode(std::string_view(one.context).substr(0, static_cast<size_t>(one.start)))
          .size());
  const auto length = static_cast<int64_t>(start_.pieces().encode(one.answer).size());
  const auto end = static_cast<int64_t>(out->sequence.ids.size()) - 1;
  out->answer.first = static_cast<int64_t>(out->sequence.second) + before;
  out->answer.last = out->answer.first + std::max<int64_t>(length, 1) - 1;
  // The answer was cut off with the end of the context: then [CLS] is the answer, as in SQuAD 2.
  if (out->answer.last >= end) out->answer = {};
  return *out;
}

torch::Tensor Spans::padded_scores(const std::vector<const Sequence*>& some) {
  const nn::BertInput input = packed(some, start_.device());
  const torch::Tensor scores = start_.model()->span(start_.model()->encoder(input));
  size_t longest = 0;
  std::vector<int64_t> places;
  for (const Sequence* one : some) longest = std::max(longest, one->ids.size());
  for (size_t b = 0; b < some.size(); ++b)
    for (size_t i = 0; i < some[b]->ids.size(); ++i)
      places.push_back(static_cast<int64_t>(b * longest + i));
  const auto rows = static_cast<int64_t>(some.size()), width = static_cast<int64_t>(longest);
  return torch::full({rows * width, 2}, -std::numeric_limits<float>::infinity(), scores.options())
      .index_copy(0, torch::tensor(places, torch::kLong).to(start_.device()), scores)
      .view({rows, width, 2});
}

std::vector<std::pair<Place, double>> Spans::places(const std::vector<const Sequence*>& some) {
  const torch::Tensor p = padded_scores(some).to(torch::kDouble).softmax(1).cpu().contiguous();
  std::vector<std::pair<Place, double>> out;
  for (size_t b = 0; b < some.size(); ++b) {
    const double* row = p.const_data_ptr<double>() + static_cast<int64_t>(b) * p.size(1) * 2;
    const auto end = static_cast<int64_t>(some[b]->ids.size()) - 1;
    Place best;
    double most = -1;
    for (auto first = static_cast<int64_t>(some[b]->second); first < end; ++first)
      for (int64_t last = first; last < std::min(end, first + kLongestAnswer); ++last)
        if (const double value = row[2 * first] * row[2 * last + 1]; value > most)
          most = value, best = {first, last};
    out.emplace_back(best, std::max(most, 0.0));
  }
  return out;
}

std::string Spans::text_of(const Sequence& sequence, const Place& place) const {
  std::string out;
  const std::string& continuing = start_.pieces().table().continuing;
  for (int64_t i = place.first; i <= place.last; ++i) {
    std::string_view piece = start_.pieces().piece(sequence.ids[static_cast<size_t>(i)]);
    const bool inside = piece.starts_with(continuing);
    if (inside) piece.remove_prefix(continuing.size());
    if (!out.empty() && !inside) out += ' ';
    out += piece;
  }
  return out;
}

Evaluation Spans::evaluate(Split split) {
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t>& all = splits_.of(split);
  Evaluation out;
  out.items = static_cast<int64_t>(all.size());
  if (all.empty()) {
    out.notes.push_back("no items to evaluate, so no figures");
    return out;
  }
  if (!start_.model()->heads().span) {
    out.notes.push_back("no head says where answers are, so no figures");
    return out;
  }
  std::vector<int64_t> lengths;
  for (const int64_t item : all)
    lengths.push_back(static_cast<int64_t>(encoded(item).sequence.ids.size()));
  double exact = 0, overlap = 0, loss = 0;
  const int64_t at_once = 2 * train::recipe_of(options_).batch;
  for (const auto& batch : data::ordered_batches(out.items, lengths, {.items = at_once})) {
    train::stop_if_interrupted("while judging");
    std::vector<const Sequence*> some;
    for (const int64_t i : batch) some.push_back(&encoded(all[static_cast<size_t>(i)]).sequence);
    const torch::Tensor scores = padded_scores(some).to(torch::kDouble).log_softmax(1).cpu();
    const auto found = places(some);
    for (size_t b = 0; b < batch.size(); ++b) {
      const Place &is = found[b].first,
                  &should = encoded(all[static_cast<size_t>(batch[b])]).answer;
      const auto row = static_cast<int64_t>(b);
      loss -= (scores[row][should.first][0] + scores[row][should.last][1]).item<double>() / 2;
      exact += is.first == should.first && is.last == should.last;
      const double common = static_cast<double>(std::max<int64_t>(
          0, std::min(is.last, should.last) - std::max(is.first, should.first) + 1));
      overlap +=
          2 * common / static_cast<double>(is.last - is.first + should.last - should.first + 2);
    }
  }
  const auto count = static_cast<double>(all.size());
  out.metrics = {{"exact", exact / count}, {"f1", overlap / count}, {"loss", loss / count}};
  return out;
}

void Spans::predict(Input input, std::ostream& out) {
  for (const char* other : {"fill", "class"})
    if (is_asked(options_, other, "span"))
      throw UsageError(fmt::format(
          "answer: {}, expected span, embed or states: this run has learned where answers are",
          other));
  answer_in_batches(input, out,
                    {.at_once = static_cast<size_t>(train::recipe_of(options_).batch),
                     .read =
                         [&](std::string_view line) {
                           if (is_asked(options_, "span", "span") && line.find('\t') == line.npos)
                             throw InvalidArgument(
                                 "one column, expected question and context with a tab between");
                           return start_.sequences().line(line);
                         },
                     .answers =
                         [&](const std::vector<const Sequence*>& some) {
                           if (auto common = common_lines(start_, options_, some, "span"))
                             return *common;
                           std::vector<std::string> lines;
                           const auto found = places(some);
                           for (size_t i = 0; i < some.size(); ++i)
                             lines.push_back(fmt::format(
                                 "{}\t{:.4f}", data::visible(text_of(*some[i], found[i].first)),
                                 found[i].second));
                           return lines;
                         }});
}

std::vector<explain::Explanation> Spans::explain(Input* input) {
  const torch::NoGradGuard no_grad;
  std::vector<explain::Explanation> all;
  const auto show = [&](const Sequence& sequence, const std::string& title) {
    std::string outcome;
    if (start_.model()->heads().span && sequence.second > 0) {
      const auto [place, p] = places({&sequence})[0];
      outcome = fmt::format("{}, p = {:.3f}", text_of(sequence, place), p);
    }
    all.push_back(head_maps(start_, sequence, title, outcome));
  };
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      if (!data::trimmed(line).empty())
        show(start_.sequences().line(line), fmt::format("Line {}", number));
    });
    if (all.empty()) throw data::FileError(input->name, 0, "no lines, expected at least one");
    return all;
  }
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(kShown, splits_.test.size()); ++i)
    show(encoded(splits_.test[i]).sequence, fmt::format("Test question {}", i + 1));
  if (all.empty())
    show(sequence_of("where does she work ?", "she works in the bakery ."), "Example");
  return all;
}

}  // namespace

std::unique_ptr<Task> make_spans(const RunOptions& run_options) {
  return std::make_unique<Spans>(run_options);
}

}  // namespace fovea::systems::bert
