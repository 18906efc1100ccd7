#include "data/formats/bags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/split.h"

namespace fovea::data {
namespace {

bool all_empty(const std::vector<std::string>& cells, const std::vector<size_t>& columns) {
  return std::all_of(columns.begin(), columns.end(), [&](size_t c) { return cells[c].empty(); });
}

// What a column is to bags: one of words is no feature.
bool holds_words(const Table& table, size_t column) {
  const bool something = std::any_of(table.rows.begin(), table.rows.end(),
                                     [&](const auto& row) { return !is_missing(row[column]); });
  return something && !table.numeric(column) && !table.mistyped(column);
}

// The columns that are features, in their order, with their names; those of words are left out.
std::vector<size_t> features_of(const Table& table, Bags& out) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < table.header.size(); ++c) {
    const std::string& name = table.header[c];
    if (name == "bag" || name == "label") continue;
    if (holds_words(table, c)) {
      out.left_out.push_back(name);
      continue;
    }
    columns.push_back(c);
    out.columns.push_back(name);
  }
  out.width = static_cast<int64_t>(columns.size());
  return columns;
}

// The rows, each into its bag. `label_of` reads the label of a row.
void read_rows(const Table& table, size_t bag_column, const std::vector<size_t>& columns, Bags& out,
               const std::function<int64_t(size_t row)>& label_of) {
  std::map<std::string, size_t> where;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto& cells = table.rows[row];
    const int64_t label = label_of(row);
    const auto [place, fresh] = where.try_emplace(cells[bag_column], out.size());
    if (fresh) {
      out.names.push_back(place->first);
      out.labels.push_back(label);
      out.features.emplace_back();
    } else if (out.labels[place->second] != label) {
      throw FileError(
          table.path, table.lines[row],
          fmt::format("bag {} has label {} here and {} before, expected one label for all "
                      "rows of a bag",
                      shown(place->first), label, out.labels[place->second]));
    }
    if (all_empty(cells, columns)) continue;
    for (const size_t c : columns)
      out.features[place->second].push_back(
          parse_float(cells[c], "column '" + table.header[c] + "'", table.path, table.lines[row]));
  }
}

// Words that can only mean one of two labels.
constexpr std::array<std::pair<std::string_view, int64_t>, 8> kLabelWords = {{{"yes", 1},
                                                                              {"no", 0},
                                                                              {"true", 1},
                                                                              {"false", 0},
                                                                              {"positive", 1},
                                                                              {"negative", 0},
                                                                              {"pos", 1},
                                                                              {"neg", 0}}};

int64_t label_of(const std::string& cell, const std::string& path, size_t line) {
  const std::string word = lower_ascii(trimmed(cell));
  for (const auto& [name, label] : kLabelWords)
    if (word == name) return label;
  if (!spells_number(cell))
    throw FileError(path, line,
                    fmt::format("column 'label': expected an integer (1: positive, 0), or yes and "
                                "no, true and false, positive and negative, found {}",
                                shown(cell)));
  return parse_integer(cell, "column 'label'", path, line);
}

}  // namespace

Bags read_bags(const std::string& path) {
  const Table table = read_csv(path);
  const auto place_of = [&](const char* name) {
    const auto found = std::find(table.header.begin(), table.header.end(), name);
    if (found == table.header.end() || table.header.size() < 3)
      throw FileError(
          path, 1,
          fmt::format("expected a header with bag, label and at least one feature, found {}",
                      in_short(table.header)));
    return static_cast<size_t>(found - table.header.begin());
  };
  const size_t bag = place_of("bag"), label = place_of("label");
  Bags out;
  const std::vector<size_t> columns = features_of(table, out);
  if (columns.empty())
    throw FileError(path, 1, "expected a column of numbers beside bag and label");
  read_rows(table, bag, columns, out,
            [&](size_t row) { return label_of(table.rows[row][label], path, table.lines[row]); });
  return out;
}

std::string in_words(const Bags& bags) {
  std::map<int64_t, int64_t> of_label;
  for (const int64_t label : bags.labels) ++of_label[label];
  size_t numbers = 0;
  for (const std::vector<float>& features : bags.features) numbers += features.size();
  std::string out =
      count_of(bags.size(), "bag", " of ") +
      count_of(numbers / static_cast<size_t>(std::max<int64_t>(1, bags.width)), "instance", ", ") +
      count_of(bags.width, "feature");
  for (auto one = of_label.rbegin(); one != of_label.rend(); ++one)
    out += fmt::format("{} label {}: {}", one == of_label.rbegin() ? ";" : ",", one->first,
                       one->second);
  return out + left_out_in_words(bags.left_out);
}

std::vector<uint64_t> keys_of(const Bags& bags) {
  std::vector<uint64_t> keys;
  for (const std::string& name : bags.names) keys.push_back(item_key(name));
  return keys;
}

void check_binary(const Bags& bags, const std::string& path) {
  for (size_t i = 0; i < bags.size(); ++i)
    if (bags.labels[i] != 0 && bags.labels[i] != 1)
      throw FileError(
          path, 0,
          fmt::format("bag '{}' has label {}, expected 0 or 1", bags.names[i], bags.labels[i]));
}

