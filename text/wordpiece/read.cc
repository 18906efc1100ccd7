#include "text/wordpiece/read.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/files/file.h"
#include "data/files/json.h"
#include "data/files/limits.h"

namespace fovea::text {
namespace {

// Sorted keys: one of 30,000 pieces is found quickly, and a file is written the same every time.
using Tree = nlohmann::json;

class Reader {
 public:
  Reader(std::string_view bytes, std::string path)
      : path_(std::move(path)), root_(data::parse_json<Tree>(bytes, path_)) {
    if (!root_.is_object()) refuse("a JSON value of another kind, expected an object");
  }

  [[noreturn]] void refuse(const std::string& what) const { throw data::FileError(path_, 0, what); }
  const Tree& root() const { return root_; }
  const std::string& path() const { return path_; }

  // A part of the file, an object or null.
  const Tree& part(const char* name) const {
    static const Tree none;
    const auto found = root_.find(name);
    if (found == root_.end()) return none;
    if (!found->is_object() && !found->is_null())
      refuse(fmt::format("{}: {}, expected an object", name, found->type_name()));
    return *found;
  }
  bool flag(const Tree& object, const char* name, bool otherwise) const {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return otherwise;
    if (!found->is_boolean())
      refuse(fmt::format("{}: {}, expected true or false", name, kind(*found)));
    return found->get<bool>();
  }
  std::string text(const Tree& object, const char* name, const std::string& otherwise) const {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return otherwise;
    if (!found->is_string()) refuse(fmt::format("{}: {}, expected a text", name, kind(*found)));
    return found->get<std::string>();
  }
  int64_t integer(const Tree& object, const char* name, int64_t least, int64_t most) const {
    const auto found = object.find(name);
    if (found == object.end()) refuse(fmt::format("{}: missing", name));
    return in_range(*found, name, least, most);
  }
  int64_t in_range(const Tree& value, const std::string& name, int64_t least, int64_t most) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t(most)) &&
                      value.get<int64_t>() >= least && value.get<int64_t>() <= most;
    if (!fits) refuse(fmt::format("{}: {}, expected {} to {}", name, kind(value), least, most));
    return value.get<int64_t>();
  }

 private:
  static std::string kind(const Tree& value) {
    return value.is_number() ? value.dump() : value.type_name();
  }
  std::string path_;
  Tree root_;
};

// The part's type must be the one we have.
void expect_type(const Reader& reader, const char* part, const std::string& expected) {
  const Tree& object = reader.part(part);
  const std::string type =
      object.is_null() ? "none" : reader.text(object, "type", "without a type");
  if (type != expected)
    reader.refuse(fmt::format("{}: {}, expected {}, BERT's", part, data::shown(type), expected));
}

Normalisation normalisation_of(const Reader& reader) {
  expect_type(reader, "normalizer", "BertNormalizer");
  const Tree& from = reader.part("normalizer");
  Normalisation out{.clean = reader.flag(from, "clean_text", true),
                    .chinese = reader.flag(from, "handle_chinese_chars", true),
                    .lower_case = reader.flag(from, "lowercase", true)};
  out.strip_accents = reader.flag(from, "strip_accents", out.lower_case);
  return out;
}

std::vector<std::string> pieces_of(const Reader& reader, const Tree& model) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_object() || vocab->empty())
    reader.refuse("model.vocab: missing, expected an object of pieces and their numbers");
  const auto most = static_cast<int64_t>(data::limit(data::Limit::kItems));
  if (static_cast<int64_t>(vocab->size()) > most)
    reader.refuse("model.vocab: " + data::beyond(data::Limit::kItems));
  // Added pieces may have numbers after these.
  const Tree none = Tree::array();
  const auto added = reader.root().find("added_tokens");
  const Tree& further = added == reader.root().end() || added->is_null() ? none : *added;
  if (!further.is_array()) reader.refuse("added_tokens: expected a list");
  const auto count = static_cast<int64_t>(vocab->size() + further.size());
  std::vector<std::string> out(vocab->size());
  std::vector<bool> given(vocab->size());
  const auto put = [&](const std::string& piece, int64_t id) {
    const auto at = static_cast<size_t>(id);
    if (at >= out.size()) {
      out.resize(at + 1);
      given.resize(at + 1);
    }
    if (given[at] && out[at] != piece)
      reader.refuse(fmt::format("number {}: given to {} and to {}", id, data::shown(out[at]),
                                data::shown(piece)));
    out[at] = piece;
    given[at] = true;
  };
  for (const auto& [piece, id] : vocab->items())
    put(piece, reader.in_range(id, "model.vocab: " + data::shown(piece), 0, count - 1));
  for (const Tree& one : further) {
    if (!one.is_object()) reader.refuse("added_tokens: expected a list of objects");
    put(reader.text(one, "content", ""), reader.integer(one, "id", 0, count - 1));
  }
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i]) reader.refuse(fmt::format("model.vocab: no piece has the number {}", i));
  return out;
}

