#include "systems/next_word/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/random.h"
#include "systems/next_word/sentences.h"

namespace fovea::systems::next_word {
namespace {

constexpr size_t kParts = 3;

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> out;
  const std::string text = data::read_file(path);
  data::each_line(std::string_view(text), path, [&](size_t, std::string_view line) {
    if (!data::trimmed(line).empty()) out.emplace_back(line);
  });
  if (out.empty()) throw data::FileError(path, 0, "expected text, found empty lines only");
  return out;
}

std::string joined(const std::vector<std::string>& lines, size_t from, size_t to,
                   std::string_view line_end) {
  std::string out;
  for (size_t i = from; i < to; ++i) {
    if (i > from) out += line_end;
    out += lines[i];
  }
  return out;
}

void put(Documents& to, data::Split split, std::vector<std::string> texts) {
  for (std::string& text : texts) {
    to.splits.of(split).push_back(static_cast<int64_t>(to.texts.size()));
    to.splits.keys.push_back(data::item_key(text));
    to.texts.push_back(std::move(text));
  }
}

void check_parts(size_t count, Unit unit, const std::string& path) {
  if (count >= kParts) return;
  throw data::FileError(
      path, 0,
      unit == Unit::kLine
          ? fmt::format(
                "{} document{}, expected at least {}: one for training, one for validation, "
                "one for test. A line is a document; --set document=file takes the lines "
                "as one text",
                count, count == 1 ? "" : "s", kParts)
          : fmt::format("{} line{}, expected at least {} to cut one text into training, validation "
                        "and test; a folder of train.txt, val.txt and test.txt gives the parts",
                        count, count == 1 ? "" : "s", kParts));
}

}  // namespace

Documents draw_documents(const Source& source, int64_t sentences) {
  Documents out;
  data::Random random(data::mix(source.seed, 38));
  data::SplitRequest request = split_request(source);
  request.test = 0.2;
  for (int64_t i = 0; i < sentences; ++i) {
    out.texts.push_back(fmt::format("{}", fmt::join(draw(random).words, " ")));
    request.keys.push_back(data::item_key(out.texts.back()));
  }
  out.splits = data::split(static_cast<int64_t>(out.texts.size()), request);
  return out;
}

Written written(const Documents& documents) {
  Written out{.data = "sentences.txt", .truth = "truth.jsonl, the place of the word that decides"};
  for (const std::string& text : documents.texts) {
    out.files["sentences.txt"] += text + "\n";
    const Sentence sentence = sentence_of(data::words(text));
    out.files["truth.jsonl"] +=
        Json{{"query", static_cast<int64_t>(sentence.words.size()) - 2},
             {"key", sentence.decides < 0 ? Json(nullptr) : Json(sentence.decides)}}
            .dump() +
        "\n";
  }
  return out;
}

Documents read_documents(const Source& source, Unit unit, std::string_view line_end) {
  Documents out;
  const auto whole = [&](std::vector<std::string> lines) {
    if (unit == Unit::kFile) lines = {joined(lines, 0, lines.size(), line_end)};
    return lines;
  };
  if (std::filesystem::is_directory(source.path)) {
    out.own_parts = true;
    if (!source.all_test) {
      put(out, Split::kTrain, whole(lines_of(source.path + "/train.txt")));
      put(out, Split::kValidation, whole(lines_of(source.path + "/val.txt")));
    }
    put(out, Split::kTest, whole(lines_of(source.path + "/test.txt")));
    return out;
  }
  std::vector<std::string> lines = lines_of(source.path);
  if (source.all_test) {
    put(out, Split::kTest, whole(std::move(lines)));
    return out;
  }
  check_parts(lines.size(), unit, source.path);
  const size_t n = lines.size(), tenth = std::max<size_t>(n / 10, 1);
  if (unit == Unit::kFile) {
    put(out, Split::kTrain, {joined(lines, 0, n - 2 * tenth, line_end)});
    put(out, Split::kValidation, {joined(lines, n - 2 * tenth, n - tenth, line_end)});
    put(out, Split::kTest, {joined(lines, n - tenth, n, line_end)});
    return out;
  }
  data::SplitRequest request = split_request(source);
  for (const std::string& line : lines) request.keys.push_back(data::item_key(line));
  out.splits = data::split(static_cast<int64_t>(n), request);
  out.texts = std::move(lines);
  for (const Split part : {Split::kTrain, Split::kTest})
    if (out.splits.of(part).empty())
      throw data::FileError(source.path, 0,
                            fmt::format("{} documents leave none for {}, expected more of them", n,
                                        data::name_of(part)));
  return out;
}

std::vector<Window> windows_of(const std::vector<int64_t>& ids, int64_t context) {
  std::vector<Window> out;
  const auto last = static_cast<int64_t>(ids.size()) - 1;
  for (int64_t from = 0; from < last; from += context) {
    const int64_t to = std::min(from + context, last);
    out.push_back(
        {{ids.begin() + from, ids.begin() + to}, {ids.begin() + from + 1, ids.begin() + to + 1}});
  }
  return out;
}

}  // namespace fovea::systems::next_word
