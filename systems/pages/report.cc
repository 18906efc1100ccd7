#include "systems/pages/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "io/sha256.h"
#include "data/split.h"
#include "fovea/error.h"

namespace fovea::systems {
namespace {

// "exact_15" before "exact_100": runs of digits count as numbers.
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      if (digit(a[i]) && digit(b[j])) {
        uint64_t first = 0, second = 0;
        while (i < a.size() && digit(a[i]))
          first = 10 * first + static_cast<uint64_t>(a[i++] - '0');
        while (j < b.size() && digit(b[j]))
          second = 10 * second + static_cast<uint64_t>(b[j++] - '0');
        if (first != second) return first < second;
      } else if (a[i] != b[j]) {
        return a[i] < b[j];
      } else {
        ++i, ++j;
      }
    }
    return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
  }
};
template <class Value>
using Figures = std::map<std::string, Value, ByNumber>;

// The mean of each figure over the members in which it is defined.
Figures<std::vector<double>> gathered(const std::vector<Json>& reports, const char* part) {
  Figures<std::vector<double>> out;
  for (const Json& one : reports)
    for (const auto& [name, value] : one.at(part).items()) out[name].push_back(value.get<double>());
  return out;
}

// The notes that every report has.
std::vector<std::string> shared_notes(const std::vector<Json>& reports) {
  std::vector<std::string> out;
  for (const Json& note : reports.front().value("notes", Json::array()))
    if (std::all_of(reports.begin(), reports.end(), [&](const Json& one) {
          const Json notes = one.value("notes", Json::array());
          return std::find(notes.begin(), notes.end(), note) != notes.end();
        }))
      out.push_back(note);
  return out;
}

std::vector<std::string> fields_of(const std::string& signature) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= signature.size();) {
    const size_t end = std::min(signature.find('|', at), signature.size());
    out.push_back(signature.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// One entry for the means of several: if they differ, all values, or their number and sum.
std::string signature_of_means(const std::vector<std::string>& signatures) {
  constexpr size_t kListed = 5;
  std::vector<std::string> out = fields_of(signatures.front());
  for (size_t field = 0; field < out.size(); ++field) {
    const std::string name = out[field].substr(0, out[field].find(':') + 1);
    std::vector<std::string> values;
    for (const std::string& one : signatures) {
      const std::string value = fields_of(one).at(field).substr(name.size());
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    const std::string all = fmt::format("{}", fmt::join(values, ","));
    out[field] = name + (values.size() <= kListed ? all
                                                  : fmt::format("{}-values-{}", values.size(),
                                                                io::sha256(all).substr(0, 12)));
  }
  return fmt::format("{}", fmt::join(out, "|"));
}

}  // namespace

Json report(const Json& config, const std::string& data, Split split, const Evaluation& evaluation,
            const std::string& signature, Clock::time_point start) {
  for (const Metrics* figures : {&evaluation.metrics, &evaluation.attention})
    for (const auto& [name, value] : *figures)
      if (!std::isfinite(value))
        throw InvalidArgument(fmt::format(
            "{}: {}, expected a finite number: has the training diverged?", name, value));
  Json out = {{"system", config.at("system")},
              {"data", !data.empty()                 ? Json(data)
                       : config.at("data").is_null() ? Json("generated")
                                                     : config.at("data")},
              {"split", data::name_of(evaluation.of.value_or(split))},
              {"items", evaluation.items},
              {"seed", config.at("seed")},
              {"metrics", Figures<double>(evaluation.metrics.begin(), evaluation.metrics.end())},
              {"attention", evaluation.attention},
              {"seconds", std::chrono::duration<double>(Clock::now() - start).count()},
              {"signature", signature}};
  if (!evaluation.notes.empty()) out["notes"] = evaluation.notes;
  return out;
}

Json summary(const std::vector<Json>& reports) {
  Json out = reports.front();
  double seconds = 0;
  for (const Json& one : reports) seconds += one.at("seconds").get<double>();
  out["seconds"] = seconds;
  std::vector<std::string> signatures;
  for (const Json& one : reports) signatures.push_back(one.at("signature"));
  out["signature"] = signature_of_means(signatures);
  std::vector<std::string> notes = shared_notes(reports);
  out.erase("notes");
  out["spread"] = {{"metrics", Json::object()}, {"attention", Json::object()}};
  for (const char* part : {"metrics", "attention"}) {
    out[part] = Json::object();
    for (const auto& [name, values] : gathered(reports, part)) {
      double sum = 0, squares = 0;
      for (const double value : values) sum += value;
      const auto n = static_cast<double>(values.size());
      for (const double value : values) squares += std::pow(value - sum / n, 2);
      out[part][name] = sum / n;
      out["spread"][part][name] = values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0.0;
      if (values.size() < reports.size())
        notes.push_back(fmt::format("{}: the mean of {} of {} runs, undefined in the others", name,
                                    values.size(), reports.size()));
    }
  }
  if (!notes.empty()) out["notes"] = notes;
  out["runs"] = reports;
  return out;
}

}  // namespace fovea::systems
