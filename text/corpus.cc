#include "text/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "data/file.h"
#include "data/random.h"
#include "data/text.h"

namespace fovea::text {
namespace {

namespace fs = std::filesystem;
using data::FileError;

constexpr double kValidationShare = 0.1;

std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> out;
  size_t start = 0;
  for (size_t tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t', start)) {
    out.emplace_back(line.substr(start, tab - start));
    start = tab + 1;
  }
  out.emplace_back(line.substr(start));
  return out;
}

Document from_json(std::string_view line, const std::string& path, size_t number) {
  const Json item = Json::parse(line, nullptr, false);
  const auto wrong = [&]() {
    return FileError(
        path, number,
        fmt::format("expected {{\"label\": …, \"text\": \"…\"}}, found {}", data::shown(line)));
  };
  if (!item.is_object() || !item.contains("label") || !item.contains("text")) throw wrong();
  Document out;
  if (item["label"].is_string())
    out.label = item["label"].get<std::string>();
  else if (item["label"].is_number())
    out.label = item["label"].dump();
  else
    throw wrong();
  if (item["text"].is_string()) {
    out.texts = {item["text"].get<std::string>()};
  } else if (item["text"].is_array()) {
    for (const Json& sentence : item["text"]) {
      if (!sentence.is_string()) throw wrong();
      out.texts.push_back(sentence.get<std::string>());
    }
  } else {
    throw wrong();
  }
  if (item.contains("aspect")) {
    if (!item["aspect"].is_string()) throw wrong();
    out.aspect = item["aspect"].get<std::string>();
  }
  for (const auto& [name, places] : {std::pair("true_words", &out.truth_words),
                                     std::pair("true_sentences", &out.truth_sentences)}) {
    const Json given = item.value(name, Json::array());
    const auto is_place = [](const Json& place) {
      return place.is_number_unsigned() &&
             place.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
    };
    if (!given.is_array() || !std::all_of(given.begin(), given.end(), is_place))
      throw FileError(path, number,
                      fmt::format("expected \"{}\" to list places from 0, found {}", name,
                                  data::shown(given.dump())));
    for (const Json& place : given) places->push_back(place.get<int32_t>());
  }
  out.mixed = item.value("mixed", Json(false)) == Json(true);
  return out;
}

Document from_columns(std::string_view line, Columns columns, const std::string& path,
                      size_t number) {
  std::vector<std::string> cells = columns_of(line);
  const auto expect = [&](bool right, const char* what) {
    if (!right)
      throw FileError(path, number,
                      fmt::format("{} column{}, expected {}: {}", cells.size(),
                                  cells.size() == 1 ? "" : "s", what, data::shown(line)));
  };
  Document out;
  switch (columns) {
    case Columns::kLabelAspectText:
      expect(cells.size() == 3, "3 (label<TAB>aspect<TAB>text)");
      out.aspect = cells[1];
      out.texts = {cells[2]};
      break;
    case Columns::kLabelIdSentences:
      expect(cells.size() >= 3, "at least 3 (label<TAB>id<TAB>text, or a sentence a column)");
      out.id = cells[1];
      out.texts.assign(cells.begin() + 2, cells.end());
      break;
    default:
      expect(cells.size() == 2, "2 (label<TAB>text)");
      out.texts = {cells[1]};
  }
  out.label = cells[0];
  return out;
}

Document from_spaced(std::string_view line) {
  const size_t end = std::min(line.find(' '), line.size());
  Document out;
  out.label = line.substr(0, end);
  out.texts.emplace_back(line.substr(std::min(end + 1, line.size())));
  return out;
}

std::string polarity(const Document& document, double above, const std::string& path) {
  const double value = data::parse_number(document.label, "label", path, document.line);
  if (value == above)
    throw FileError(path, document.line,
                    fmt::format("label {}, expected above or below {}", document.label, above));
  return value > above ? "positive" : "negative";
}

std::vector<Document> read_documents(const std::string& path, const ReadRequest& request) {
  std::vector<Document> out;
  const std::string text = data::read_file(path);
  Columns columns = request.columns;
  enum class Form { kUnknown, kJson, kSpaced, kTabbed } form = Form::kUnknown;
  data::each_line(std::string_view(text), path, [&](size_t number, std::string_view line) {
    if (form == Form::kUnknown) {
      const auto tabs = std::count(line.begin(), line.end(), '\t');
      form = line.starts_with('{')                    ? Form::kJson
             : tabs == 0 && columns == Columns::kAuto ? Form::kSpaced
                                                      : Form::kTabbed;
      if (columns == Columns::kAuto) columns = tabs > 1 ? request.of_three : Columns::kLabelText;
    }
    Document document = form == Form::kJson     ? from_json(line, path, number)
                        : form == Form::kSpaced ? from_spaced(line)
                                                : from_columns(line, columns, path, number);
    document.line = number;
    if (document.label.empty())
      throw FileError(path, number, fmt::format("expected a label, found {}", data::shown(line)));
    if (!std::isnan(request.positive_above))
      document.label = polarity(document, request.positive_above, path);
    out.push_back(std::move(document));
  });
  return out;
}

// The file of a part: folder/train.tsv.gz, or stem.train.gz.
std::string part_file(const fs::path& path, const std::string& part) {
  const bool folder = fs::is_directory(path);
  const std::string start = (folder ? part : path.filename().string() + "." + part) + ".";
  std::vector<std::string> found;
  const fs::path where = folder                   ? path
                         : path.has_parent_path() ? path.parent_path()
                                                  : fs::path(".");
  if (fs::is_directory(where))
    for (const auto& entry : fs::directory_iterator(where))
      if (entry.path().filename().string().starts_with(start) && entry.is_regular_file())
        found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  if (found.size() > 1)
    throw FileError(
        path.string(), 0,
        fmt::format("both {} and {} could be its {} part, expected one", found[0], found[1], part));
  return found.empty() ? "" : found[0];
}

std::string key_of(const Document& document) {
  std::string key;
  for (const std::string& text : document.texts) key += text + '\n';
  return key;
}

// 0 to 9 where ids are Pang & Lee's cv000 … cv999; otherwise -1.
int64_t published_fold(const std::string& id) {
  const bool matches =
      id.size() >= 5 && id.starts_with("cv") &&
      std::all_of(id.begin() + 2, id.begin() + 5, [](char c) { return c >= '0' && c <= '9'; });
  return matches ? id[2] - '0' : -1;
}

// A share of `from`, drawn by the seed, becomes the validation split.
void set_aside(data::Splits& splits, uint64_t seed) {
  data::Random random(data::mix(seed, 0x7A11));
  random.shuffle(splits.train);
  const auto count = static_cast<std::ptrdiff_t>(
      std::lround(kValidationShare * static_cast<double>(splits.train.size())));
  splits.validation.assign(splits.train.end() - count, splits.train.end());
  splits.train.resize(splits.train.size() - static_cast<size_t>(count));
  std::sort(splits.train.begin(), splits.train.end());
  std::sort(splits.validation.begin(), splits.validation.end());
}

void split_one_file(Corpus& corpus, const Source& source) {
  const auto& all = corpus.documents;
  if (source.all_test) {
    corpus.splits = data::all_for_test(all.size());
    return;
  }
  if (source.folds == 10 && std::all_of(all.begin(), all.end(), [](const Document& d) {
        return published_fold(d.id) >= 0;
      })) {
    for (size_t i = 0; i < all.size(); ++i)
      (published_fold(all[i].id) == source.fold ? corpus.splits.test : corpus.splits.train)
          .push_back(static_cast<int64_t>(i));
    set_aside(corpus.splits, source.seed);
    return;
  }
  std::vector<std::string> labels, keys;
  for (const Document& document : all) {
    labels.push_back(document.label);
    keys.push_back(key_of(document));
  }
  corpus.splits =
      data::split(static_cast<int64_t>(all.size()), {.validation = kValidationShare,
                                                     .fold = source.fold,
                                                     .folds = source.folds,
                                                     .seed = source.seed,
                                                     .keys = keys,
                                                     .classes = data::classes_of(labels).of});
}

void read_parts(Corpus& corpus, const ReadRequest& request) {
  const Source& source = request.source;
  const auto add = [&](const std::string& file, std::vector<int64_t>& into) {
    for (Document& document : read_documents(file, request)) {
      into.push_back(static_cast<int64_t>(corpus.documents.size()));
      corpus.documents.push_back(std::move(document));
    }
  };
  const std::string test = part_file(source.path, "test");
  if (test.empty())
    throw FileError(
        source.path, 0,
        "no part called test, expected train.* and test.* (and perhaps dev.* or val.*)");
  if (source.folds > 0)
    throw FileError(
        source.path, 0,
        "--folds: this data has a test part of its own; give one file to cross-validate");
  if (!source.all_test) {
    add(part_file(source.path, "train"), corpus.splits.train);
    std::string validation = part_file(source.path, "dev");
    if (validation.empty()) validation = part_file(source.path, "val");
    if (!validation.empty())
      add(validation, corpus.splits.validation);
    else
      set_aside(corpus.splits, source.seed);
  }
  add(test, corpus.splits.test);
}

}  // namespace

