#include "data/formats/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "data/files/file.h"
#include "data/files/json.h"
#include "data/nearest.h"

namespace fovea::data {
namespace {

constexpr std::string_view kNoBreakSpace = "\xC2\xA0";

size_t blank_length(std::string_view text, size_t at) {
  const char c = text[at];
  if (c == ' ' || (c >= '\t' && c <= '\r')) return 1;
  return text.substr(at).starts_with(kNoBreakSpace) ? 2 : 0;
}

void add_json(LabelledText& out, size_t line, std::string_view text) {
  const Json item = json_in(text);
  if (!item.is_object() || !item.contains("text") || !item["text"].is_string() ||
      !item.contains("label") || !(item["label"].is_string() || item["label"].is_number()))
    throw FileError(
        out.path, line,
        fmt::format("expected {{\"label\": …, \"text\": \"…\"}}, found {}", shown(text)));
  out.labels.push_back(item["label"].is_string() ? item["label"].get<std::string>()
                                                 : item["label"].dump());
  out.texts.push_back(item["text"].get<std::string>());
}

void add_separated(LabelledText& out, size_t line, std::string_view text, char separator) {
  const size_t end = text.find(separator);
  if (end == 0 || text.empty())
    throw FileError(out.path, line, fmt::format("expected a label, found {}", shown(text)));
  if (end == std::string_view::npos && separator == '\t')
    throw FileError(out.path, line, fmt::format("expected label<TAB>text, found {}", shown(text)));
  out.labels.emplace_back(text.substr(0, end));
  out.texts.emplace_back(end == std::string_view::npos ? "" : text.substr(end + 1));
}

}  // namespace

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    if (const size_t blank = blank_length(text, at)) {
      at += blank;
      continue;
    }
    const size_t start = at;
    while (at < text.size() && !blank_length(text, at)) ++at;
    out.emplace_back(text.substr(start, at - start));
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

LabelledText read_labelled_text(const std::string& path, TextFormat format) {
  const std::string text = read_file(path);
  LabelledText out;
  out.path = path;
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    if (format == TextFormat::kAuto)
      format = content.starts_with('{')                       ? TextFormat::kJsonLines
               : content.find('\t') != std::string_view::npos ? TextFormat::kTab
                                                              : TextFormat::kSpace;
    if (format == TextFormat::kJsonLines)
      add_json(out, line, content);
    else
      add_separated(out, line, content, format == TextFormat::kTab ? '\t' : ' ');
    out.lines.push_back(line);
  });
  return out;
}

Classes classes_of(const std::vector<std::string>& labels) {
  std::set<std::string> distinct(labels.begin(), labels.end());
  Classes out;
  out.names.assign(distinct.begin(), distinct.end());
  const auto number = [](const std::string& name) {
    double value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    return error == std::errc() && end == name.data() + name.size() ? std::optional(value)
                                                                    : std::nullopt;
  };
  if (std::all_of(out.names.begin(), out.names.end(),
                  [&](const auto& name) { return number(name).has_value(); }))
    std::sort(out.names.begin(), out.names.end(),
              [&](const auto& a, const auto& b) { return *number(a) < *number(b); });
  for (const std::string& label : labels)
    out.of.push_back(std::find(out.names.begin(), out.names.end(), label) - out.names.begin());
  return out;
}

std::vector<int64_t> classes_in(const LabelledText& text, const std::vector<std::string>& names) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), text.labels[i]);
    if (found == names.end())
      throw FileError(text.path, text.lines[i],
                      fmt::format("label {}{}: expected one of {}", shown(text.labels[i]),
                                  did_you_mean(text.labels[i], names), fmt::join(names, ", ")));
    out.push_back(found - names.begin());
  }
  return out;
}

ParallelText read_parallel_text(const std::string& source_path, const std::string& target_path) {
  ParallelText out;
  const auto read = [](const std::string& path, std::vector<std::string>& into) {
    const std::string text = read_file(path);
    each_line(std::string_view(text), path,
              [&](size_t, std::string_view line) { into.emplace_back(line); });
  };
  read(source_path, out.source);
  read(target_path, out.target);
  if (out.source.size() != out.target.size())
    throw FileError(target_path, 0,
                    fmt::format("{} lines, expected {} as in {}", out.target.size(),
                                out.source.size(), source_path));
  return out;
}

ParallelText read_parallel_tsv(const std::string& path) {
  ParallelText out;
  const std::string text = read_file(path);
  each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    const size_t last = content.find_last_not_of(" \t");
    if (last == std::string_view::npos) return;
    const size_t tab = content.find('\t');
    if (tab == std::string_view::npos)
      throw FileError(path, line,
                      fmt::format("expected source<TAB>target, found {}", shown(content)));
    const size_t further = std::min(content.find('\t', tab + 1), content.size());
    if (further < last)
      throw FileError(
          path, line,
          fmt::format("expected source<TAB>target, found {} columns: {} (cut -f1,2 takes the "
                      "first two)",
                      1 + std::count(content.begin(), content.end(), '\t'), shown(content)));
    content = content.substr(0, further);
    out.source.emplace_back(content.substr(0, tab));
    out.target.emplace_back(content.substr(tab + 1));
  });
  return out;
}

}  // namespace fovea::data
