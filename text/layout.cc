#include "text/layout.h"

#include <algorithm>
#include <array>
#include <span>

#include "data/formats/text.h"

namespace fovea::text {
namespace {

constexpr std::array<std::string_view, 13> kLabels = {
    "label", "labels", "class",  "category", "sentiment", "target", "polarity",
    "topic", "tag",    "intent", "rating",   "stars",     "genre"};
constexpr std::array<std::string_view, 10> kTexts = {"text",    "texts",   "sentence", "sentences",
                                                     "review",  "content", "message",  "document",
                                                     "comment", "body"};

std::vector<std::string> parted(std::string_view line, char separator) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(separator, at), line.size());
    out.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Without the quotes some programs put around every name.
std::string plain(std::string_view cell) {
  cell = data::trimmed(cell);
  if (cell.size() >= 2 && cell.starts_with('"') && cell.ends_with('"'))
    cell = cell.substr(1, cell.size() - 2);
  return data::lower_ascii(cell);
}

// The lines of a text, as data::each_line has them; none is longer than memory, so none is copied.
std::vector<std::string_view> lines_in(std::string_view text) {
  std::vector<std::string_view> out;
  const bool feeds = text.find('\n') != std::string_view::npos;
  while (!text.empty()) {
    const size_t end = std::min(text.find(feeds ? '\n' : '\r'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// An array of objects, "[" and then "{": JSON, but not an object on each line.
bool is_json_array(std::string_view text) {
  if (!text.starts_with('[')) return false;
  const size_t next = text.find_first_not_of(" \t\r\n", 1);
  return next != std::string_view::npos && text[next] == '{';
}

bool comma_before_blank(std::string_view line) {
  if (line.starts_with('"')) return line.find("\",") != std::string_view::npos;
  const size_t comma = line.find(',');
  return comma != std::string_view::npos && comma > 0 && comma < line.find(' ');
}

}  // namespace

bool is_label_name(std::string_view name) {
  return std::find(kLabels.begin(), kLabels.end(), plain(name)) != kLabels.end();
}

bool is_text_name(std::string_view name) {
  return std::find(kTexts.begin(), kTexts.end(), plain(name)) != kTexts.end();
}

std::optional<NamedColumns> named_columns(const std::vector<std::string>& cells) {
  const auto find = [&](std::span<const std::string_view> names) {
    for (size_t i = 0; i < cells.size(); ++i)
      if (std::find(names.begin(), names.end(), plain(cells[i])) != names.end())
        return std::optional(i);
    return std::optional<size_t>();
  };
  constexpr std::array<std::string_view, 1> kId = {"id"}, kAspect = {"aspect"};
  std::optional<size_t> label = find(kLabels);
  const std::optional<size_t> text = find(kTexts), id = find(kId), aspect = find(kAspect);
  // Beside an id and a text there is one more: it is the label, whatever it is called.
  if (!label && text && id && cells.size() == 3) label = 3 - *text - *id;
  if (!label || !text) return std::nullopt;
  return NamedColumns{.label = *label, .text = *text, .id = id, .aspect = aspect};
}

std::string unnamed_column(const std::vector<std::string>& cells) {
  const auto some = [&](bool (*says)(std::string_view)) {
    return std::any_of(cells.begin(), cells.end(), says);
  };
  if (some(is_text_name)) return "label (or class, category, topic, …)";
  return some(is_label_name) ? "text (or sentence, message, …)" : "label or text";
}

Form form_of(std::string_view text, const std::string& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::vector<std::string_view> lines = lines_in(text);
  const auto first = std::find_if(lines.begin(), lines.end(), [](std::string_view line) {
    return line.find_first_not_of(' ') != std::string_view::npos;
  });
  if (first == lines.end()) return Form::kSpaced;
  if (first->starts_with('{') || is_json_array(text)) return Form::kJson;
  if (path.ends_with(".csv") || path.ends_with(".csv.gz")) return Form::kCommas;
  if (first->find('\t') != std::string_view::npos) return Form::kTabbed;
  if (named_columns(parted(*first, ','))) return Form::kCommas;
  size_t commas = 0, blank = 0;
  for (const std::string_view line : lines) {
    blank += line.find_first_not_of(' ') == std::string_view::npos;
    commas += comma_before_blank(line);
  }
  return commas > 0 && commas + blank == lines.size() ? Form::kCommas : Form::kSpaced;
}

}  // namespace fovea::text
