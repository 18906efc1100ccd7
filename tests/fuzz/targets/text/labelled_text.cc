#include "data/formats/text.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_labelled_text(std::string_view input) {
  Bytes bytes(input);
  const auto format = static_cast<data::TextFormat>(bytes.below(4));
  const std::string path = folder().write("a.tsv", bytes.rest());
  data::LabelledText read;
  if (!reads(path, [&] { read = data::read_labelled_text(path, format); })) return;
  require(read.labels.size() == read.size() && read.lines.size() == read.size(),
          "every text has its label and its line");
  const data::Classes classes = data::classes_of(read.labels);
  for (const int64_t number : classes.of)
    require(number >= 0 && number < static_cast<int64_t>(classes.names.size()),
            "every label is a class");
  require(data::classes_in(read, classes.names) == classes.of, "known names give the same classes");
}
const Registration labelled_text{"labelled_text", fuzz_labelled_text};

}  // namespace
}  // namespace fovea::fuzz
