#include "text/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "data/files/file.h"
#include "data/files/json.h"
#include "data/formats/csv.h"
#include "data/formats/text.h"
#include "text/layout.h"

namespace fovea::text {
namespace {

using data::FileError;

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

// The field of that name; otherwise the one field whose name says as much.
const Json* field_of(const Json& item, const char* name, bool (*says)(std::string_view)) {
  if (const auto found = item.find(name); found != item.end()) return &*found;
  for (const auto& [key, value] : item.items())
    if (says(key)) return &value;
  return nullptr;
}

Document from_json(std::string_view line, const std::string& path, size_t number) {
  const Json item = data::json_in(line);
  const auto wrong = [&]() {
    return FileError(path, number,
                     fmt::format("expected {{\"label\": …, \"text\": \"…\"}} (or \"topic\", "
                                 "\"message\" and the like) on each line, found {}",
                                 data::shown(line)));
  };
  if (!item.is_object()) throw wrong();
  const Json* label = field_of(item, "label", is_label_name);
  const Json* text = field_of(item, "text", is_text_name);
  if (!label || !text) throw wrong();
  Document out;
  if (label->is_string())
    out.label = label->get<std::string>();
  else if (label->is_number())
    out.label = label->dump();
  else
    throw wrong();
  if (text->is_string()) {
    out.texts = {text->get<std::string>()};
  } else if (text->is_array()) {
    for (const Json& sentence : *text) {
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

// The cells of a row as the header has them; without one, label and text.
Document from_cells(const std::vector<std::string>& cells,
                    const std::optional<NamedColumns>& header, const std::string& path,
                    size_t number) {
  const NamedColumns where = header.value_or(NamedColumns{.label = 0, .text = 1});
  const size_t most =
      std::max({where.label, where.text, where.id.value_or(0), where.aspect.value_or(0)});
  if (cells.size() <= most || (!header && cells.size() != 2))
    throw FileError(path, number,
                    fmt::format("{} field{}, expected {}: a text with commas stands in quotes",
                                cells.size(), cells.size() == 1 ? "" : "s",
                                header ? "those of the header"
                                       : "2 (label,text), or a header that names label and text"));
  Document out;
  out.label = data::trimmed(cells[where.label]);
  out.texts = {cells[where.text]};
  if (where.id) out.id = cells[*where.id];
  if (where.aspect) out.aspect = cells[*where.aspect];
  return out;
}

// The columns that the first record names. Of two columns one known name is enough, if it is that of the
// text and neither name is an entry of its column.
std::optional<NamedColumns> header_of(const std::vector<data::Record>& records) {
  if (records.empty()) return std::nullopt;
  const std::vector<std::string>& names = records[0].fields;
  if (const auto named = named_columns(names)) return named;
  if (names.size() != 2 || is_text_name(names[0]) == is_text_name(names[1])) return std::nullopt;
  for (size_t row = 1; row < records.size(); ++row)
    for (size_t c = 0; c < std::min<size_t>(2, records[row].fields.size()); ++c)
      if (records[row].fields[c] == names[c]) return std::nullopt;
  const size_t text = is_text_name(names[0]) ? 0 : 1;
  return NamedColumns{.label = 1 - text, .text = text};
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

}  // namespace

Columns columns_named(const std::string& name) {
  if (name == "label,text") return Columns::kLabelText;
  if (name == "label,id,sentences") return Columns::kLabelIdSentences;
  if (name == "label,aspect,text") return Columns::kLabelAspectText;
  return Columns::kAuto;
}

std::vector<Document> read_documents(const std::string& path, const ReadRequest& request) {
  std::vector<Document> out;
  const std::string text = data::read_file(path);
  const auto add = [&](Document document, size_t number, std::string_view line) {
    document.line = number;
    if (document.label.empty())
      throw FileError(path, number, fmt::format("expected a label, found {}", data::shown(line)));
    if (!std::isnan(request.positive_above))
      document.label = polarity(document, request.positive_above, path);
    out.push_back(std::move(document));
  };
  Form form = form_of(text, path);
  if (form == Form::kSpaced && request.columns != Columns::kAuto) form = Form::kTabbed;
  if (form == Form::kCommas) {
    const std::vector<data::Record> records = data::csv_records(text, path);
    const std::optional<NamedColumns> header = header_of(records);
    if (!header && !records.empty() && records[0].fields.size() > 2)
      throw FileError(
          path, records[0].line,
          fmt::format(
              "{} columns, of which none is called {}: expected label,text, or a first line "
              "that names both, found {}: a text with commas stands in quotes",
              records[0].fields.size(), unnamed_column(records[0].fields),
              data::shown(fmt::format("{}", fmt::join(records[0].fields, ", ")))));
    for (size_t i = header ? 1 : 0; i < records.size(); ++i)
      add(from_cells(records[i].fields, header, path, records[i].line), records[i].line,
          records[i].fields[0]);
  } else {
    Columns columns = request.columns;
    std::optional<NamedColumns> header;
    bool first = true;
    data::each_line(std::string_view(text), path, [&](size_t number, std::string_view line) {
      if (line.find_first_not_of(' ') == std::string_view::npos) return;  // says nothing
      const bool may_name_columns = std::exchange(first, false);
      if (form == Form::kJson) return add(from_json(line, path, number), number, line);
      if (form == Form::kSpaced) {
        if (!may_name_columns ||
            !named_columns({std::string(line.substr(0, line.find(' '))),
                            std::string(line.substr(std::min(line.find(' ') + 1, line.size())))}))
          add(from_spaced(line), number, line);
        return;
      }
      const std::vector<std::string> cells = columns_of(line);
      if (may_name_columns) {
        if (columns == Columns::kAuto)
          columns = cells.size() > 2 ? request.of_three : Columns::kLabelText;
        if ((header = named_columns(cells))) return;
      }
      add(header && (cells.size() == 2 || header->label != 0)
              ? from_cells(cells, header, path, number)
              : from_columns(line, columns, path, number),
          number, line);
    });
  }
  if (out.empty()) throw FileError(path, 0, "a header and no lines after it");
  return out;
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

}  // namespace fovea::text
