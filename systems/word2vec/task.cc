#include "systems/word2vec/task.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <istream>
#include <map>
#include <ostream>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "systems/word2vec/analogies.h"
#include "text/generate.h"
#include "text/vectors.h"
#include "train/answers.h"
#include "train/descent/fit.h"
#include "train/fields.h"

namespace fovea::systems::word2vec {
namespace {

constexpr const char* kVocabularyFile = "vocabulary";
constexpr size_t kLongestSentence = 1000;  // as word2vec's own
constexpr size_t kShownWords = 10;
constexpr int64_t kShownNear = 8, kPlaneWords = 150;

struct Tables : torch::nn::Module {
  Tables(int64_t words, int64_t width) {
    input = register_buffer("input", at::zeros({words, width}));
    output = register_buffer("output", at::zeros({words, width}));
  }
  at::Tensor input, output;
};

// Sentences of a file, one on a line. If every line begins with a whole number and a blank, that
// number is a label and is left out.
std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  const std::string text = data::read_file(path);
  data::each_line(std::string_view(text), path,
                  [&](size_t, std::string_view line) { lines.emplace_back(line); });
  const auto label = [](const std::string& line) {
    const size_t end = line.find_first_not_of("0123456789");
    return end != 0 && end != std::string::npos && (line[end] == ' ' || line[end] == '\t')
               ? end
               : std::string::npos;
  };
  if (std::all_of(lines.begin(), lines.end(),
                  [&](const std::string& line) { return label(line) != std::string::npos; }))
    for (std::string& line : lines) line.erase(0, label(line) + 1);
  return lines;
}

}  // namespace

Word2vecTask::Word2vecTask(const RunOptions& run_options)
    : run_options_(run_options), tokeniser_(text::tokeniser_named("words")) {}

void Word2vecTask::read(const Source& source) {
  path_ = source.path.empty() ? "generated text" : source.path;
  sentences_.clear();
  slots_.clear();
  std::vector<std::string> lines;
  if (source.path.empty()) {
    for (const text::Document& document : text::generate_hidden(source.seed).documents)
      lines.insert(lines.end(), document.texts.begin(), document.texts.end());
    slots_ = text::hidden_slots();
  } else {
    lines = lines_of(source.path);
    for (const std::string& path : run_options_.options.list("more")) {
      const std::vector<std::string> others = lines_of(path);
      lines.insert(lines.end(), others.begin(), others.end());
    }
  }
  for (const std::string& line : lines)
    for (text::Words& sentence : text::sentences(*tokeniser_, line, kLongestSentence))
      sentences_.push_back(std::move(sentence));
}

std::string Word2vecTask::read_in_words() const {
  size_t words = 0;
  for (const text::Words& sentence : sentences_) words += sentence.size();
  return fmt::format("{} sentences of {} words", sentences_.size(), words);
}

Written Word2vecTask::write() const {
  Written out{.data = "text.txt", .truth = "truth.jsonl, the words of each slot"};
  for (const text::Words& sentence : sentences_)
    out.files["text.txt"] += fmt::format("{}\n", fmt::join(sentence, " "));
  for (const auto& slot : slots_) out.files["truth.jsonl"] += Json{{"slot", slot}}.dump() + "\n";
  return out;
}

void Word2vecTask::prepare() {
  vocabulary_ =
      data::Vocabulary::of(sentences_, {.least_count = run_options_.options.integer("min_count")});
  counts_.assign(static_cast<size_t>(vocabulary_.size()), 0);
  for (const text::Words& sentence : sentences_)
    for (const std::string& word : sentence) ++counts_[static_cast<size_t>(vocabulary_.id(word))];
  for (int64_t special = 0; special <= data::kEos; ++special)
    counts_[static_cast<size_t>(special)] = 0;
  if (vocabulary_.size() <= data::kEos + 1)
    throw data::FileError(path_, 0,
                          fmt::format("no word occurs {} times, expected some (min_count)",
                                      run_options_.options.integer("min_count")));
}

