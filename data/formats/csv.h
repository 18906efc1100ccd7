// Tables with a header: comma-separated values with RFC 4180 quoting, gzip or not. Where the first line
// has no comma outside quotes, semicolons separate the columns, or tabs. Beside semicolons, numbers may have
// decimal commas.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace fovea::data {

struct Table {
  std::string path;                            // for messages
  std::vector<std::string> header;             // distinct names
  std::vector<std::vector<std::string>> rows;  // each as wide as the header
  std::vector<size_t> lines;                   // where each row starts in the file, from 1
  std::string form = {};  // what is not plain CSV: "columns separated by semicolons, decimal commas"

  // The column of that name; otherwise an error that lists the columns and suggests the nearest.
  size_t column(const std::string& name) const;
  // Every entry of a column as a number; the error names line and column.
  std::vector<double> numbers(size_t column) const;
  // Whether a column's entries are numbers, empty ones aside, and at least one is there.
  bool numeric(size_t column) const;
};

// The records of such a text, including the header if there is one; blank lines are skipped.
struct Record {
  std::vector<std::string> fields;
  size_t line = 0;  // where it starts, from 1
};
std::vector<Record> csv_records(const std::string& text, const std::string& name);

Table read_csv(const std::string& path);
Table parse_csv(const std::string& text, const std::string& name);

// What to do with an empty cell (also "NA", "NaN" and "?") of a numeric column.
enum class Missing { kError, kDrop, kMean, kMedian };

// Inputs and target of a regression table: x[row * names.size() + column], y[row].
struct Regression {
  std::vector<std::string> inputs;         // column names
  std::vector<std::string> left_out = {};  // columns that are neither, as they are not numbers
  std::string target;
  std::vector<double> x, y;
  std::vector<uint64_t> keys;      // of the rows, from the text of their cells; empty: no table
  size_t dropped = 0, filled = 0;  // rows left out, cells filled in, by `missing`
  std::string form = {};           // as of the table
  size_t rows() const { return y.size(); }
};

// `x` empty: every numeric column but the target, a leading column of row numbers (R's `rownames`)
// left out; `y` empty: the last column.
struct Columns {
  std::vector<std::string> x = {};
  std::string y = {};
  Missing missing = Missing::kError;
};
Regression regression(const Table&, const Columns&);
// "120 rows: sold from temp, price; column day left out: not a number".
std::string in_words(const Regression&);

// Only the inputs, as predict gets them: the table may lack the target.
std::vector<double> inputs(const Table&, const std::vector<std::string>& names);

}  // namespace fovea::data
