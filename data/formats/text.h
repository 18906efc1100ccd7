// Labelled text: `label<space>text`, `label<TAB>text`, JSON Lines; parallel text; white-space
// tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

// Words between white space (ASCII blanks and the UTF-8 no-break space).
std::vector<std::string> words(std::string_view text);
// Without the blanks and tabs at both ends.
std::string_view trimmed(std::string_view text);
// ASCII letters in lower case; other bytes are not changed.
std::string lower_ascii(std::string_view text);

struct LabelledText {
  std::string path;
  std::vector<std::string> labels;  // as written
  std::vector<std::string> texts;
  std::vector<size_t> lines;  // the line of each item in the file
  size_t size() const { return texts.size(); }
};

enum class TextFormat { kAuto, kSpace, kTab, kJsonLines };

// kAuto: JSON Lines if the first line starts with '{'; a tab if it has one; otherwise the first
// space ends the label. JSON Lines have "label" (text or number) and "text". An empty text is
// allowed, a missing label is not.
LabelledText read_labelled_text(const std::string& path, TextFormat format = TextFormat::kAuto);

// The classes in order (numbers by value, otherwise by bytes), and each item's class number.
struct Classes {
  std::vector<std::string> names;
  std::vector<int64_t> of;  // an item's class; -1 where the label is none of the names
};
Classes classes_of(const std::vector<std::string>& labels);
// With names known from training: a label that is none of them is an error naming its line.
std::vector<int64_t> classes_in(const LabelledText&, const std::vector<std::string>& names);

// One sentence on each line; both files must have the same number of lines.
struct ParallelText {
  std::vector<std::string> source, target;
};
ParallelText read_parallel_text(const std::string& source_path, const std::string& target_path);
// `source<TAB>target` on each line; blank lines are skipped, further columns refused unless empty.
ParallelText read_parallel_tsv(const std::string& path);

}  // namespace fovea::data
