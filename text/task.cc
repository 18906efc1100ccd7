#include "text/task.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/formats/text.h"
#include "text/compose.h"
#include "train/descent/optimiser.h"
#include "train/fields.h"

namespace fovea::text {
namespace {

constexpr const char* kVocabularyFile = "vocabulary";
constexpr const char* kAspectsFile = "aspects.vocabulary";
constexpr const char* kPiecesFile = "pieces.model";

}  // namespace

TextTask::TextTask(const RunOptions& run_options, Parts parts)
    : ClassificationTask(run_options), parts_(std::move(parts)) {}

void TextTask::read(const Source& source) {
  const OptionValues& o = run_options_.options;
  const bool hide = parts_.level == Level::kSentences && o.flag("hide");
  if (hide && source.path.empty())
    throw UsageError("--set hide=true: expected --data FOLDER with it, that of MR and SUBJ");
  if (source.path.empty())
    corpus_ =
        (parts_.generators.size() == 1 ? parts_.generators.begin()->second
                                       : parts_.generators.at(o.text("generator")))(source.seed);
  else if (hide && !source.all_test)
    corpus_ = compose_hidden(source.path, source.seed, o.integer("documents"));
  else
    corpus_ = read_corpus(
        {.source = source,
         .columns = columns_named(o.text("columns")),
         .of_three = parts_.aspects ? Columns::kLabelAspectText : Columns::kLabelIdSentences,
         .positive_above =
             o.number("positive_above") != 0 ? o.number("positive_above") : std::nan("")});
  hidden_ = hide && !source.all_test;
  splits_ = corpus_.splits;
  data::LabelledText labels;
  labels.path = corpus_.path;
  for (const Document& document : corpus_.documents) {
    labels.labels.push_back(document.label);
    labels.texts.emplace_back();
    labels.lines.push_back(document.line);
  }
  if (names_.empty()) names_ = data::classes_of(labels.labels).names;
  labels_ = data::classes_in(labels, names_);
  if (tokeniser_) encode_all();
}

std::vector<uint64_t> TextTask::item_keys(Split split) const {
  if (!hidden_) return ClassificationTask::item_keys(split);
  // Documents are composed anew each time; what must not be met again are the sentences that tell.
  std::vector<uint64_t> keys;
  for (const int64_t item : splits_.of(split)) {
    const Document& document = corpus_.documents[static_cast<size_t>(item)];
    for (const int32_t sentence : document.truth_sentences)
      keys.push_back(data::item_key(document.texts[static_cast<size_t>(sentence)]));
  }
  return keys;
}

Written TextTask::write() const {
  Written out;
  for (const auto& [name, split] :
       {std::pair("train.jsonl", Split::kTrain), std::pair("val.jsonl", Split::kValidation),
        std::pair("test.jsonl", Split::kTest)}) {
    std::string& text = out.files[name];
    for (const int64_t item : corpus_.splits.of(split)) {
      const Document& document = corpus_.documents[static_cast<size_t>(item)];
      text += json_line(document) + "\n";
      if (!document.truth_words.empty()) out.truth = "\"true_words\" of each line";
      if (!document.truth_sentences.empty()) out.truth = "\"true_sentences\" of each line";
    }
  }
  return out;
}

void TextTask::prepare() {
  const OptionValues& o = run_options_.options;
  if (parts_.level == Level::kSentences && o.is_set("documents") && !o.flag("hide"))
    throw UsageError("--set documents: expected hide=true with it, which composes them");
  check_labels(corpus_);
  if (splits_.train.empty()) throw data::FileError(corpus_.path, 0, "no documents to learn from");
  if (o.text("tokens") != "pieces") {
    tokeniser_ = tokeniser_named(o.text("tokens"));
  } else if (const std::string& path = o.text("pieces_model"); !path.empty()) {
    tokeniser_ = piece_tokeniser(data::read_file(path), path);
  } else {
    std::vector<std::string> lines;
    for (const int64_t item : splits_.train)
      for (const std::string& text : corpus_.documents[static_cast<size_t>(item)].texts)
        lines.push_back(text);
    tokeniser_ = learn_piece_tokeniser(lines, o.integer("pieces"));
  }
  std::vector<Words> sentences, aspects;
  for (const int64_t item : splits_.train) {
    const Document& document = corpus_.documents[static_cast<size_t>(item)];
    for (Words& sentence : sentences_of(document)) sentences.push_back(std::move(sentence));
    if (!document.aspect.empty()) aspects.push_back({document.aspect});
  }
  vocabulary_ = data::Vocabulary::of(
      sentences, {.least_count = o.integer("min_count"), .most_words = o.integer("vocabulary")});
  aspects_ = data::Vocabulary::of(aspects, {});
  width_ = o.integer("width");
  if (const std::string& how = o.text("embedding");
      o.is_set("embedding") && o.text("vectors").empty() != (how == "own"))
    throw UsageError(
        fmt::format("--set embedding={}: expected {}", how,
                    how == "own" ? "no vectors with it" : "--set vectors=FILE with it"));
  if (const std::string& path = o.text("vectors"); !path.empty()) {
    vectors_ = std::filesystem::is_directory(path) ? vectors_of_run(path) : read_vectors(path);
    width_ = vectors_->width;
  }
  encode_all();
  learning_ = true;
}

Assets TextTask::assets() const {
  Assets out;
  out.facts = {{"classes", names_}, {"width", width_}};
  out.files[kVocabularyFile] = vocabulary_.text();
  if (parts_.aspects) out.files[kAspectsFile] = aspects_.text();
  if (const std::string bytes = tokeniser_->bytes(); !bytes.empty()) out.files[kPiecesFile] = bytes;
  return out;
}

void TextTask::restore(const Assets& assets) {
  const train::Fields facts(assets.facts, "facts.");
  names_ = facts.texts("classes");
  if (names_.size() < 2) facts.refuse("classes", "at least two names");
  width_ = facts.integer("width", 1, kMostWidth);
  using train::file_of;
  vocabulary_ = data::Vocabulary::parse(file_of(assets, kVocabularyFile), kVocabularyFile);
  if (parts_.aspects)
    aspects_ = data::Vocabulary::parse(file_of(assets, kAspectsFile), kAspectsFile);
  const std::string& tokens = run_options_.options.text("tokens");
  tokeniser_ = tokens == "pieces" ? piece_tokeniser(file_of(assets, kPiecesFile), kPiecesFile)
                                  : tokeniser_named(tokens);
}

std::shared_ptr<torch::nn::Module> TextTask::build() {
  const OptionValues& o = run_options_.options;
  Known known{.embedding = {.words = vocabulary_.size(),
                            .width = width_,
                            .learning = kLearnings.of(o.text("embedding")),
                            .dropout = o.number("dropout"),
                            .word_dropout = o.number("word_dropout")},
              .classes = static_cast<int64_t>(names_.size()),
              .aspects = aspects_.size()};
  model_ = parts_.model(o, known);
  if (vectors_) embedding()->begin_with(*vectors_, vocabulary_);
  if (learning_ && parts_.begin)
    parts_.begin(*model_, document_counts(), static_cast<int64_t>(splits_.train.size()));
  return model_;
}

std::vector<train::ParameterGroup> TextTask::parameter_groups(torch::nn::Module&) const {
  train::ParameterGroup rest, table;
  table.parameters = {parts_.embedding(*model_)->weight};
  if (run_options_.options.text("embedding") == "frozen")
    table.weight_decay = 0;  // it would move what is to stay
  for (const torch::Tensor& p : model_->parameters())
    if (p.requires_grad() && !p.is_same(table.parameters[0])) rest.parameters.push_back(p);
  return {rest, table};
}

std::vector<Words> TextTask::sentences_of(const Document& document) const {
  std::vector<Words> out;
  if (parts_.level == Level::kWords) {
    Words& all = out.emplace_back();
    for (const std::string& text : document.texts)
      for (std::string& word : tokeniser_->split(text)) all.push_back(std::move(word));
    return out;
  }
  const auto longest = static_cast<size_t>(run_options_.options.integer("longest"));
  for (const std::string& text : document.texts) {
    std::vector<Words> some = sentences(*tokeniser_, text, longest);
    // Sentences that the file separates are kept as they are, the empty ones too; a single text is split
    // here.
    if (document.texts.size() > 1) {
      Words whole;
      for (Words& part : some) whole.insert(whole.end(), part.begin(), part.end());
      for (size_t at = longest; whole.size() > longest; at = longest) {
        out.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at));
        whole.erase(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at));
      }
      out.push_back(std::move(whole));
    } else {
      out.insert(out.end(), std::make_move_iterator(some.begin()),
                 std::make_move_iterator(some.end()));
    }
  }
  return out;
}

