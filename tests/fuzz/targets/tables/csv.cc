// Tables, and what regression makes of them.
#include "data/formats/regression.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_csv(std::string_view input) {
  Bytes bytes(input);
  const auto missing = static_cast<data::Missing>(bytes.below(4));
  const size_t target = bytes.below(4), wanted = bytes.below(4);
  const std::string path = folder().write("a.csv", bytes.rest());
  data::Table table;
  if (!reads(path, [&] { table = data::read_csv(path); })) return;
  require(table.lines.size() == table.rows.size(), "every row has its line");
  for (const auto& row : table.rows)
    require(row.size() == table.header.size(), "a row is as wide as the header");
  data::Columns columns{.missing = missing};
  if (target < table.header.size()) columns.y = table.header[target];
  if (wanted < table.header.size()) columns.x = {table.header[wanted]};
  data::Regression read;
  if (!reads(path, [&] { read = data::regression(table, columns); })) return;
  require(read.rows() + read.dropped == table.rows.size(), "every row is kept or counted");
  require(read.x.size() == read.rows() * read.inputs.size(), "every row has every input");
  const auto finite = [](double value) { return std::isfinite(value); };
  require(std::all_of(read.x.begin(), read.x.end(), finite) &&
              std::all_of(read.y.begin(), read.y.end(), finite),
          "numbers are finite");
  reads(path, [&] { data::inputs(table, read.inputs); });
}
const Registration csv{"csv", fuzz_csv};

}  // namespace
}  // namespace fovea::fuzz
