// Labelled documents: tabs, blanks or JSON Lines.
#include "text/documents.h"

#include <limits>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_documents(std::string_view input) {
  Bytes bytes(input);
  text::ReadRequest request{.columns = static_cast<text::Columns>(bytes.below(4)),
                            .positive_above = std::numeric_limits<double>::quiet_NaN()};
  if (bytes.flag()) request.of_three = text::Columns::kLabelAspectText;
  if (bytes.flag()) request.positive_above = 5;
  const std::string path = folder().write("a.tsv", bytes.rest());
  std::vector<text::Document> read;
  if (!reads(path, [&] { read = text::read_documents(path, request); })) return;
  std::string lines;
  for (const text::Document& document : read) {
    require(!document.label.empty(), "a document has a label");
    lines += text::json_line(document) + "\n";
  }
  folder().write("a.tsv", lines);
  request.positive_above = std::numeric_limits<double>::quiet_NaN();
  const auto again = text::read_documents(path, request);
  require(again.size() == read.size(), "every document survives being written");
  for (size_t i = 0; i < read.size(); ++i)
    require(again[i].label == read[i].label && again[i].texts == read[i].texts &&
                again[i].aspect == read[i].aspect && again[i].truth_words == read[i].truth_words &&
                again[i].truth_sentences == read[i].truth_sentences &&
                again[i].mixed == read[i].mixed,
            "a document survives being written");
}
const Registration documents{"documents", fuzz_documents};

}  // namespace
}  // namespace fovea::fuzz
