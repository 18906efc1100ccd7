// Captions in JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "data/captions/collection.h"
#include "data/files/file.h"
#include "data/files/json.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

class JsonCaptions {
 public:
  JsonCaptions(Collection& to, size_t line) : to_(to), line_(line) {}

  void add_object(const Json& item) {
    if (!item.is_object()) refuse("expected an object for each picture");
    std::vector<std::string> fields;
    for (const auto& [field, ignored] : item.items()) fields.push_back(field);
    const auto named = picture_column(fields);
    const std::string image = text_of(item, named ? fields[*named] : "image");
    Captioned& one = to_.of(image, line_);
    if (item.contains("split")) add_split(one, item);
    if (item.contains("boxes")) add_boxes(one, item["boxes"]);
    for (const size_t i : caption_columns(fields)) add_captions(image, fields[i], item[fields[i]]);
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

  // A text or a list of texts; "labels" are the members of a set, which may be empty.
  void add_captions(const std::string& image, const std::string& field, const Json& given) {
    if (given.is_string()) return to_.add(image, given.get_ref<const std::string&>(), line_);
    if (!given.is_array()) refuse(fmt::format("expected \"{}\" to be a list of texts", field));
    std::vector<std::string> texts;
    for (const Json& one : given) {
      if (!one.is_string()) refuse(fmt::format("expected \"{}\" to be a list of texts", field));
      texts.push_back(one.get<std::string>());
    }
    if (lower_ascii(field) == "labels") {
      for (const std::string& text : texts)
        if (text.find('|') != std::string::npos)
          refuse(fmt::format("label {}: expected none with '|', which parts labels", shown(text)));
      texts = {fmt::format("{}|", fmt::join(texts, "|"))};
    }
    for (const std::string& text : texts) to_.add(image, text, line_);
  }
  std::string text_of(const Json& item, const std::string& field) const {
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
    to_.set_split(one, text_of(item, "split"), line_);
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

}  // namespace

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
    has_images&& item.is_object() && item.contains("filename") ? captions.add_karpathy(item)
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

}  // namespace fovea::data
