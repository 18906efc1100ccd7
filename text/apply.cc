// A finished task at work: predict and explain, on lines of text.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <numeric>
#include <ostream>
#include <unordered_map>

#include "data/file.h"
#include "text/task.h"
#include "train/answers.h"
#include "train/finite.h"

namespace fovea::text {
namespace {

constexpr size_t kShownItems = 3;     // of the test split
constexpr size_t kShownLines = 16;    // of an input
constexpr size_t kCarryingWords = 3;  // that predict names

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
std::string TextTask::carried(const std::vector<Words>& sentences, const Look& look) const {
  const std::vector<float> of_word = to_floats(look.words.mean(0));
  const std::vector<float> of_sentence =
      look.sentences.defined() ? to_floats(look.sentences) : std::vector<float>();
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
  for (size_t i = 0; i < count; ++i) {
    const size_t word = order[i];
    const bool unknown = vocabulary_.id(words[word]) == data::kUnk;
    if (shares[word] != 0 || unknown)
      out += fmt::format("{}{}{}:{:.3g}", out.empty() ? "" : " ", words[word],
                         unknown ? "(unknown)" : "", shares[word]);
  }
  return out;
}

void TextTask::predict(Input input, std::ostream& out) {
  answer_lines(input, out, [&](size_t number, std::string_view line, std::ostream& to) {
    const Document document = parse(line, input.name, number);
    const Encoded encoded = encode(document);
    const Answer answer = model_->answer(batch({&encoded}), Want::kLook);
    const at::Tensor p = train::finite(answer.logits, "logits").softmax(1)[0].cpu();
    to << fmt::format("{}\t{:.4f}\t{}", names_[static_cast<size_t>(p.argmax().item<int64_t>())],
                      p.max().item<double>(), carried(sentences_of(document), answer.look));
    if (encoded.aspect == data::kUnk) to << "\taspect '" << document.aspect << "' is unknown";
    to << '\n';
  });
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
  if (!document.label.empty()) shown.outcome += fmt::format(" (true: {})", document.label);
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
