// What a translation system answers: lines as they come, n-best lists, forced decoding, alignments.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <istream>
#include <ostream>
#include <optional>
#include <sstream>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/text.h"
#include "train/answers.h"
#include "translate/links.h"
#include "translate/task.h"

namespace fovea::translate {

// A hypothesis as text. With attention, an unknown word is replaced by the source word with the
// most weight at its step (Luong et al. 2015).
std::string TranslationTask::text_of(const nn::Hypothesis& said, const Encoded& source,
                                     const std::string& line) const {
  if (!run_options_.options.flag("replace_unknown") || !said.attention.defined())
    return target_codec_->decode(said.tokens);
  const std::vector<std::string> words = data::words(line);
  const int64_t real = static_cast<int64_t>(source.ids.size());  // EOS is no word
  std::string out;
  std::vector<int64_t> known;
  const auto append = [&](const std::string& text) {
    if (!text.empty()) out += (out.empty() ? "" : " ") + text;
  };
  for (size_t t = 0; t < said.tokens.size(); ++t) {
    if (said.tokens[t] != kUnknown) {
      known.push_back(said.tokens[t]);
      continue;
    }
    append(target_codec_->decode(known));
    known.clear();
    const int64_t j =
        said.attention[static_cast<int64_t>(t)].slice(0, 0, real).argmax().item<int64_t>();
    append(words.at(static_cast<size_t>(source.words[static_cast<size_t>(j)])));
  }
  append(target_codec_->decode(known));
  return out;
}

std::string TranslationTask::pharaoh(const Tokens& tokens) {
  const at::NoGradGuard no_grad;
  if (tokens.source.ids.empty() || tokens.target.ids.empty()) return "";
  const at::Tensor soft = model_->alignment(make_batch({&tokens}, run_options_.device));
  return soft.defined() ? metrics::format_pharaoh(best_links(word_weights(soft[0], tokens))) : "";
}

// `source<TAB>target` lines: how probable the model finds each target.
void TranslationTask::predict_forced(const Input& input, std::ostream& out) {
  answer_lines(input, out, [&](size_t, std::string_view line) -> Answered {
    const std::optional<Pair> pair = split_pair(line);
    if (!pair)
      throw InvalidArgument(
          "expected source<TAB>target or `source ||| target` for forced decoding");
    const Tokens tokens{read_source(pair->source), target_codec_->encode(prepared(pair->target))};
    check_sentence(tokens.target);
    const at::NoGradGuard no_grad;
    const Batch batch = make_batch({&tokens}, run_options_.device);
    const double log_probability =
        -token_loss(model_->logits(batch), batch, 0).plain.item<double>() *
        static_cast<double>(batch.target_tokens);
    Json fields = {{"answer", log_probability}, {"target_tokens", batch.target_tokens}};
    std::string text = fmt::format("{:.6f}\t{}", log_probability, batch.target_tokens);
    if (run_options_.options.flag("align")) {
      const std::string links = pharaoh(tokens);
      text += "\t" + links;
      fields["alignment"] = links;
    }
    return {text + "\n", [fields] { return fields; }};
  });
}

// Names the words of a source that were not in the training: their translation is a guess.
void TranslationTask::note_unknown(const Input& input, const std::vector<std::string>& lines,
                                   size_t first_number) const {
  if (!input.noted) return;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> words = source_codec_->unknown(prepared(lines[i]));
    if (!words.empty())
      input.noted(fmt::format("{}:{}: never seen in training: {}", input.name, first_number + i + 1,
                              data::listed(words)));
  }
}

// Answers to some lines, all of them or (with an exception) none.
std::vector<Answered> TranslationTask::answers(const std::vector<std::string>& lines,
                                               size_t first_number) {
  const OptionValues& o = run_options_.options;
  nn::BeamOptions options = beam_options();
  options.n_best = o.integer("n_best");
  options.beam = std::max(options.beam, options.n_best);
  options.keep_attention = o.flag("replace_unknown");
  std::vector<Encoded> encoded;
  std::vector<const Encoded*> sources;
  for (const std::string& text : lines) encoded.push_back(read_source(text));
  for (const Encoded& e : encoded) sources.push_back(&e);
  const std::vector<nn::SearchResult> found = translate(sources, options);
  std::vector<Answered> out;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string text;
    Json all = Json::array();
    for (const nn::Hypothesis& one : found[i].n_best) {
      const std::string said = text_of(one, encoded[i], lines[i]);
      all.push_back(
          {{"answer", said}, {"log_probability", one.log_probability}, {"score", one.score}});
      // As Moses writes it: the line's number from 0, the text, log-probability, score.
      text += fmt::format("{} ||| {} ||| {:.6f} ||| {:.6f}\n", first_number + i, said,
                          one.log_probability, one.score);
    }
    Json fields = all.empty() ? Json{{"answer", ""}} : all[0];
    if (options.n_best > 1) {
      fields["n_best"] = all;
    } else {
      text = fields["answer"].get<std::string>();
      if (o.flag("align") && !text.empty()) {
        fields["alignment"] = pharaoh({encoded[i], target_codec_->encode(text)});
        text += " ||| " + fields["alignment"].get<std::string>();
      }
      text += "\n";
    }
    out.push_back({text, [fields] { return fields; }});
  }
  return out;
}

void TranslationTask::predict(Input input, std::ostream& out) {
  // Empty if a line is refused: then each is answered by itself.
  const auto together = [&](const std::vector<std::string>& lines,
                            size_t first_number) -> std::optional<std::vector<Answered>> {
    try {
      return answers(lines, first_number);
    } catch (const InvalidArgument&) {
      return std::nullopt;
    }
  };
  if (run_options_.options.flag("forced")) return predict_forced(input, out);
  data::LineReader reader(input.stream, input.name, input.before);
  std::vector<std::string> lines = reader.next_lines(kLinesTogether);
  for (size_t number = input.before; !lines.empty(); lines = reader.next_lines(kLinesTogether)) {
    if (const auto all = together(lines, number)) {
      note_unknown(input, lines, number);
      for (const Answered& one : *all) write_answer(out, ++number, one);
      continue;
    }
    for (const std::string& one : lines) {
      answer_line(input, ++number, one, out, [&](size_t, std::string_view text) {
        Answered answered = answers({std::string(text)}, number - 1)[0];
        note_unknown(input, {std::string(text)}, number - 1);
        return answered;
      });
    }
  }
}

}  // namespace fovea::translate