Assets Word2vecTask::assets() const {
  Assets out;
  out.facts = {{"words_per_second", words_per_second_}, {"losses", losses_}};
  out.files[kVocabularyFile] = vocabulary_.text();
  if (!units_.defined()) return out;
  text::Vectors vectors{.width = input_.size(1)};
  const at::Tensor rows = input_.to(at::kCPU, at::kFloat).contiguous();
  for (int64_t id = data::kEos + 1; id < vocabulary_.size(); ++id) {
    vectors.words.push_back(vocabulary_.word(id));
    vectors.values.insert(vectors.values.end(), rows[id].data_ptr<float>(),
                          rows[id].data_ptr<float>() + vectors.width);
  }
  const std::string& format = run_options_.options.text("format");
  out.files[format == "binary" ? "vectors.bin" : "vectors.txt"] =
      text::vector_bytes(vectors, text::kVectorFormats.of(format));
  return out;
}

void Word2vecTask::restore(const Assets& assets) {
  const train::Fields facts(assets.facts, "facts.");
  vocabulary_ = data::Vocabulary::parse(train::file_of(assets, kVocabularyFile), kVocabularyFile);
  words_per_second_ = facts.number("words_per_second");
  losses_ = facts.numbers("losses");
  const int64_t epochs = run_options_.options.integer("epochs");
  if (static_cast<int64_t>(losses_.size()) != epochs)
    facts.refuse("losses", fmt::format("one for each of the {} epochs", epochs));
}

std::shared_ptr<torch::nn::Module> Word2vecTask::build() {
  const auto tables =
      std::make_shared<Tables>(vocabulary_.size(), run_options_.options.integer("width"));
  input_ = tables->input;
  output_ = tables->output;
  return model_ = tables;
}

void Word2vecTask::refresh() {
  // Weights may have been replaced since build.
  const auto buffers = model_->named_buffers();
  input_ = buffers["input"];
  units_ = input_.to(at::kCPU) / input_.to(at::kCPU).norm(2, {1}, true).clamp_min(1e-12);
}

void Word2vecTask::fit(train::Fit& fit) {
  const OptionValues& o = run_options_.options;
  Text text;
  text.sentences = {0};
  for (const text::Words& sentence : sentences_) {
    for (const std::string& word : sentence)
      if (const int64_t id = vocabulary_.id(word); id > data::kEos)
        text.words.push_back(static_cast<int32_t>(id - data::kEos - 1));
    text.sentences.push_back(static_cast<int64_t>(text.words.size()));
  }
  const std::vector<int64_t> counts(counts_.begin() + data::kEos + 1, counts_.end());
  const Plan plan{
      .architecture = o.text("model") == "cbow" ? Architecture::kCbow : Architecture::kSkipGram,
      .width = o.integer("width"),
      .window = o.integer("window"),
      .negatives = o.integer("negatives"),
      .epochs = o.integer("epochs"),
      .sample = o.number("sample"),
      .rate = o.number("rate"),
      .seed = run_options_.seed,
      .threads = at::get_num_threads()};
  const Learned learned = learn(text, counts, plan, [&](double done) {
    fit.stop_if_interrupted("while reading the text");
    if (fit.progress().due())
      fit.progress().step(static_cast<int64_t>(1000 * done), 1000, "reading");
  });
  const int64_t words = static_cast<int64_t>(counts.size());
  const auto table = [&](const std::vector<float>& from) {
    return at::from_blob(const_cast<float*>(from.data()), {words, plan.width}, at::kFloat);
  };
  const torch::NoGradGuard no_grad;
  input_.slice(0, data::kEos + 1).copy_(table(learned.input));
  output_.slice(0, data::kEos + 1).copy_(table(learned.output));
  words_per_second_ = learned.words_per_second;
  losses_ = learned.losses;
  for (size_t epoch = 0; epoch < losses_.size(); ++epoch)
    fit.record({{"epoch", epoch + 1}, {"loss", losses_[epoch]}});
  refresh();
}

std::vector<Word2vecTask::Near> Word2vecTask::nearest(const at::Tensor& direction, int64_t count,
                                                      const std::vector<int64_t>& without) const {
  at::Tensor cosines = units_.matmul(direction / direction.norm().clamp_min(1e-12)).to(at::kDouble);
  cosines.slice(0, 0, data::kEos + 1).fill_(-2);
  for (const int64_t id : without) cosines[id] = -2;
  const auto order = std::get<1>(cosines.sort(/*stable=*/true, 0, /*descending=*/true));
  std::vector<Near> out;
  for (int64_t i = 0; i < std::min(count, vocabulary_.size()); ++i)
    if (const double cosine = cosines[order[i]].item<double>(); cosine > -2)
      out.push_back({order[i].item<int64_t>(), cosine});
  return out;
}

