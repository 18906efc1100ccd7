// Tables with a header: comma-separated values with RFC 4180 quoting, gzip or not. Where the first line
// has no comma outside quotes, semicolons separate the columns, or tabs. Beside semicolons, numbers may have
// decimal commas. Lines and columns without any entry, as spreadsheets write them, are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

struct Table {
  std::string path;                            // for messages
  std::vector<std::string> header;             // distinct names
  std::vector<std::vector<std::string>> rows;  // each as wide as the header
  std::vector<size_t> lines;                   // where each row starts in the file, from 1
  std::string form =
      {};  // what is not plain CSV: "columns separated by semicolons, decimal commas"

  // The column of that name; otherwise an error that lists the columns and suggests the nearest.
  size_t column(const std::string& name) const;
  // Every entry of a column as a number; the error names line and column.
  std::vector<double> numbers(size_t column) const;
  // Whether a column's entries are numbers, empty ones aside, and at least one is there.
  bool numeric(size_t column) const;
  // The row of the first entry that is no number in a column of which most are numbers: a mistake. A
  // column of words has none.
  std::optional<size_t> mistyped(size_t column) const;
};

// The records of such a text, including the header if there is one; blank lines are skipped.
struct Record {
  std::vector<std::string> fields;
  size_t line = 0;  // where it starts, from 1
};
std::vector<Record> csv_records(const std::string& text, const std::string& name);

Table read_csv(const std::string& path);
Table parse_csv(const std::string& text, const std::string& name);

// The features of a run's training data. `names` is empty if they are unknown.
struct Features {
  int64_t width = 0;
  std::vector<std::string> names = {};
};
// Where each wanted feature stands in rows with the columns `names`, read from `path`: by name, and a
// name that is missing or not wanted is refused. Empty: the rows are right as they are, because the
// order is the same, or names are unknown on one side.
std::vector<size_t> places_of(const Features& wanted, const std::vector<std::string>& names,
                              const std::string& path);
// Rows of features, one after another, in the order of these places.
void reorder(std::vector<float>& rows, const std::vector<size_t>& places);

// "temp, price", and of more than eight how many there are besides.
std::string in_short(const std::vector<std::string>& names);
// "; column day left out: not a number", or nothing.
std::string left_out_in_words(const std::vector<std::string>& names);

// Whether a cell says nothing: empty, "NA", "NaN" or "?".
bool is_missing(const std::string& cell);
// Whether it is a number by its spelling. Also "inf", "nan" and 1e999: bad cells of a numeric column,
// to be reported where they are read.
bool spells_number(std::string_view cell);

}  // namespace fovea::data
