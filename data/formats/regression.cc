#include "data/formats/regression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/split.h"

namespace fovea::data {
namespace {

std::string missing_cell(const Table& table, size_t column, const std::string& cell) {
  return cell.empty() ? fmt::format("column '{}' is empty", table.header[column])
                      : fmt::format("column '{}': expected a finite number, found {}",
                                    table.header[column], shown(cell));
}

bool is_row_number(const Table& table) {
  static const std::set<std::string> kNames = {"",   "rownames", "unnamed: 0", "id",  "index",
                                               "no", "no.",      "nr",         "nr.", "#"};
  if (!kNames.contains(lower_ascii(table.header[0]))) return false;
  for (size_t row = 0; row < table.rows.size(); ++row)
    if (table.rows[row][0] != std::to_string(row + 1) && table.rows[row][0] != std::to_string(row))
      return false;
  return true;
}

void check_not_mistyped(const Table& table, size_t column, std::string_view otherwise) {
  if (const std::optional<size_t> row = table.mistyped(column))
    throw FileError(table.path, table.lines[*row],
                    fmt::format("column '{}': expected a number, found {}; {}",
                                table.header[column], shown(table.rows[*row][column]), otherwise));
}

std::vector<size_t> input_columns(const Table& table, const std::vector<std::string>& names,
                                  size_t target, Regression& out) {
  std::vector<size_t> columns;
  for (const std::string& name : names) columns.push_back(table.column(name));
  for (size_t c = 0; c < (names.empty() ? 0 : table.header.size()); ++c)
    if (c != target && !table.numeric(c)) out.left_out.push_back(table.header[c]);
  if (names.empty()) {
    if (target != 0 && is_row_number(table)) out.row_numbers = table.header[0];
    for (size_t c = out.row_numbers ? 1 : 0; c < table.header.size(); ++c) {
      if (c == target) continue;
      check_not_mistyped(table, c, "--set x=COLUMN,… leaves the column out");
      if (table.numeric(c))
        columns.push_back(c);
      else
        out.left_out.push_back(table.header[c]);
    }
    if (columns.empty() && out.row_numbers && table.numeric(0)) {  // all there is: time, perhaps
      out.row_numbers.reset();
      columns.push_back(0);
    }
    if (columns.empty())
      throw FileError(
          table.path, 1,
          fmt::format("expected a numeric input column beside '{}'", table.header[target]));
  }
  if (std::find(columns.begin(), columns.end(), target) != columns.end())
    throw FileError(table.path, 1,
                    fmt::format("column '{}' is both input and target", table.header[target]));
  return columns;
}

// The value for a column's missing cells.
double stand_in(const Table& table, size_t column, Missing missing) {
  std::vector<double> known;
  for (size_t row = 0; row < table.rows.size(); ++row)
    if (!is_missing(table.rows[row][column]))
      known.push_back(parse_number(table.rows[row][column], "column '" + table.header[column] + "'",
                                   table.path, table.lines[row]));
  if (known.empty())
    throw FileError(table.path, 1, fmt::format("column '{}' is empty", table.header[column]));
  if (missing == Missing::kMean) {
    double sum = 0;
    for (double v : known) sum += v;
    return sum / static_cast<double>(known.size());
  }
  std::sort(known.begin(), known.end());
  const size_t half = known.size() / 2;
  return known.size() % 2 ? known[half] : 0.5 * (known[half - 1] + known[half]);
}

}  // namespace

Regression regression(const Table& table, const Columns& wanted) {
  Regression out;
  const size_t target = wanted.y.empty() ? table.header.size() - 1 : table.column(wanted.y);
  check_not_mistyped(table, target, "--set y=COLUMN names another target");
  if (!table.numeric(target))
    throw FileError(
        table.path, 1,
        fmt::format("the target column '{}' is not numeric: name another with --set y=COLUMN",
                    table.header[target]));
  const std::vector<size_t> columns = input_columns(table, wanted.x, target, out);
  out.target = table.header[target];
  out.form = table.form;
  std::vector<std::optional<double>> fill(columns.size());
  for (size_t c : columns) out.inputs.push_back(table.header[c]);
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto& cells = table.rows[row];
    const bool drop =
        wanted.missing == Missing::kDrop &&
        (is_missing(cells[target]) || std::any_of(columns.begin(), columns.end(),
                                                  [&](size_t c) { return is_missing(cells[c]); }));
    if (drop) {
      ++out.dropped;
      continue;
    }
    std::string whole = cells[target];
    for (const size_t c : columns) whole += '\n' + cells[c];
    out.keys.push_back(item_key(whole));
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cells[columns[i]];
      const bool empty = is_missing(cell);
      if (empty && wanted.missing == Missing::kError)
        throw FileError(table.path, table.lines[row],
                        missing_cell(table, columns[i], cell) +
                            ": --set missing=drop, mean or median says what to do");
      if (empty) {
        if (!fill[i]) fill[i] = stand_in(table, columns[i], wanted.missing);
        ++out.filled;
      }
      out.x.push_back(empty ? *fill[i]
                            : parse_number(cell, "column '" + table.header[columns[i]] + "'",
                                           table.path, table.lines[row]));
    }
    if (is_missing(cells[target]))
      throw FileError(
          table.path, table.lines[row],
          missing_cell(table, target, cells[target]) + ": --set missing=drop leaves such rows out");
    out.y.push_back(
        parse_number(cells[target], "column '" + out.target + "'", table.path, table.lines[row]));
  }
  if (out.y.empty()) throw FileError(table.path, 0, "every row has an empty cell: nothing is left");
  return out;
}

std::string in_words(const Regression& table) {
  std::string out = fmt::format("{} row{}: {} from {}", table.rows(), table.rows() == 1 ? "" : "s",
                                table.target, in_short(table.inputs));
  if (table.row_numbers)
    out += fmt::format("; {} left out: row numbers", table.row_numbers->empty()
                                                         ? "the first column, which has no name,"
                                                         : "column " + *table.row_numbers);
  out += left_out_in_words(table.left_out);
  if (table.dropped > 0)
    out += fmt::format("; {} row{} with an empty cell left out", table.dropped,
                       table.dropped == 1 ? "" : "s");
  if (table.filled > 0)
    out += fmt::format("; {} empty cell{} filled in", table.filled, table.filled == 1 ? "" : "s");
  const size_t repeats =
      table.keys.size() - std::set<uint64_t>(table.keys.begin(), table.keys.end()).size();
  if (repeats > 0)
    out += fmt::format("; {} repeat{} an earlier row", repeats, repeats == 1 ? "s" : "");
  if (!table.form.empty()) out += "; " + table.form;
  return out;
}

std::vector<double> inputs(const Table& table, const std::vector<std::string>& names) {
  std::vector<std::vector<double>> columns;
  for (const std::string& name : names) columns.push_back(table.numbers(table.column(name)));
  std::vector<double> x;
  x.reserve(table.rows.size() * names.size());
  for (size_t row = 0; row < table.rows.size(); ++row)
    for (const auto& column : columns) x.push_back(column[row]);
  return x;
}

}  // namespace fovea::data
