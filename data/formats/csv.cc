#include "data/formats/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "data/files/csv_reader.h"
#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/nearest.h"

namespace fovea::data {
namespace {

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
  // A column of row numbers may have no name, but then it is the first.
  const bool all = is_number(header[0]) &&
                   std::all_of(header.begin(), header.end(), [&](const std::string& column) {
                     return column.empty() || is_number(column);
                   });
  for (const std::string& column : header)
    if (is_number(column) && (all || column.find_first_not_of(kDigits) != std::string::npos))
      throw FileError(name, 1,
                      fmt::format("expected a header line with column names, found the number {}",
                                  shown(column)));
}

// "1,5" as "1.5" in the columns of which most are numbers then. Whether there was one.
bool read_decimal_commas(Table& table) {
  bool any = false;
  for (size_t c = 0; c < table.header.size(); ++c) {
    std::vector<std::string> column;
    bool commas = false;
    size_t numbers = 0, others = 0;
    for (const auto& row : table.rows) {
      std::string cell = row[c];
      const size_t comma = cell.find(',');
      commas = commas || comma != std::string::npos;
      if (comma != std::string::npos && cell.find('.') == std::string::npos) cell[comma] = '.';
      const bool number = spells_number(cell);
      numbers += number;
      others += !number && !is_missing(cell);
      column.push_back(number ? std::move(cell) : row[c]);
    }
    if (!commas || numbers <= others) continue;
    for (size_t row = 0; row < column.size(); ++row) table.rows[row][c] = std::move(column[row]);
    any = true;
  }
  return any;
}

// Columns without a name and without an entry: spreadsheets write them for columns that were emptied.
void drop_empty_columns(Table& table) {
  std::vector<size_t> kept;
  for (size_t c = 0; c < table.header.size(); ++c)
    if (!table.header[c].empty() || std::any_of(table.rows.begin(), table.rows.end(),
                                                [&](const auto& row) { return !row[c].empty(); }))
      kept.push_back(c);
  if (kept.size() == table.header.size()) return;
  const auto keep = [&](std::vector<std::string>& cells) {
    std::vector<std::string> out;
    for (const size_t c : kept) out.push_back(std::move(cells[c]));
    cells = std::move(out);
  };
  keep(table.header);
  for (auto& row : table.rows) keep(row);
}

// Likewise of records, which may have no header: at their ends alone.
void drop_empty_ends(std::vector<Record>& records) {
  size_t width = 0;
  for (const Record& record : records)
    for (size_t c = record.fields.size(); c > width; --c)
      if (!record.fields[c - 1].empty()) width = c;
  for (Record& record : records) record.fields.resize(std::min(record.fields.size(), width));
}

void check_names_differ(const Table& table) {
  std::set<std::string> seen;
  for (const std::string& column : table.header)
    if (!seen.insert(column).second)
      throw FileError(table.path, 1, fmt::format("column '{}' occurs twice", column));
}

// Two numbers where one was expected may be one with a decimal comma.
std::string_view comma_hint(const Table& table, const std::vector<std::string>& row,
                            char separator) {
  const bool numbers = std::all_of(row.begin(), row.end(), spells_number);
  return table.header.size() == 1 && row.size() == 2 && separator == ',' && numbers
             ? "; with decimal commas a semicolon follows each number"
             : "";
}

}  // namespace

bool is_missing(const std::string& cell) {
  return cell.empty() || cell == "NA" || cell == "?" || cell == "NaN" || cell == "nan";
}

bool spells_number(std::string_view cell) {
  while (cell.starts_with(' ')) cell.remove_prefix(1);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error != std::errc::invalid_argument && end == cell.data() + cell.size();
}

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

std::optional<size_t> Table::mistyped(size_t column) const {
  size_t numbers = 0, others = 0, first = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    const std::string& cell = rows[row][column];
    if (is_missing(cell)) continue;
    if (spells_number(cell))
      ++numbers;
    else if (others++ == 0)
      first = row;
  }
  return others > 0 && numbers > others ? std::optional(first) : std::nullopt;
}

std::string in_short(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  const size_t count = std::min(names.size(), kShown);
  std::string out = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(count), ", "));
  return names.size() > kShown ? fmt::format("{} and {} more", out, names.size() - kShown) : out;
}

std::string left_out_in_words(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return fmt::format("; column{} {} left out: not {}", names.size() == 1 ? "" : "s",
                     in_short(names), names.size() == 1 ? "a number" : "numbers");
}

std::vector<Record> csv_records(const std::string& text, const std::string& name) {
  each_line(std::string_view(text), name, [](size_t, std::string_view) {});  // UTF-8, no NUL
  std::vector<Record> out;
  CsvReader reader(text, name);
  while (auto fields = reader.next()) {
    if (out.size() >= limit(Limit::kItems))
      throw FileError(name, reader.start_line(), beyond(Limit::kItems));
    out.push_back({std::move(*fields), reader.start_line()});
  }
  drop_empty_ends(out);
  return out;
}

Table parse_csv(const std::string& text, const std::string& name) {
  each_line(std::string_view(text), name, [](size_t, std::string_view) {});  // UTF-8, no NUL
  Table table;
  table.path = name;
  CsvReader reader(text, name);
  auto header = reader.next();
  if (!header) throw FileError(name, 1, "expected a header line with column names");
  table.header = std::move(*header);
  check_header(table.header, name);
  while (auto row = reader.next()) {
    if (row->size() != table.header.size())
      throw FileError(name, reader.start_line(),
                      fmt::format("expected {} field{} as in the header, found {}{}",
                                  table.header.size(), table.header.size() == 1 ? "" : "s",
                                  row->size(), comma_hint(table, *row, reader.separator())));
    if (table.rows.size() >= limit(Limit::kItems))
      throw FileError(name, reader.start_line(), beyond(Limit::kItems));
    table.lines.push_back(reader.start_line());
    table.rows.push_back(std::move(*row));
  }
  drop_empty_columns(table);
  check_names_differ(table);
  if (table.rows.empty()) throw FileError(name, 2, "expected at least one row after the header");
  if (reader.separator() != ',')
    table.form = fmt::format("columns separated by {}s", name_of(reader.separator()));
  if (reader.separator() == ';' && read_decimal_commas(table)) table.form += ", decimal commas";
  return table;
}

Table read_csv(const std::string& path) { return parse_csv(read_file(path), path); }

std::vector<size_t> places_of(const Features& wanted, const std::vector<std::string>& names,
                              const std::string& path) {
  if (wanted.names.empty() || names.empty()) return {};
  const auto place_of = [](const std::vector<std::string>& all, const std::string& name) {
    return static_cast<size_t>(std::find(all.begin(), all.end(), name) - all.begin());
  };
  for (const std::string& name : wanted.names)
    if (place_of(names, name) == names.size())
      throw FileError(path, 1, fmt::format("no column {}, a feature in training", shown(name)));
  for (const std::string& name : names)
    if (place_of(wanted.names, name) == wanted.names.size())
      throw FileError(path, 1, fmt::format("column {} was not a feature in training", shown(name)));
  if (names == wanted.names) return {};
  std::vector<size_t> places;
  for (const std::string& name : wanted.names) places.push_back(place_of(names, name));
  return places;
}

void reorder(std::vector<float>& rows, const std::vector<size_t>& places) {
  if (places.empty()) return;
  std::vector<float> row(places.size());
  for (size_t at = 0; at < rows.size(); at += row.size()) {
    for (size_t f = 0; f < row.size(); ++f) row[f] = rows[at + places[f]];
    std::copy(row.begin(), row.end(), rows.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace fovea::data