Evaluation Word2vecTask::evaluate(Split) {
  refresh();
  Evaluation out;
  out.items = vocabulary_.size() - data::kEos - 1;
  out.metrics["words_per_second"] = words_per_second_;
  if (!losses_.empty()) out.metrics["loss"] = losses_.back();
  double right = 0, asked = 0;
  for (const Analogy& a : analogies()) {
    const int64_t ids[4] = {vocabulary_.id(a.from), vocabulary_.id(a.to), vocabulary_.id(a.like),
                            vocabulary_.id(a.answer)};
    if (std::any_of(std::begin(ids), std::end(ids), [](int64_t id) { return id <= data::kEos; }))
      continue;
    const auto near =
        nearest(unit(ids[1]) - unit(ids[0]) + unit(ids[2]), 1, {ids[0], ids[1], ids[2]});
    right += !near.empty() && near[0].id == ids[3];
    asked += 1;
  }
  out.metrics["analogies"] = asked;
  if (asked > 0) out.metrics["analogy"] = right / asked;
  std::map<std::string, size_t> slot;
  for (size_t s = 0; s < slots_.size(); ++s)
    for (const std::string& word : slots_[s]) slot[word] = s;
  double hit = 0, known = 0;
  for (const auto& [word, s] : slot) {
    if (!vocabulary_.has(word)) continue;
    const auto near = nearest(unit(vocabulary_.id(word)), 1, {vocabulary_.id(word)});
    const auto found = near.empty() ? slot.end() : slot.find(vocabulary_.word(near[0].id));
    hit += found != slot.end() && found->second == s;
    known += 1;
  }
  if (known > 0) out.attention["hit_rate"] = hit / known;
  return out;
}

int64_t Word2vecTask::known(const std::string& word, const std::string& name, size_t line) const {
  const int64_t id = vocabulary_.id(word);
  if (id <= data::kEos)
    throw data::FileError(name, line,
                          fmt::format("the word {} is not among the {} known", data::shown(word),
                                      vocabulary_.size() - data::kEos - 1));
  return id;
}

void Word2vecTask::predict(Input input, std::ostream& out) {
  refresh();
  answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
    const text::Words words = tokeniser_->split(line);
    if (words.size() != 1 && words.size() != 3)
      throw data::FileError(
          input.name, number,
          fmt::format(
              "{} words, expected 1 (its neighbours) or 3 (a b c: what is to c as b is to a)",
              words.size()));
    std::vector<int64_t> ids;
    for (const std::string& word : words) ids.push_back(known(word, input.name, number));
    const at::Tensor direction =
        ids.size() == 1 ? unit(ids[0]) : unit(ids[1]) - unit(ids[0]) + unit(ids[2]);
    const std::vector<Neighbour> near = neighbours(direction, ids);
    return {fmt::format("{}\n", fmt::join(in_words(near, ':'), " ")), [near] {
              Json all = Json::object();
              for (const Neighbour& one : near) all[one.word] = one.cosine;
              return Json{{"answer", near.empty() ? Json() : Json(near[0].word)}, {"cosines", all}};
            }};
  });
}

std::vector<Neighbour> Word2vecTask::neighbours(const at::Tensor& direction,
                                                const std::vector<int64_t>& without) const {
  std::vector<Neighbour> out;
  for (const Near& near : nearest(direction, kShownNear, without))
    out.push_back({vocabulary_.word(near.id), near.cosine});
  return out;
}

std::vector<explain::Explanation> Word2vecTask::explain(Input* input) {
  refresh();
  std::vector<int64_t> shown;
  if (input) {
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      for (const std::string& word : tokeniser_->split(line))
        shown.push_back(known(word, input->name, number));
    });
  }
  const size_t asked = shown.size();
  // Then frequent words, without punctuation and words of up to three letters, which say little.
  for (int64_t id = data::kEos + 1;
       id < vocabulary_.size() && static_cast<int64_t>(shown.size()) < kPlaneWords; ++id)
    if (vocabulary_.word(id).size() > 3) shown.push_back(id);
  const at::Tensor vectors = units_.index_select(0, at::tensor(shown, at::kLong));
  text::Words names;
  for (const int64_t id : shown) names.push_back(vocabulary_.word(id));
  std::vector<Neighbourhood> table;
  for (const size_t i : unlike(vectors, asked, kShownWords))
    table.push_back({names[i], neighbours(unit(shown[i]), {shown[i]})});
  return {plane_of_words(names, vectors, table)};
}

}  // namespace fovea::systems::word2vec
