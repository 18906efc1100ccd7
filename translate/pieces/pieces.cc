#include "translate/pieces/pieces.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <memory>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "fovea/error.h"
#include "translate/pieces/piece_model.h"

namespace fovea::translate {
namespace {

namespace sp = sentencepiece;

constexpr std::string_view kSpace = "\xe2\x96\x81";  // ▁, which SentencePiece writes for a space

class PieceCodec : public Codec {
 public:
  PieceCodec(std::string_view model, const std::string& name)
      : model_(model), processor_(open_piece_model(model_, name)) {
    if (processor_->pad_id() != kPad || processor_->unk_id() != kUnknown ||
        processor_->bos_id() != kBegin || processor_->eos_id() != kEnd) {
      throw data::FileError(name, 0,
                            "special tokens <pad> <unk> <s> </s> at other ids, expected 0 1 2 3");
    }
  }

  Encoded encode(std::string_view line) const override {
    Encoded out;
    int32_t word = -1;
    for (const int id : processor_->EncodeAsIds({line.data(), line.size()})) {
      const std::string& text = processor_->IdToPiece(id);
      if (word < 0 || std::string_view(text).starts_with(kSpace)) ++word;
      out.ids.push_back(id);
      out.words.push_back(word);
    }
    return out;
  }
  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<int> plain;
    for (const int64_t id : ids) {
      if (id != kPad && id != kBegin && id != kEnd && id < size())
        plain.push_back(static_cast<int>(id));
    }
    return processor_->DecodeIds(plain);
  }
  std::vector<std::string> unknown(std::string_view line) const override {
    const std::vector<std::string> words = data::words(line);
    const Encoded encoded = encode(line);
    std::vector<std::string> out;
    for (size_t t = 0; t < encoded.ids.size(); ++t) {
      const auto word = static_cast<size_t>(encoded.words[t]);
      // Normalisation may part or join words; which it was is not known then.
      if (encoded.ids[t] != kUnknown || word >= words.size()) continue;
      if (std::find(out.begin(), out.end(), words[word]) == out.end()) out.push_back(words[word]);
    }
    return out;
  }
  // As readers write it: a piece that begins a word without the mark for the space before it, and one
  // that goes on with a word after kGoesOn.
  std::string piece(int64_t id) const override {
    if (id < 0 || id >= size()) return "<unk>";
    const auto number = static_cast<int>(id);
    const std::string& text = processor_->IdToPiece(number);
    if (processor_->IsControl(number) || processor_->IsUnknown(number)) return text;
    if (!text.starts_with(kSpace)) return kGoesOn + text;
    return text == kSpace ? kBlank : text.substr(kSpace.size());
  }
  int64_t size() const override { return processor_->GetPieceSize(); }
  std::string bytes() const override { return model_; }

 private:
  std::string model_;
  std::unique_ptr<sp::SentencePieceProcessor> processor_;
};

class Lines : public sp::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sp::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Codec> learn_pieces(const std::vector<std::string>& lines, int64_t size) {
  if (lines.empty()) throw InvalidArgument("pieces: no lines to learn from, expected at least one");
  std::string model;
  Lines iterator(lines);
  const sp::util::Status status =
      sp::SentencePieceTrainer::Train({{"model_type", "bpe"},
                                       {"vocab_size", std::to_string(size)},
                                       {"hard_vocab_limit", "false"},
                                       {"pad_id", "0"},
                                       {"unk_id", "1"},
                                       {"bos_id", "2"},
                                       {"eos_id", "3"},
                                       {"character_coverage", "1.0"},
                                       {"normalization_rule_name", "nmt_nfkc"},
                                       {"minloglevel", "2"},
                                       {"num_threads", "1"}},
                                      &iterator, &model);
  if (!status.ok())
    throw InvalidArgument("pieces: SentencePiece could not learn " + std::to_string(size) +
                          " pieces: " + status.ToString());
  return std::make_unique<PieceCodec>(model, "pieces");
}

std::unique_ptr<Codec> pieces_from_bytes(std::string_view bytes, const std::string& name) {
  return std::make_unique<PieceCodec>(bytes, name);
}

}  // namespace fovea::translate
