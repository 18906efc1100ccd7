// The layout of a file of labelled text: JSON or not, what separates the columns, whether the first
// line names them, and what each column holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

enum class Form { kJson, kSpaced, kTabbed, kCommas };

// By the first line that is not blank: JSON Lines where it starts with '{' (or where the text is an array
// of objects, which the reader refuses); tabs where it has one; commas where the file is called .csv
// (or .csv.gz), where this line is a header of commas, and where in every line a comma comes before the
// first blank; otherwise the first blank ends the label.
Form form_of(std::string_view text, const std::string& path);

// Names of a column, or of a field of JSON Lines, that holds the label (label, class, category,
// topic, …), the text (text, sentence, review, …); small letters or not.
bool is_label_name(std::string_view name);
bool is_text_name(std::string_view name);

// Which column holds what, as a header names them in any order: label, text, id, aspect. In id, text
// and one more, that one is the label.
struct NamedColumns {
  size_t label = 0, text = 0;
  std::optional<size_t> id, aspect;
};
// The header that these cells are; nothing where they are data: no label or no text among them.
std::optional<NamedColumns> named_columns(const std::vector<std::string>& cells);

// Of cells that are no such header: what no column is called, in words.
std::string unnamed_column(const std::vector<std::string>& cells);

}  // namespace fovea::text