Columns columns_named(const std::string& name) {
  if (name == "label,text") return Columns::kLabelText;
  if (name == "label,id,sentences") return Columns::kLabelIdSentences;
  if (name == "label,aspect,text") return Columns::kLabelAspectText;
  return Columns::kAuto;
}

Corpus read_corpus(const ReadRequest& request) {
  Corpus corpus;
  const fs::path path = request.source.path;
  corpus.path = path.string();
  const bool parts = !fs::is_regular_file(path) && !part_file(path, "train").empty();
  if (parts) {
    read_parts(corpus, request);
  } else {
    corpus.documents = read_documents(corpus.path, request);
    split_one_file(corpus, request.source);
  }
  return corpus;
}

std::string json_line(const Document& document) {
  Json line = {{"label", document.label}};
  if (!document.aspect.empty()) line["aspect"] = document.aspect;
  line["text"] = document.texts.size() == 1 ? Json(document.texts[0]) : Json(document.texts);
  if (!document.truth_words.empty()) line["true_words"] = document.truth_words;
  if (!document.truth_sentences.empty()) line["true_sentences"] = document.truth_sentences;
  if (document.mixed) line["mixed"] = true;
  return line.dump();
}

Corpus compose_hidden(const std::string& folder, uint64_t seed, int64_t documents) {
  constexpr int64_t kValidation = 500, kTest = 1000;
  const ReadRequest plain{.positive_above = std::nan("")};
  const auto file = [&](const char* name) {
    for (const char* ending : {".all.gz", ".all"})
      if (const fs::path path = fs::path(folder) / (std::string(name) + ending);
          fs::is_regular_file(path))
        return path.string();
    throw FileError(
        folder, 0,
        fmt::format("no {}.all or {}.all.gz, expected the folder of MR and SUBJ", name, name));
  };
  const std::vector<Document> polar = read_documents(file("rt-polarity"), plain),
                              subj = read_documents(file("subj"), plain);
  // What a split may draw from: polar sentences of either class, and filler.
  struct Pool {
    std::vector<std::string> polar[2], filler;
  };
  Pool pools[3];
  data::Random random(data::mix(seed, 0x41D));
  const auto deal = [&](std::vector<std::string> all, auto&& place) {
    random.shuffle(all);
    for (size_t i = 0; i < all.size(); ++i)
      place(pools[i % 10 < 7 ? 0 : i % 10 == 7 ? 1 : 2]).push_back(std::move(all[i]));
  };
  std::vector<std::string> of_class[2], filler;
  for (const Document& d : polar) of_class[d.label == "1"].push_back(d.texts[0]);
  for (const Document& d : subj)
    if (d.label == "1") filler.push_back(d.texts[0]);  // 1 is objective
  for (int label = 0; label < 2; ++label)
    deal(
        of_class[label], [label](Pool & pool) -> auto& { return pool.polar[label]; });
  deal(
      filler, [](Pool & pool) -> auto& { return pool.filler; });

  Corpus corpus;
  corpus.path = folder;
  const auto compose = [&](int64_t count, const Pool& pool, std::vector<int64_t>& split) {
    for (int64_t n = 0; n < count; ++n) {
      Document document;
      const int label = static_cast<int>(n % 2);
      document.label = label ? "positive" : "negative";
      const size_t plain_count = 5 + random.below(5), hidden = 1 + random.below(3);
      std::vector<std::pair<std::string, bool>> chosen;
      for (size_t i = 0; i < plain_count; ++i)
        chosen.emplace_back(random.choice(pool.filler), false);
      for (size_t i = 0; i < hidden; ++i)
        chosen.emplace_back(random.choice(pool.polar[label]), true);
      random.shuffle(chosen);
      for (const auto& [text, truth] : chosen) {
        if (truth) document.truth_sentences.push_back(static_cast<int32_t>(document.texts.size()));
        document.texts.push_back(text);
      }
      split.push_back(static_cast<int64_t>(corpus.documents.size()));
      corpus.documents.push_back(std::move(document));
    }
  };
  compose(documents, pools[0], corpus.splits.train);
  compose(kValidation, pools[1], corpus.splits.validation);
  compose(kTest, pools[2], corpus.splits.test);
  return corpus;
}

}  // namespace fovea::text
