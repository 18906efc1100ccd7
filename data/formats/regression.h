// Inputs and target of a regression, from the columns of a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/formats/csv.h"

namespace fovea::data {

// What to do with an empty cell (also "NA", "NaN" and "?") of a numeric column.
enum class Missing { kError, kDrop, kMean, kMedian };

// Inputs and target of a regression table: x[row * names.size() + column], y[row].
struct Regression {
  std::vector<std::string> inputs;              // column names
  std::vector<std::string> left_out = {};       // columns that are neither, as they are not numbers
  std::optional<std::string> row_numbers = {};  // name of a first column that counts the rows
  std::string target;
  std::vector<double> x, y;
  std::vector<uint64_t> keys;      // of the rows, from the text of their cells; empty: no table
  size_t dropped = 0, filled = 0;  // rows left out, cells filled in, by `missing`
  std::string form = {};           // as of the table
  size_t rows() const { return y.size(); }
};

// `x` empty: every numeric column but the target and a first column of row numbers (without a name,
// or called rownames, id, index, no., nr., #); `y` empty: the last column.
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
