#include "data/formats/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/files/lines.h"
#include "data/nearest.h"
#include "data/split.h"

namespace fovea::data {
namespace {

bool is_missing(const std::string& cell) {
  return cell.empty() || cell == "NA" || cell == "?" || cell == "NaN" || cell == "nan";
}

std::string missing_cell(const Table& table, size_t column, const std::string& cell) {
  return cell.empty() ? fmt::format("column '{}' is empty", table.header[column])
                      : fmt::format("column '{}': expected a finite number, found {}",
                                    table.header[column], shown(cell));
}

// Also "inf", "nan" and 1e999: bad cells of a numeric column, to be reported where they are read.
bool spells_number(std::string_view cell) {
  while (cell.starts_with(' ')) cell.remove_prefix(1);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error != std::errc::invalid_argument && end == cell.data() + cell.size();
}

// Refuses a first line that is data instead of names, because a row would be lost silently. Integers
// may be names: years beside other names, or 0, 1, 2, … as data frames number their columns.
void check_header(const std::vector<std::string>& header, const std::string& name) {
  size_t numbered = 0;
  while (numbered < header.size() && header[numbered] == std::to_string(numbered)) ++numbered;
  if (header.size() > 1 && numbered == header.size()) return;
  constexpr std::string_view kDigits = "0123456789";
  const auto is_number = [&](const std::string& cell) {
    return cell.find_first_of(kDigits) != std::string::npos && spells_number(cell);
  };
  const bool all = std::all_of(header.begin(), header.end(), is_number);
  for (const std::string& column : header)
    if (is_number(column) && (all || column.find_first_not_of(kDigits) != std::string::npos))
      throw FileError(name, 1,
                      fmt::format("expected a header line with column names, found the number {}",
                                  shown(column)));
}

// A comma, unless the first line has none outside quotes but has semicolons, or tabs.
char separator_of(std::string_view text) {
  bool quoted = false, semicolon = false, tab = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') return ',';
    if (c == '\n' || c == '\r') break;
    semicolon = semicolon || c == ';';
    tab = tab || c == '\t';
  }
  return semicolon ? ';' : tab ? '\t' : ',';
}

std::string_view name_of(char separator) {
  return separator == ';' ? "semicolon" : separator == '\t' ? "tab" : "comma";
}

// "1,5" as "1.5" in the columns that are numbers then. Whether there was one.
bool read_decimal_commas(Table& table) {
  bool any = false;
  for (size_t c = 0; c < table.header.size(); ++c) {
    std::vector<std::string> column;
    bool commas = false;
    for (const auto& row : table.rows) {
      std::string cell = row[c];
      const size_t comma = cell.find(',');
      commas = commas || comma != std::string::npos;
      if (comma != std::string::npos && cell.find('.') == std::string::npos) cell[comma] = '.';
      if (!is_missing(cell) && !spells_number(cell)) break;
      column.push_back(std::move(cell));
    }
    if (!commas || column.size() < table.rows.size()) continue;
    for (size_t row = 0; row < column.size(); ++row) table.rows[row][c] = std::move(column[row]);
    any = true;
  }
  return any;
}

// Reads one record at a time; a quoted field may contain line ends.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name)
      : text_(without_byte_order_mark(text)),
        name_(name),
        separator_(separator_of(text_)),
        ends_{separator_, '\r', '\n'} {}

  // The next record's fields, or nothing at the end; blank lines are skipped.
  std::optional<std::vector<std::string>> next() {
    while (take_end()) {
    }
    if (text_.empty()) return std::nullopt;
    start_ = line_;
    std::vector<std::string> fields;
    do fields.push_back(field());
    while (consume(separator_));
    if (!text_.empty() && !take_end())
      throw FileError(name_, line_,
                      fmt::format("expected a {} or the line's end after a closing quote",
                                  name_of(separator_)));
    return fields;
  }
  size_t start_line() const { return start_; }
  char separator() const { return separator_; }

