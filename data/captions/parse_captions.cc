// The forms in which captions are kept.
#include <algorithm>
#include <cmath>

#include "data/captions/caption_set.h"
#include "data/captions/collection.h"
#include "data/files/json.h"
#include "data/formats/text.h"

namespace fovea::data {

std::vector<Captioned> parse_captions(const std::string& text, const std::string& path) {
  Collection out(path);
  const size_t at = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const size_t end = at == std::string::npos ? at : text.find_first_of("\r\n", at);
  const std::string first = at == std::string::npos ? "" : text.substr(at, end - at);
  if (first.starts_with("{") && json_in(first).is_object() && !json_in(first).contains("images"))
    parse_json_lines(text, out);
  else if (first.starts_with("{") || first.starts_with("["))
    parse_json_captions(text, out);
  else if (first.find('\t') == std::string::npos &&
           (names_columns(first, ',') || names_columns(first, ';')))
    parse_table(text, out);
  else if (names_columns(first, '|'))
    parse_bars(text, out);
  else
    parse_tabs(text, out);
  return out.take();
}

std::string caption_lines(const std::vector<Captioned>& items) {
  std::string out;
  for (const Captioned& item : items) {
    Json line{{"image", item.image}};
    if (!item.split.empty()) line["split"] = item.split;
    line["captions"] = item.captions;
    for (const auto& [word, box] : item.boxes)
      line["boxes"][word].push_back({box.left, box.top, box.width, box.height});
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return out;
}

std::vector<std::string> caption_words(std::string_view caption) {
  const auto in_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  std::vector<std::string> out;
  const std::string text = lower_ascii(caption);
  for (size_t i = 0; i < text.size();) {
    if (!in_word(text[i]) && text[i] != '\'') {
      ++i;
      continue;
    }
    size_t end = i + 1;
    // A hyphen or a point within a word belongs to it: t-shirt, 3.5.
    while (
        end < text.size() &&
        (in_word(text[end]) || ((text[end] == '-' || text[end] == '.') && in_word(text[end - 1]) &&
                                end + 1 < text.size() && in_word(text[end + 1]))))
      ++end;
    if (text[i] != '\'' || text.substr(i, end - i) == "'s")
      out.push_back(text.substr(i, end - i));
    else if (end - i > 1)
      out.push_back(text.substr(i + 1, end - i - 1));
    i = end;
  }
  return out;
}

}  // namespace fovea::data
