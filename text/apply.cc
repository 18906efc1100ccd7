// predict and explain of the text task, on lines of text.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <numeric>
#include <optional>
#include <ostream>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "text/layout.h"
#include "text/task.h"
#include "train/answers.h"
#include "train/descent/finite.h"

namespace fovea::text {
namespace {

constexpr size_t kShownItems = 3;     // of the test split
constexpr size_t kShownOwn = 6;       // of a user's
constexpr size_t kJudged = 1000;      // test items among which mistakes are sought
constexpr size_t kShownLines = 16;    // of an input
constexpr size_t kCarryingWords = 3;  // that predict names
constexpr size_t kUnknownWords = 8;   // likewise, of those that are not among them

// A table given to predict, which reads a text a line: its labels or the names of its columns are read
// as words.
void note_table(const Input& input, const std::vector<std::string>& lines,
                const std::vector<std::string>& classes) {
  if (!input.noted) return;
  const std::string first = lines[0].substr(0, lines[0].find('\t'));
  const bool labelled = first.size() < lines[0].size() &&
                        std::find(classes.begin(), classes.end(), first) != classes.end();
  if (labelled)
    input.noted(fmt::format(
        "{}:1: begins with the class {} and a tab, expected texts alone: labels are read as words "
        "(evaluate --data compares with them)",
        input.name, data::shown(first)));
  else if (lines.size() > 1 && (is_text_name(first) || is_label_name(first)))
    input.noted(fmt::format("{}:1: {} names a column, expected texts alone: it is read as a text",
                            input.name, data::shown(first)));
}

}  // namespace

Document TextTask::parse(std::string_view line, const std::string& name, size_t number) const {
  Document out;
  out.line = number;
  std::vector<std::string> cells;
  for (size_t start = 0; start <= line.size();) {
    const size_t tab = std::min(line.find('\t', start), line.size());
    cells.emplace_back(line.substr(start, tab - start));
    start = tab + 1;
  }
  if (parts_.aspects) {
    if (cells.size() > 2)
      throw data::FileError(
          name, number,
          fmt::format("{} columns, expected 1 or 2 (text, or aspect<TAB>text)", cells.size()));
    if (cells.size() == 2) {
      out.aspect = cells[0];
      cells.erase(cells.begin());
    }
  }
  out.texts = std::move(cells);
  return out;
}

// The words with the largest share in the answer, largest first: the mean over heads, times the
// sentence's weight, of all places where the word stands. A word that was never seen in training is
// named though it may carry nothing.
std::string TextTask::carried(const std::vector<Words>& sentences, std::span<const float> of_word,
                              std::span<const float> of_sentence) const {
  Words words;  // each once, in the order of their first places
  std::vector<double> shares;
  std::unordered_map<std::string, size_t> places;
  for (size_t s = 0, at = 0; s < sentences.size(); ++s) {
    for (const std::string& word : sentences[s]) {
      const auto [place, fresh] = places.try_emplace(word, words.size());
      if (fresh) words.push_back(word), shares.push_back(0);
      shares[place->second] += of_word[at++] * (of_sentence.empty() ? 1.0 : of_sentence[s]);
    }
  }
  std::vector<size_t> order(words.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(order.size(), kCarryingWords);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) {
                      return std::abs(shares[a]) != std::abs(shares[b])
                                 ? std::abs(shares[a]) > std::abs(shares[b])
                                 : a < b;
                    });
  std::string out;
  std::vector<bool> named(words.size());
  const auto name = [&](size_t word, const char* mark) {
    out += fmt::format("{}{}{}:{:.3g}", out.empty() ? "" : " ", data::visible(words[word]), mark,
                       shares[word]);
    named[word] = true;
  };
  for (size_t i = 0; i < count; ++i) {
    const size_t word = order[i];
    if (is_unknown(words[word]))
      name(word, "(unknown)");
    else if (shares[word] != 0)
      name(word, "");
  }
  size_t unknown = 0;
  for (size_t word = 0; word < words.size(); ++word)
    if (!named[word] && is_unknown(words[word]) && ++unknown <= kUnknownWords)
      name(word, "(unknown)");
  if (unknown > kUnknownWords) out += fmt::format(" and {} more unknown", unknown - kUnknownWords);
  return out;
}