TextTask::Encoded TextTask::encode(const Document& document) const {
  Encoded out;
  for (const Words& sentence : sentences_of(document)) {
    for (const std::string& word : sentence)
      out.ids.push_back(static_cast<int32_t>(vocabulary_.id(word)));
    out.lengths.push_back(static_cast<int32_t>(sentence.size()));
  }
  if (out.ids.size() > data::limit(data::Limit::kDocument))
    throw data::FileError(corpus_.path.empty() ? "input" : corpus_.path, document.line,
                          data::beyond(data::Limit::kDocument, out.ids.size()));
  out.aspect = document.aspect.empty() ? data::kPad : aspects_.id(document.aspect);
  return out;
}

void TextTask::encode_all() {
  encoded_.clear();
  lengths_.clear();
  for (const Document& document : corpus_.documents) {
    encoded_.push_back(encode(document));
    lengths_.push_back(static_cast<int64_t>(encoded_.back().ids.size()));
  }
}

at::Tensor TextTask::document_counts() const {
  std::vector<int64_t> counts(static_cast<size_t>(vocabulary_.size()), 0);
  for (const int64_t item : splits_.train) {
    std::vector<int32_t> ids = encoded_[static_cast<size_t>(item)].ids;
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    for (const int32_t id : ids) ++counts[static_cast<size_t>(id)];
  }
  return at::tensor(counts, at::kLong);
}

