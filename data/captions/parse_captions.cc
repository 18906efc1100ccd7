// The forms in which captions are kept.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "data/captions/caption_set.h"
#include "data/files/file.h"
#include "data/files/json.h"
#include "data/formats/csv.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

// Items in the order in which their pictures are first named.
class Collection {
 public:
  explicit Collection(std::string path) : path_(std::move(path)) {}

  Captioned& of(const std::string& image, size_t line) {
    const std::string name(trimmed(image));
    if (name.empty()) throw FileError(path_, line, "no name of a picture");
    // A name leads to a file: it must not lead out of the folder.
    if (name.front() == '/' || name.starts_with("../") || name.find("/../") != std::string::npos ||
        name.find('\0') != std::string::npos)
      throw FileError(path_, line,
                      fmt::format("picture {}, expected a name within the folder", shown(name)));
    const auto [place, is_new] = place_.emplace(name, items_.size());
    if (is_new) items_.push_back({.image = name, .captions = {}});
    return items_[place->second];
  }
  void add(const std::string& image, std::string_view caption, size_t line) {
    const std::string text(trimmed(caption));
    if (text.empty())
      throw FileError(path_, line, fmt::format("{}: an empty caption", shown(image)));
    of(image, line).captions.push_back(text);
  }
  void set_split(Captioned& item, const std::string& split, size_t line) const {
    if (!item.split.empty() && item.split != split)
      throw FileError(path_, line,
                      fmt::format("{} is in {}, and above in {}", shown(item.image), shown(split),
                                  shown(item.split)));
    item.split = split;
  }
  std::vector<Captioned> take() {
    if (items_.empty()) throw FileError(path_, 0, "no captions in it");
    return std::move(items_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<Captioned> items_;
  std::map<std::string, size_t> place_;
};

bool is_split(std::string_view text) {
  for (const char* name : {"train", "restval", "val", "dev", "valid", "validation", "test"})
    if (text == name) return true;
  return false;
}

std::vector<std::string_view> columns(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t from = 0;;) {
    const size_t tab = line.find('\t', from);
    out.push_back(line.substr(from, tab - from));
    if (tab == std::string_view::npos) return out;
    from = tab + 1;
  }
}

// "dog.jpg#3" -> "dog.jpg"
std::string without_number(std::string_view image) {
  const size_t mark = image.rfind('#');
  const bool numbered =
      mark != std::string_view::npos && mark > 0 && mark + 1 < image.size() &&
      std::all_of(image.begin() + static_cast<ptrdiff_t>(mark) + 1, image.end(),
                  [](char c) { return c >= '0' && c <= '9'; }) &&
      !image.substr(0, mark).ends_with(".idx");  // "pictures.idx#3" is a picture's own name
  return std::string(numbered ? image.substr(0, mark) : image);
}

void parse_tabs(const std::string& text, Collection& to) {
  bool has_split = false, first = true;
  each_line(std::string_view(text), to.path(), [&](size_t number, std::string_view line) {
    if (trimmed(line).empty()) return;
    const auto fields = columns(line);
    if (fields.size() < 2)
      throw FileError(to.path(), number,
                      "expected image<TAB>caption, or image<TAB>split<TAB>caption");
    if (first) {
      first = false;
      has_split = is_split(fields[1]) || (fields[0] == "image" && fields[1] == "split");
      if (fields[0] == "image" && (fields[1] == "split" || fields[1].starts_with("caption")))
        return;
    }
    const std::string image = without_number(fields[0]);
    if (has_split) {
      if (!is_split(fields[1]))
        throw FileError(to.path(), number,
                        fmt::format("split {}, expected train, val or test", shown(fields[1])));
      to.set_split(to.of(image, number), std::string(fields[1]), number);
    }
    for (size_t i = has_split ? 2 : 1; i < fields.size(); ++i)
      if (!trimmed(fields[i]).empty()) to.add(image, fields[i], number);
    to.of(image, number);
  });
}

void parse_table(const std::string& text, Collection& to) {
  const Table table = parse_csv(text, to.path());
  const size_t image = table.column("image"), caption = table.column("caption");
  const bool has_split =
      std::find(table.header.begin(), table.header.end(), "split") != table.header.end();
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    to.add(row[image], row[caption], table.lines[i]);
    if (!has_split) continue;
    const std::string& split = row[table.column("split")];
    if (!is_split(split))
      throw FileError(to.path(), table.lines[i],
                      fmt::format("split {}, expected train, val or test", shown(split)));
    to.set_split(to.of(row[image], table.lines[i]), split, table.lines[i]);
  }
}

// ---- JSON ---------------------------------------------------------------------------------------

class JsonCaptions {
 public:
  JsonCaptions(Collection& to, size_t line) : to_(to), line_(line) {}

  void add_object(const Json& item) {
    const std::string image = text_of(item, "image");
    Captioned& one = to_.of(image, line_);
    if (item.contains("split")) add_split(one, item);
    if (item.contains("boxes")) add_boxes(one, item["boxes"]);
    if (item.contains("caption")) to_.add(image, text_of(item, "caption"), line_);
    if (!item.contains("captions")) return;
    if (!item["captions"].is_array()) refuse("expected \"captions\" to be a list of texts");
    for (const Json& caption : item["captions"]) {
      if (!caption.is_string()) refuse("expected \"captions\" to be a list of texts");
      to_.add(image, caption.get_ref<const std::string&>(), line_);
    }
  }