void check_both_labels(const Bags& bags, const std::string& path) {
  const bool one_label = std::adjacent_find(bags.labels.begin(), bags.labels.end(),
                                            std::not_equal_to<>()) == bags.labels.end();
  if (one_label && !bags.labels.empty())
    throw FileError(
        path, 0,
        fmt::format("every bag has label {}, expected bags of both labels", bags.labels.front()));
}

std::string bags_csv(const Bags& bags) {
  const auto width = static_cast<size_t>(bags.width);
  std::string text = "bag,label";
  for (size_t f = 0; f < width; ++f) text += fmt::format(",f{}", f);
  text += "\n";
  for (size_t bag = 0; bag < bags.size(); ++bag) {
    const std::string start = fmt::format("{},{}", bags.names[bag], bags.labels[bag]);
    const std::vector<float>& values = bags.features[bag];
    if (values.empty()) text += start + std::string(width, ',') + "\n";
    for (size_t at = 0; at < values.size(); at += width) {
      text += start;
      for (size_t f = 0; f < width; ++f) text += fmt::format(",{}", values[at + f]);
      text += "\n";
    }
  }
  return text;
}

Bags parse_unlabelled_bags(const std::string& text, const std::string& name) {
  const Table table = parse_csv(text, name);
  const size_t bag = table.column("bag");
  Bags out;
  const std::vector<size_t> columns = features_of(table, out);
  read_rows(table, bag, columns, out, [](size_t) { return 0; });
  return out;
}

void arrange(Bags& bags, const Features& wanted, const std::string& path) {
  for (const std::string& name : wanted.names)
    if (std::find(bags.left_out.begin(), bags.left_out.end(), name) != bags.left_out.end())
      throw FileError(path, 1,
                      fmt::format("column {}: expected numbers, as in training", shown(name)));
  const std::vector<size_t> places = places_of(wanted, bags.columns, path);
  if (bags.width != wanted.width)
    throw FileError(
        path, 1,
        count_of(bags.width, "feature", fmt::format(", expected {} as in training", wanted.width)));
  if (places.empty()) return;
  for (auto& values : bags.features) reorder(values, places);
  bags.columns = wanted.names;
}

Features kept_features(int64_t width, std::vector<std::string> names) {
  if (!names.empty() && static_cast<int64_t>(names.size()) != width)
    throw InvalidArgument(
        fmt::format("columns: {} names, expected {}, one for each feature", names.size(), width));
  return {.width = width, .names = std::move(names)};
}

Scaling kept_scaling(const std::vector<double>& mean, const std::vector<double>& deviation,
                     int64_t width) {
  const auto check = [&](const char* name, size_t count) {
    if (static_cast<int64_t>(count) != width)
      throw InvalidArgument(
          fmt::format("{}: {} numbers, expected {}, one for each feature", name, count, width));
  };
  check("mean", mean.size());
  check("deviation", deviation.size());
  Scaling out;
  for (const double m : mean) out.mean.push_back(static_cast<float>(m));
  for (const double d : deviation) out.deviation.push_back(static_cast<float>(d));
  return out;
}

Scaling scaling_of(const Bags& bags, const std::vector<int64_t>& chosen) {
  const auto width = static_cast<size_t>(bags.width);
  const auto for_each = [&](const auto& body) {
    for (const int64_t bag : chosen) {
      const auto& values = bags.features[static_cast<size_t>(bag)];
      for (size_t i = 0; i < values.size(); ++i) body(i % width, values[i]);
    }
  };
  double count = 0;
  for (const int64_t bag : chosen)
    count += static_cast<double>(bags.features[static_cast<size_t>(bag)].size() / width);
  std::vector<double> mean(width), variance(width);
  for_each([&](size_t f, float x) { mean[f] += x / count; });
  // Deviations are from the mean as float, the number that is subtracted later. So a constant
  // feature has deviation 0 exactly.
  Scaling out;
  for (const double m : mean) out.mean.push_back(static_cast<float>(m));
  for_each([&](size_t f, float x) {
    const double off = x - out.mean[f];
    variance[f] += off * off / count;
  });
  for (const double v : variance) out.deviation.push_back(static_cast<float>(std::sqrt(v)));
  return out;
}

void apply(const Scaling& scaling, Bags& bags) {
  const auto width = static_cast<size_t>(bags.width);
  for (const size_t kept : {scaling.mean.size(), scaling.deviation.size()})
    if (kept != width)
      throw InvalidArgument(fmt::format("features: {} in a row, expected {}", width, kept));
  for (auto& values : bags.features)
    for (size_t i = 0; i < values.size(); ++i) {
      const float deviation = scaling.deviation[i % width];
      values[i] = deviation > 1e-12f ? (values[i] - scaling.mean[i % width]) / deviation : 0.0f;
    }
}

std::vector<std::string> telling_numbers(const std::vector<float>& bag, const Features& features,
                                         const Scaling& scaling) {
  std::vector<std::string> out;
  const auto width = static_cast<size_t>(features.width);
  for (size_t from = 0; from + width <= bag.size(); from += width) {
    const float* row = bag.data() + from;
    const auto most = static_cast<size_t>(
        std::max_element(row, row + width,
                         [](float a, float b) { return std::abs(a) < std::abs(b); }) -
        row);
    out.push_back(fmt::format("{} {:.3g}", features.names[most],
                              row[most] * scaling.deviation[most] + scaling.mean[most]));
  }
  return out;
}

}  // namespace fovea::data