 private:
  // "\n", "\r\n" or "\r".
  bool take_end() {
    const bool back = consume('\r');
    if (!consume('\n') && !back) return false;
    ++line_;
    return true;
  }
  bool consume(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string field() {
    if (!consume('"')) {
      const size_t end = std::min(text_.find_first_of(ends_), text_.size());
      std::string value(text_.substr(0, end));
      text_.remove_prefix(end);
      return value;
    }
    std::string value;
    for (;;) {
      const size_t end = text_.find('"');
      if (end == std::string_view::npos)
        throw FileError(name_, start_, "a quoted field has no closing quote");
      value += text_.substr(0, end);
      line_ += static_cast<size_t>(
          std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
      text_.remove_prefix(end + 1);
      if (!consume('"')) return value;
      value += '"';
    }
  }

  std::string_view text_;
  const std::string& name_;
  const char separator_;
  const std::string ends_;  // of a field without quotes
  size_t line_ = 1, start_ = 1;
};

bool is_row_number(const Table& table) {
  const std::string& name = table.header[0];
  if (name != "rownames" && !name.empty() && name != "Unnamed: 0") return false;
  for (size_t row = 0; row < table.rows.size(); ++row)
    if (table.rows[row][0] != std::to_string(row + 1) && table.rows[row][0] != std::to_string(row))
      return false;
  return true;
}

// A column of numbers with one mistake is not a column of names: the error says where the mistake
// is.
void check_not_mistyped(const Table& table, size_t column, std::string_view otherwise) {
  size_t numbers = 0, others = 0, first = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::string& cell = table.rows[row][column];
    if (is_missing(cell)) continue;
    if (spells_number(cell))
      ++numbers;
    else if (others++ == 0)
      first = row;
  }
  if (others > 0 && numbers > others)
    throw FileError(table.path, table.lines[first],
                    fmt::format("column '{}': expected a number, found {}; {}",
                                table.header[column], shown(table.rows[first][column]), otherwise));
}

std::vector<size_t> input_columns(const Table& table, const std::vector<std::string>& names,
                                  size_t target, std::vector<std::string>& left_out) {
  std::vector<size_t> columns;
  for (const std::string& name : names) columns.push_back(table.column(name));
  if (names.empty()) {
    for (size_t c = is_row_number(table) ? 1 : 0; c < table.header.size(); ++c) {
      if (c == target) continue;
      check_not_mistyped(table, c, "--set x=COLUMN,… leaves the column out");
      if (table.numeric(c))
        columns.push_back(c);
      else
        left_out.push_back(table.header[c]);
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

size_t Table::column(const std::string& name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end())
    throw FileError(path, 1,
                    fmt::format("no column '{}'{}; the columns are {}", name,
                                did_you_mean(name, header), fmt::join(header, ", ")));
  return static_cast<size_t>(found - header.begin());
}

std::vector<double> Table::numbers(size_t column) const {
  std::vector<double> values;
  values.reserve(rows.size());
  for (size_t row = 0; row < rows.size(); ++row)
    values.push_back(
        parse_number(rows[row][column], "column '" + header[column] + "'", path, lines[row]));
  return values;
}

bool Table::numeric(size_t column) const {
  bool any = false;
  for (const auto& row : rows) {
    if (is_missing(row[column])) continue;
    if (!spells_number(row[column])) return false;
    any = true;
  }
  return any;
}

std::vector<Record> csv_records(const std::string& text, const std::string& name) {
  each_line(std::string_view(text), name, [](size_t, std::string_view) {});  // UTF-8, no NUL
  std::vector<Record> out;
  Reader reader(text, name);
  while (auto fields = reader.next()) {
    if (out.size() >= limit(Limit::kItems))
      throw FileError(name, reader.start_line(), beyond(Limit::kItems));
    out.push_back({std::move(*fields), reader.start_line()});
  }
  return out;
}

Table parse_csv(const std::string& text, const std::string& name) {
  each_line(std::string_view(text), name, [](size_t, std::string_view) {});  // UTF-8, no NUL
  Table table;
  table.path = name;
  Reader reader(text, name);
  auto header = reader.next();
  if (!header) throw FileError(name, 1, "expected a header line with column names");
  table.header = std::move(*header);
  check_header(table.header, name);
  std::set<std::string> seen;
  for (const std::string& column : table.header)
    if (!seen.insert(column).second)
      throw FileError(name, 1, fmt::format("column '{}' occurs twice", column));
  while (auto row = reader.next()) {
    if (row->size() != table.header.size())
      throw FileError(name, reader.start_line(),
                      fmt::format("expected {} fields as in the header, found {}",
                                  table.header.size(), row->size()));
    if (table.rows.size() >= limit(Limit::kItems))
      throw FileError(name, reader.start_line(), beyond(Limit::kItems));
    table.lines.push_back(reader.start_line());
    table.rows.push_back(std::move(*row));
  }
  if (table.rows.empty()) throw FileError(name, 2, "expected at least one row after the header");
  if (reader.separator() != ',')
    table.form = fmt::format("columns separated by {}s", name_of(reader.separator()));
  if (reader.separator() == ';' && read_decimal_commas(table)) table.form += ", decimal commas";
  return table;
}

Table read_csv(const std::string& path) { return parse_csv(read_file(path), path); }

Regression regression(const Table& table, const Columns& wanted) {
  Regression out;
  const size_t target = wanted.y.empty() ? table.header.size() - 1 : table.column(wanted.y);
  check_not_mistyped(table, target, "--set y=COLUMN names another target");
  if (!table.numeric(target))
    throw FileError(
        table.path, 1,
        fmt::format("the target column '{}' is not numeric: name another with --set y=COLUMN",
                    table.header[target]));
  const std::vector<size_t> columns = input_columns(table, wanted.x, target, out.left_out);
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
  constexpr size_t kShown = 8;
  const auto listed = [](const std::vector<std::string>& names) {
    const size_t count = std::min(names.size(), size_t{kShown});
    std::string out = fmt::format(
        "{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(count), ", "));
    return names.size() > kShown ? fmt::format("{} and {} more", out, names.size() - kShown) : out;
  };
  std::string out = fmt::format("{} row{}: {} from {}", table.rows(), table.rows() == 1 ? "" : "s",
                                table.target, listed(table.inputs));
  if (!table.left_out.empty())
    out += fmt::format("; column{} {} left out: not {}", table.left_out.size() == 1 ? "" : "s",
                       listed(table.left_out), table.left_out.size() == 1 ? "a number" : "numbers");
  if (table.dropped > 0)
    out += fmt::format("; {} row{} with an empty cell left out", table.dropped,
                       table.dropped == 1 ? "" : "s");
  if (table.filled > 0)
    out += fmt::format("; {} empty cell{} filled in", table.filled, table.filled == 1 ? "" : "s");
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