Batch TextTask::batch(const std::vector<const Encoded*>& items) const {
  std::vector<int64_t> words, aspects;
  std::vector<int32_t> sentences = {0}, documents = {0};
  for (const Encoded* one : items) {
    words.insert(words.end(), one->ids.begin(), one->ids.end());
    for (const int32_t length : one->lengths) sentences.push_back(sentences.back() + length);
    documents.push_back(documents.back() + static_cast<int32_t>(one->lengths.size()));
    aspects.push_back(one->aspect);
  }
  return {at::tensor(words, at::kLong).to(run_options_.device),
          at::tensor(sentences, at::kInt).to(run_options_.device),
          at::tensor(documents, at::kInt).to(run_options_.device),
          at::tensor(aspects, at::kLong).to(run_options_.device)};
}

Loss TextTask::loss(const fovea::Batch& batch) {
  Loss out = ClassificationTask::loss(batch);
  if (penalty_.defined()) out.mean = out.mean + penalty_;
  return out;
}

torch::Tensor TextTask::logits(std::span<const int64_t> items) {
  std::vector<const Encoded*> chosen;
  for (const int64_t item : items) chosen.push_back(&encoded_[static_cast<size_t>(item)]);
  Answer answer = model_->answer(batch(chosen), want_);
  look_ = std::move(answer.look);
  penalty_ = std::move(answer.penalty);
  if (want_ == Want::kLook) {
    const at::Tensor best = answer.logits.argmax(1).cpu();
    for (size_t i = 0; i < items.size(); ++i) {
      if (!corpus_.documents[static_cast<size_t>(items[i])].mixed) continue;
      mixed_seen_ += 1;
      mixed_right_ +=
          best[static_cast<int64_t>(i)].item<int64_t>() == labels_[static_cast<size_t>(items[i])];
    }
  }
  return answer.logits;
}

std::vector<int> TextTask::hits(std::span<const int64_t> items) {
  if (want_ != Want::kLook || !look_.words.defined()) return {};
  count_zeros(look_.words);
  const std::vector<float> words = to_floats(look_.words.mean(0));
  const std::vector<float> sentences =
      look_.sentences.defined() ? to_floats(look_.sentences) : std::vector<float>();
  std::vector<int> out;
  size_t word = 0, sentence = 0;
  for (const int64_t item : items) {
    const Document& document = corpus_.documents[static_cast<size_t>(item)];
    const Encoded& e = encoded_[static_cast<size_t>(item)];
    const auto best = [](const std::vector<float>& of, size_t from, size_t count) {
      return static_cast<int32_t>(
          std::max_element(of.begin() + static_cast<std::ptrdiff_t>(from),
                           of.begin() + static_cast<std::ptrdiff_t>(from + count)) -
          of.begin() - static_cast<std::ptrdiff_t>(from));
    };
    const auto within = [](int32_t one, const std::vector<int32_t>& of) {
      return static_cast<int>(std::find(of.begin(), of.end(), one) != of.end());
    };
    if (!document.truth_sentences.empty() && !sentences.empty() && !e.lengths.empty())
      out.push_back(within(best(sentences, sentence, e.lengths.size()), document.truth_sentences));
    else if (!document.truth_words.empty() && !e.ids.empty())
      out.push_back(within(best(words, word, e.ids.size()), document.truth_words));
    else
      out.push_back(-1);
    word += e.ids.size();
    sentence += e.lengths.size();
  }
  return out;
}

Evaluation TextTask::evaluate(Split split) {
  // Weights are looked at when a run is judged, not after each epoch.
  want_ = split == Split::kTest ? Want::kLook : Want::kLogits;
  mixed_right_ = mixed_seen_ = 0;
  Evaluation out = ClassificationTask::evaluate(split);
  want_ = Want::kLogits;
  if (mixed_seen_ > 0) out.metrics["accuracy_mixed"] = mixed_right_ / mixed_seen_;
  return out;
}

}  // namespace fovea::text