std::vector<std::string> specials_of(const Reader& reader) {
  std::vector<std::string> out;
  const auto added = reader.root().find("added_tokens");
  if (added == reader.root().end() || added->is_null()) return out;
  for (const Tree& one : *added) {
    const std::string content = reader.text(one, "content", "");
    if (content.empty()) reader.refuse("added_tokens: one without content");
    for (const char* name : {"single_word", "lstrip", "rstrip", "normalized"})
      if (reader.flag(one, name, false))
        reader.refuse(fmt::format("added_tokens: {} asks for {}, which is not here",
                                  data::shown(content), name));
    out.push_back(content);
  }
  return out;
}

// `make` refuses a vocabulary without a piece it needs; the file is named then.
template <class Make>
WordPiece named(const std::string& path, const Make& make) {
  try {
    return make();
  } catch (const data::FileError&) {
    throw;
  } catch (const InvalidArgument& error) {
    throw data::FileError(path, 0, error.what());
  }
}

}  // namespace

WordPiece parse_vocabulary(std::string_view bytes, const std::string& path,
                           const Normalisation& normalisation) {
  PieceTable table{.normalisation = normalisation};
  data::each_line(bytes, path, [&](size_t, std::string_view line) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    table.pieces.emplace_back(line);
  });
  for (const std::string& special : kBertSpecials)
    if (std::find(table.pieces.begin(), table.pieces.end(), special) != table.pieces.end())
      table.specials.push_back(special);
  return named(path, [&] { return WordPiece(std::move(table)); });
}

std::string vocabulary_bytes(const WordPiece& pieces) {
  std::string out;
  for (const std::string& piece : pieces.table().pieces) out += piece + "\n";
  return out;
}

WordPiece parse_tokenizer(std::string_view bytes, const std::string& path) {
  const Reader reader(bytes, path);
  const Tree& model = reader.part("model");
  if (model.is_null()) reader.refuse("model: missing, expected a WordPiece vocabulary");
  // Old files leave the type out; only WordPiece has this entry.
  const std::string type = reader.text(
      model, "type", model.contains("max_input_chars_per_word") ? "WordPiece" : "without a type");
  if (type != "WordPiece")
    reader.refuse(fmt::format("model: {}, expected WordPiece", data::shown(type)));
  expect_type(reader, "pre_tokenizer", "BertPreTokenizer");
  PieceTable table{.pieces = pieces_of(reader, model),
                   .specials = specials_of(reader),
                   .normalisation = normalisation_of(reader),
                   .unknown = reader.text(model, "unk_token", "[UNK]"),
                   .continuing = reader.text(model, "continuing_subword_prefix", "##")};
  if (model.contains("max_input_chars_per_word"))
    table.longest_word =
        static_cast<size_t>(reader.integer(model, "max_input_chars_per_word", 0, 1'000'000));
  return named(path, [&] { return WordPiece(std::move(table)); });
}

std::string tokenizer_bytes(const WordPiece& pieces) {
  const PieceTable& table = pieces.table();
  Tree added = Tree::array(), vocab = Tree::object();
  for (const std::string& special : table.specials)
    added.push_back({{"id", pieces.number(special)},
                     {"content", special},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  for (int64_t id = 0; id < pieces.size(); ++id) vocab[pieces.piece(id)] = id;
  Tree root = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", table.normalisation.clean},
        {"handle_chinese_chars", table.normalisation.chinese},
        {"strip_accents", table.normalisation.strip_accents},
        {"lowercase", table.normalisation.lower_case}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "WordPiece"}, {"prefix", table.continuing}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", table.unknown},
        {"continuing_subword_prefix", table.continuing},
        {"max_input_chars_per_word", table.longest_word},
        {"vocab", vocab}}}};
  if (const auto cls = pieces.find("[CLS]"), sep = pieces.find("[SEP]"); cls && sep)
    root["post_processor"] = {{"type", "BertProcessing"},
                              {"sep", Tree::array({"[SEP]", *sep})},
                              {"cls", Tree::array({"[CLS]", *cls})}};
  return root.dump(1) + "\n";
}

Normalisation parse_normalisation(std::string_view bytes, const std::string& path) {
  const Reader reader(bytes, path);
  Normalisation out{.chinese = reader.flag(reader.root(), "tokenize_chinese_chars", true),
                    .lower_case = reader.flag(reader.root(), "do_lower_case", true)};
  out.strip_accents = reader.flag(reader.root(), "strip_accents", out.lower_case);
  return out;
}

}  // namespace fovea::text