bool TextTask::is_unknown(const std::string& word) const {
  return vocabulary_.id(word) == data::kUnk;
}

void TextTask::answer(const Input& input, std::span<const std::string> lines, size_t number,
                      std::ostream& out) {
  struct Read {
    Document document;
    Encoded encoded;
  };
  const auto read = [&](size_t line_number, std::string_view line) {
    Read one;
    data::visit_line(line, input.name, line_number, [&](size_t, std::string_view text) {
      one.document = parse(text, input.name, line_number);
    });
    one.encoded = encode(one.document);
    return one;
  };
  std::vector<std::optional<Read>> all;  // nothing where a line is at fault
  std::vector<const Encoded*> asked;
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      all.emplace_back(read(number + i, lines[i]));
    } catch (const InvalidArgument&) {
      all.emplace_back();
    }
  }
  for (const auto& one : all)
    if (one) asked.push_back(&one->encoded);
  std::vector<float> of_word, of_sentence, probability;
  size_t classes = names_.size(), word = 0, sentence = 0, row = 0;
  if (!asked.empty()) {
    const Answer answer = model_->answer(batch(asked), Want::kLook);
    probability = to_floats(train::finite(answer.logits, "logits").softmax(1));
    of_word = to_floats(answer.look.words.mean(0));
    if (answer.look.sentences.defined()) of_sentence = to_floats(answer.look.sentences);
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    answer_line(
        input, number + i, lines[i], out,
        [&](size_t line_number, std::string_view line) -> Answered {
          if (!all[i]) read(line_number, line);  // says what is wrong with it
          // No structured binding: clang 14 takes none into the lambda below.
          const auto& document = all[i].value().document;
          const auto& encoded = all[i]->encoded;
          const std::span<const float> p(probability.data() + row * classes, classes);
          const auto best = std::max_element(p.begin(), p.end());
          const std::span<const float> words = std::span(of_word).subspan(word, encoded.ids.size());
          const auto sentences =
              of_sentence.empty()
                  ? std::span<const float>()
                  : std::span<const float>(of_sentence).subspan(sentence, encoded.lengths.size());
          Answered answered{fmt::format(
              "{}\t{:.4f}\t{}", data::visible(names_[static_cast<size_t>(best - p.begin())]), *best,
              carried(sentences_of(document), words, sentences))};
          if (encoded.aspect == data::kUnk)
            answered.text +=
                fmt::format("\taspect '{}' is unknown", data::visible(document.aspect));
          answered.text += '\n';
          answered.fields = [&, words, sentences, p] {
            Json fields = class_fields(names_, p);
            Json shown = Json::array(), unknown = Json::array();
            std::unordered_set<std::string> met;
            for (const Words& one : sentences_of(document))
              for (const std::string& text : one) {
                shown.push_back(text);
                if (is_unknown(text) && met.insert(text).second) unknown.push_back(text);
              }
            fields["words"] = shown;
            fields["unknown"] = unknown;
            fields["weights"] = std::vector<float>(words.begin(), words.end());
            if (!sentences.empty())
              fields["sentence_weights"] = std::vector<float>(sentences.begin(), sentences.end());
            return fields;
          };
          return answered;
        });
    if (!all[i]) continue;
    word += all[i]->encoded.ids.size();
    sentence += all[i]->encoded.lengths.size();
    ++row;
  }
}

void TextTask::predict(Input input, std::ostream& out) {
  constexpr size_t kMostBytes = 1 << 18;  // asked about at once
  data::LineReader reader(input.stream, input.name, input.before);
  size_t number = input.before + 1;
  for (auto lines = reader.next_lines(kLinesTogether); !lines.empty();
       lines = reader.next_lines(kLinesTogether)) {
    if (number == 1 && !parts_.aspects) note_table(input, lines, names_);
    for (size_t from = 0; from < lines.size();) {
      size_t to = from + 1;
      for (size_t bytes = lines[from].size();
           to < lines.size() && (bytes += lines[to].size()) <= kMostBytes;)
        ++to;
      answer(input, std::span(lines).subspan(from, to - from), number, out);
      number += to - from;
      from = to;
    }
  }
}

