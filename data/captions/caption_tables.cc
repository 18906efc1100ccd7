// Captions in tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "data/captions/collection.h"
#include "data/files/file.h"
#include "data/formats/csv.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

std::vector<std::string_view> parted(std::string_view line, char between) {
  std::vector<std::string_view> out;
  for (size_t from = 0;;) {
    const size_t to = line.find(between, from);
    out.push_back(line.substr(from, to - from));
    if (to == std::string_view::npos) return out;
    from = to + 1;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "dog.jpg#3" -> "dog.jpg"
std::string without_number(std::string_view image) {
  const size_t mark = image.rfind('#');
  const bool numbered =
      mark != std::string_view::npos && mark > 0 && mark + 1 < image.size() &&
      std::all_of(image.begin() + static_cast<ptrdiff_t>(mark) + 1, image.end(), is_digit) &&
      // "pictures.idx#3" is a picture's own name.
      !image.substr(0, mark).ends_with(".idx");
  return std::string(numbered ? image.substr(0, mark) : image);
}

// Which column holds what.
struct CaptionColumns {
  size_t image = 0;
  std::optional<size_t> split;
  std::vector<size_t> captions;
};

CaptionColumns caption_columns_of(const std::vector<std::string>& header, const std::string& path,
                                  size_t line) {
  const auto image = picture_column(header);
  if (!image)
    throw FileError(path, line,
                    fmt::format("no column of pictures, expected one named image; the columns "
                                "are {}",
                                fmt::join(header, ", ")));
  CaptionColumns out{.image = *image, .captions = caption_columns(header)};
  for (size_t i = 0; i < header.size(); ++i)
    if (lower_ascii(trimmed(header[i])) == "split") out.split = i;
  if (out.captions.empty())
    throw FileError(path, line,
                    fmt::format("no column of captions, expected one named caption; the columns "
                                "are {}",
                                fmt::join(header, ", ")));
  return out;
}

template <class Cells>
void add_row(const Cells& row, const CaptionColumns& columns, size_t line, Collection& to) {
  const std::string image = without_number(row[columns.image]);
  Captioned& item = to.of(image, line);
  if (columns.split) to.set_split(item, std::string(trimmed(row[*columns.split])), line);
  for (const size_t i : columns.captions)
    if (i < row.size() && !trimmed(row[i]).empty()) to.add(image, row[i], line);
}

}  // namespace

bool names_columns(std::string_view line, char between) {
  std::vector<std::string> names;
  for (std::string_view cell : parted(line, between)) {
    cell = trimmed(cell);
    if (cell.size() > 1 && cell.front() == '"' && cell.back() == '"')
      cell = cell.substr(1, cell.size() - 2);
    if (cell.find('.') != std::string_view::npos) return false;  // a file's
    names.emplace_back(cell);
  }
  return picture_column(names).has_value();
}

// Without a header, a row may have any number of captions.
void parse_tabs(const std::string& text, Collection& to) {
  std::optional<CaptionColumns> columns;
  bool headed = false;
  each_line(std::string_view(text), to.path(), [&](size_t number, std::string_view line) {
    if (trimmed(line).empty()) return;
    const auto fields = parted(line, '\t');
    if (fields.size() < 2)
      throw FileError(to.path(), number,
                      "expected image<TAB>caption, or image<TAB>split<TAB>caption; of columns "
                      "between commas, a first line image,caption");
    if (!columns) {
      headed = names_columns(line, '\t');
      columns = headed ? caption_columns_of({fields.begin(), fields.end()}, to.path(), number)
                       : CaptionColumns{};
      if (!headed && is_split(fields[1])) columns->split = 1;
      if (headed) return;
    }
    const size_t last = std::max(columns->image, columns->split.value_or(0));
    if (fields.size() <= last)
      throw FileError(to.path(), number,
                      fmt::format("{} columns, expected {}", fields.size(), last + 1));
    if (!headed) {
      columns->captions.clear();
      for (size_t i = last + 1; i < fields.size(); ++i) columns->captions.push_back(i);
    }
    add_row(fields, *columns, number, to);
  });
}

void parse_table(const std::string& text, Collection& to) {
  const Table table = parse_csv(text, to.path());
  const CaptionColumns columns = caption_columns_of(table.header, to.path(), 1);
  for (size_t i = 0; i < table.rows.size(); ++i)
    add_row(table.rows[i], columns, table.lines[i], to);
}

// Flickr30k's: image_name| comment_number| comment. One of its lines lacks the second bar.
void parse_bars(const std::string& text, Collection& to) {
  std::optional<CaptionColumns> columns;
  size_t width = 0;
  each_line(std::string_view(text), to.path(), [&](size_t number, std::string_view line) {
    if (trimmed(line).empty()) return;
    auto fields = parted(line, '|');
    if (!columns) {
      columns = caption_columns_of({fields.begin(), fields.end()}, to.path(), number);
      width = fields.size();
      return;
    }
    if (fields.size() == 2 && width == 3) {
      std::string_view rest = trimmed(fields[1]);
      rest.remove_prefix(
          static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_digit) - rest.begin()));
      fields.push_back(rest);
    }
    if (fields.size() != width)
      throw FileError(to.path(), number,
                      fmt::format("{} columns, expected {}", fields.size(), width));
    add_row(fields, *columns, number, to);
  });
}

}  // namespace fovea::data
