#include "systems/pages/lecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "systems/pages/equations.h"
#include "systems/pages/look.h"

namespace fovea::systems {
namespace {

std::string words(std::string name) {
  for (char& c : name)
    if (c == '_') c = ' ';
  return name;
}

// True for "exact", and also for "exact_10" and "gru_exact_10".
bool is_share(const std::string& name) {
  static constexpr std::array kShares = {"accuracy", "analogy", "error",     "exact",
                                         "f1",       "hit",     "precision", "recall"};
  std::istringstream parts(words(name));
  for (std::string part; parts >> part;)
    if (std::find(kShares.begin(), kShares.end(), part) != kShares.end()) return true;
  return false;
}

std::vector<explain::Figure> figures(const Info& info, const Json& report) {
  std::vector<explain::Figure> out;
  if (report.is_null()) return out;
  for (const char* part : {"metrics", "attention"})
    for (const auto& [name, value] : report.at(part).items())
      out.push_back({.name = (std::string(part) == "attention" ? "attention " : "") + words(name),
                     .reached = metric_text(name, value.get<double>())});
  if (!out.empty()) out.front().expected = info.expect;
  return out;
}

}  // namespace

std::string metric_text(const std::string& name, double value) {
  return is_share(name) ? fmt::format("{:.1f} %", 100 * value) : fmt::format("{:.4g}", value);
}

explain::Section lecture(const Run& run, std::vector<explain::Explanation> pictures,
                         const Json& report, const std::string& command) {
  if (auto learned = learning(run)) pictures.push_back(std::move(*learned));
  const Info& info = run.system->info;
  return {.id = info.name,
          .title = info.title,
          .byline = info.paper,
          .prose = info.idea,
          .look = look_at(info.name),
          .equation = mathml(info.equation),
          .code = info.code,
          .command = command,
          .figures = figures(info, report),
          .explanations = std::move(pictures)};
}

}  // namespace fovea::systems
