// Captions as a file gives them, collected by picture.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/captions/caption_set.h"

namespace fovea::data {

// Pictures in the order in which the file first names them.
class Collection {
 public:
  explicit Collection(std::string path) : path_(std::move(path)) {}

  Captioned& of(const std::string& image, size_t line);
  void add(const std::string& image, std::string_view caption, size_t line);
  // A split's name as written.
  void set_split(Captioned& item, const std::string& split, size_t line) const;
  // FileError where there is none.
  std::vector<Captioned> take();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<Captioned> items_;
  std::map<std::string, size_t> place_;
};

// Whether this names a split: train, restval, val, dev, valid, validation, test.
bool is_split(std::string_view text);

// Of the names of columns or fields: the one of the picture (image, file_name, …), and those of its
// captions (caption, captions, caption_2, …; where there is none of these: text, comment, labels, …).
std::optional<size_t> picture_column(const std::vector<std::string>& names);
std::vector<size_t> caption_columns(const std::vector<std::string>& names);

// Whether a first line, parted at this character, names columns.
bool names_columns(std::string_view line, char between);

// The forms of parse_captions, in caption_set.h.
void parse_tabs(const std::string& text, Collection& to);
void parse_table(const std::string& text, Collection& to);
void parse_bars(const std::string& text, Collection& to);
void parse_json_captions(const std::string& text, Collection& to);
void parse_json_lines(const std::string& text, Collection& to);

}  // namespace fovea::data
