#include "cli/output/figures_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/files/file.h"

namespace fovea::cli {
namespace {

constexpr const char* kOfAttention = "attention ";

// The part of a report that contains a figure, and its name there.
std::pair<std::string, std::string> place_of(const std::string& figure) {
  if (figure.starts_with(kOfAttention))
    return {"attention", figure.substr(std::string(kOfAttention).size())};
  return {"metrics", figure};
}

size_t letters(const std::string& text) {  // not bytes
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::vector<std::string> figures_of(const std::vector<Compared>& all) {
  std::vector<std::string> names;
  for (const char* part : {"metrics", "attention"})
    for (const Compared& one : all)
      for (const auto& [name, value] : one.report.at(part).items()) {
        const std::string figure = (std::string(part) == "attention" ? kOfAttention : "") + name;
        if (std::find(names.begin(), names.end(), figure) == names.end()) names.push_back(figure);
      }
  return names;
}

std::string figure_text(const Compared& one, const std::string& figure) {
  const auto [part, name] = place_of(figure);
  const Json& figures = one.report.at(part);
  if (!figures.contains(name)) return "";
  std::string text = fmt::format("{:.6g}", figures.at(name).get<double>());
  if (one.report.contains("spread"))
    text += fmt::format(" ± {:.3g}", one.report["spread"][part].value(name, 0.0));
  return text;
}

std::string aligned(std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows)
    for (std::string& text : row) text = data::visible(text);
  std::vector<size_t> wide(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) wide[i] = std::max(wide[i], letters(row[i]));
  std::string out;
  for (const auto& row : rows) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i)
      text += row[i] + std::string(wide[i] + 2 - letters(row[i]), ' ');
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace fovea::cli