  void add_karpathy(const Json& item) {
    std::string image = text_of(item, "filename");
    if (item.contains("filepath") && !text_of(item, "filepath").empty())
      image = text_of(item, "filepath") + "/" + image;
    Captioned& one = to_.of(image, line_);
    if (item.contains("split")) add_split(one, item);
    const auto sentences = item.find("sentences");
    if (sentences == item.end() || !sentences->is_array())
      refuse("expected \"sentences\" to be a list");
    for (const Json& sentence : *sentences) to_.add(image, sentence_of(sentence), line_);
  }

  void add_coco(const Json& whole) {
    std::map<std::string, std::string> names;
    for (const Json& item : whole["images"]) {
      names[id_of(item, "id")] = text_of(item, "file_name");
      to_.of(text_of(item, "file_name"), line_);
    }
    for (const Json& item : whole["annotations"]) {
      const auto found = names.find(id_of(item, "image_id"));
      if (found == names.end())
        refuse(fmt::format("a caption of picture {}, which is not among \"images\"",
                           id_of(item, "image_id")));
      to_.add(found->second, text_of(item, "caption"), line_);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw FileError(to_.path(), line_, what);
  }

  std::string text_of(const Json& item, const char* field) const {
    if (!item.is_object()) refuse("expected an object for each picture");
    const auto found = item.find(field);
    if (found == item.end() || !found->is_string())
      refuse(fmt::format("expected \"{}\" to be a text", field));
    return found->get<std::string>();
  }
  std::string id_of(const Json& item, const char* field) const {
    const auto found = item.is_object() ? item.find(field) : item.end();
    if (!item.is_object() || found == item.end() ||
        !(found->is_number_integer() || found->is_string()))
      refuse(fmt::format("expected \"{}\" to be a number", field));
    return found->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void add_split(Captioned& one, const Json& item) {
    const std::string split = text_of(item, "split");
    if (!is_split(split))
      refuse(fmt::format("split {}, expected train, val or test", shown(split)));
    to_.set_split(one, split, line_);
  }
  std::string sentence_of(const Json& sentence) const {
    if (sentence.is_object() && sentence.contains("raw")) return text_of(sentence, "raw");
    std::string out;
    if (sentence.is_object() && sentence.contains("tokens") && sentence["tokens"].is_array())
      for (const Json& token : sentence["tokens"]) {
        if (!token.is_string()) refuse("expected \"tokens\" to be a list of texts");
        out += (out.empty() ? "" : " ") + token.get<std::string>();
      }
    return out;
  }
  // {"seven": [left, top, width, height]}, or a list of such lists.
  void add_boxes(Captioned& one, const Json& boxes) {
    if (!boxes.is_object()) refuse("expected \"boxes\" to be an object of words");
    for (const auto& [word, given] : boxes.items()) {
      const bool several = given.is_array() && !given.empty() && given.front().is_array();
      for (const Json& box : several ? given : Json::array({given})) {
        const bool four =
            box.is_array() && box.size() == 4 &&
            std::all_of(box.begin(), box.end(), [](const Json& number) {
              return number.is_number() && number.get<double>() >= 0 && number.get<double>() <= 1;
            });
        if (!four)
          refuse(
              fmt::format("box of {}: expected left, top, width, height from 0 to 1", shown(word)));
        one.boxes.emplace_back(word, Box{box[0].get<double>(), box[1].get<double>(),
                                         box[2].get<double>(), box[3].get<double>()});
      }
    }
  }

  Collection& to_;
  size_t line_;
};

void parse_json_captions(const std::string& text, Collection& to) {
  const Json whole = parse_json(text, to.path());
  JsonCaptions captions(to, 0);
  const bool has_images =
      whole.is_object() && whole.contains("images") && whole["images"].is_array();
  if (has_images && whole.contains("annotations") && whole["annotations"].is_array())
    return captions.add_coco(whole);
  if (!has_images && !whole.is_array())
    throw FileError(
        to.path(), 0,
        "expected a list of {\"image\", \"captions\"}, or \"images\" with \"sentences\" "
        "or \"annotations\"");
  for (const Json& item : has_images ? whole["images"] : whole)
    item.is_object() && item.contains("filename") ? captions.add_karpathy(item)
                                                  : captions.add_object(item);
}

void parse_json_lines(const std::string& text, Collection& to) {
  each_line(std::string_view(text), to.path(), [&](size_t number, std::string_view line) {
    if (trimmed(line).empty()) return;
    const Json item = json_in(line);
    if (!item.is_object()) throw FileError(to.path(), number, "expected a JSON object");
    JsonCaptions(to, number).add_object(item);
  });
}

}  // namespace

std::vector<Captioned> parse_captions(const std::string& text, const std::string& path) {
  Collection out(path);
  const size_t at = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const size_t end = at == std::string::npos ? at : text.find('\n', at);
  const std::string first = at == std::string::npos ? "" : text.substr(at, end - at);
  if (first.starts_with("{") && json_in(first).is_object() && !json_in(first).contains("images"))
    parse_json_lines(text, out);
  else if (first.starts_with("{") || first.starts_with("["))
    parse_json_captions(text, out);
  else if (first.find('\t') == std::string::npos && first.find("image") != std::string::npos &&
           first.find(',') != std::string::npos)
    parse_table(text, out);
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