explain::Explanation TextTask::picture(Document document, const std::string& title) {
  const torch::NoGradGuard no_grad;
  const Encoded encoded = encode(document);
  const Answer answer = model_->answer(batch({&encoded}), Want::kLook);
  const at::Tensor p = answer.logits.softmax(1)[0].cpu();
  Shown shown{.title = title,
              .truth_words = document.truth_words,
              .truth_sentences = document.truth_sentences};
  shown.sentences = sentences_of(document);
  shown.outcome =
      fmt::format("{}, p = {:.3f}", names_[static_cast<size_t>(p.argmax().item<int64_t>())],
                  p.max().item<double>());
  if (!document.label.empty()) {
    const bool right = names_[static_cast<size_t>(p.argmax().item<int64_t>())] == document.label;
    shown.outcome = (right ? "right: " : "wrong: ") + shown.outcome;
    if (!right) shown.outcome += fmt::format(" (true: {})", document.label);
  }
  explain::Explanation out = heat_map(shown, answer.look);
  if (!document.aspect.empty()) out.title += fmt::format(", asked about \"{}\"", document.aspect);
  if (encoded.aspect == data::kUnk)
    out.notes.push_back(fmt::format(
        "The aspect \"{}\" was never seen in training: its vector is zero.", document.aspect));
  std::string unknown;
  for (const Words& sentence : shown.sentences)
    for (const std::string& word : sentence)
      if (vocabulary_.id(word) == data::kUnk && unknown.size() < 100)
        unknown += (unknown.empty() ? "" : ", ") + word;
  if (!unknown.empty()) out.notes.push_back("Words never seen in training: " + unknown + ".");
  return out;
}

std::vector<size_t> TextTask::mistakes_first() {
  constexpr size_t kTogether = 64;
  const torch::NoGradGuard no_grad;
  struct Judged {
    size_t place;
    bool right;
    double sure;
  };
  std::vector<Judged> all;
  for (size_t from = 0; from < std::min(splits_.test.size(), kJudged); from += kTogether) {
    const size_t count = std::min(kTogether, std::min(splits_.test.size(), kJudged) - from);
    std::vector<const Encoded*> asked;
    for (size_t i = 0; i < count; ++i)
      asked.push_back(&encoded_[static_cast<size_t>(splits_.test[from + i])]);
    const auto [sure, best] = model_->logits(batch(asked)).softmax(1).cpu().max(1);
    for (size_t i = 0; i < count; ++i) {
      const auto row = static_cast<int64_t>(i);
      all.push_back(
          {from + i,
           best[row].item<int64_t>() == labels_[static_cast<size_t>(splits_.test[from + i])],
           sure[row].item<double>()});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Judged& a, const Judged& b) {
    return a.right != b.right ? !a.right : a.sure > b.sure;
  });
  std::vector<size_t> out;
  for (const Judged& one : all) out.push_back(one.place);
  return out;
}

std::vector<explain::Explanation> TextTask::explain(Input* input) {
  std::vector<explain::Explanation> out;
  if (input) {
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      if (out.size() < kShownLines)
        out.push_back(picture(parse(line, input->name, number), fmt::format("Line {}", number)));
    });
    if (out.empty()) throw data::FileError(input->name, 0, "no lines, expected at least one");
    return out;
  }
  if (own_data()) {
    const std::vector<size_t> order = mistakes_first();
    for (size_t i = 0; i < std::min(kShownOwn, order.size()); ++i) {
      const Document& document = corpus_.documents[static_cast<size_t>(splits_.test[order[i]])];
      out.push_back(picture(document, fmt::format("Test item of line {}", document.line)));
    }
    if (parts_.more)
      for (explain::Explanation& one : parts_.more(*this)) out.push_back(std::move(one));
    return out;
  }
  if (parts_.more) out = parts_.more(*this);
  for (size_t i = 0; i < std::min(kShownItems, splits_.test.size()); ++i) {
    // Spread over the split: files are often sorted by class.
    const size_t at = i * splits_.test.size() / kShownItems;
    out.push_back(picture(corpus_.documents[static_cast<size_t>(splits_.test[at])],
                          fmt::format("Test document {}", at + 1)));
  }
  return out;
}

}  // namespace fovea::text
