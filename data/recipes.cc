#include "data/recipes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "data/files/file.h"
#include "data/files/json.h"
#include "data/files/read.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

namespace fs = std::filesystem;

void add_once(std::vector<std::string>& to, std::string_view text) {
  const std::string one(trimmed(text));
  if (!one.empty() && std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
}

std::vector<std::string_view> parted_at(std::string_view text, char between) {
  std::vector<std::string_view> out;
  for (size_t from = 0;;) {
    const size_t to = text.find(between, from);
    out.push_back(text.substr(from, to - from));
    if (to == std::string_view::npos) return out;
    from = to + 1;
  }
}

// Where a recipe stands: for errors.
struct RecipePlace {
  const std::string& path;
  size_t line;
};

std::string text_field(const Json& item, const char* field, const RecipePlace& place) {
  const auto found = item.find(field);
  if (found == item.end()) return "";
  if (!found->is_string())
    throw FileError(place.path, place.line, fmt::format("expected \"{}\" to be a text", field));
  return std::string(trimmed(found->get<std::string>()));
}

std::vector<std::string> text_list(const Json& item, const char* field, const RecipePlace& place) {
  std::vector<std::string> out;
  const auto found = item.find(field);
  if (found == item.end()) return out;
  if (!found->is_array())
    throw FileError(place.path, place.line,
                    fmt::format("expected \"{}\" to be a list of texts", field));
  for (const Json& one : *found) {
    if (!one.is_string() || trimmed(one.get<std::string>()).empty())
      throw FileError(place.path, place.line,
                      fmt::format("expected \"{}\" to be a list of texts", field));
    out.emplace_back(trimmed(one.get<std::string>()));
  }
  return out;
}

Recipe from_json(std::string_view line, const RecipePlace& place) {
  const Json item = json_in(line);
  if (!item.is_object()) throw FileError(place.path, place.line, "expected a JSON object");
  // Captions call it image.
  Recipe out{.picture = text_field(item, item.contains("picture") ? "picture" : "image", place),
             .kind = text_field(item, "kind", place),
             .title = text_field(item, "title", place),
             .ingredients = {},
             .steps = text_list(item, "steps", place),
             .split = text_field(item, "split", place)};
  if (!item.contains("ingredients"))
    throw FileError(place.path, place.line, "no \"ingredients\", expected a list of texts");
  for (const std::string& one : text_list(item, "ingredients", place))
    add_once(out.ingredients, one);
  return out;
}

Recipe from_columns(std::string_view line, const RecipePlace& place) {
  const auto fields = parted_at(line, '\t');
  if (fields.size() != 3 && fields.size() != 5)
    throw FileError(place.path, place.line,
                    fmt::format("{} columns, expected 5 (split, class, title, raw ingredients, "
                                "ingredients) or 3 (id, class, ingredients)",
                                fields.size()));
  Recipe out{.kind = std::string(trimmed(fields[1])), .ingredients = {}};
  if (fields.size() == 5) {
    out.split = trimmed(fields[0]);
    out.title = trimmed(fields[2]);
  }
  if (out.kind == "?") out.kind.clear();
  for (const std::string_view one : parted_at(fields.back(), '|')) add_once(out.ingredients, one);
  return out;
}

// The files of a folder, each with the split that its name says.
std::vector<std::pair<std::string, std::string>> files_of(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {{path, ""}};
  std::vector<std::pair<std::string, std::string>> named, out;
  for (const fs::path& entry : entries_of(path)) {
    const std::string name = entry.filename().string();
    const std::string_view stem(name.data(), std::min(name.size(), name.find('.')));
    const std::string_view ending = std::string_view(name).substr(stem.size());
    if (ending != ".tsv" && ending != ".tsv.gz" && ending != ".jsonl" && ending != ".jsonl.gz")
      continue;
    if (stem == "train" || stem == "test" || stem == "validation")
      named.emplace_back(entry.string(), stem);
    else if (stem.starts_with("recipes"))
      out.emplace_back(entry.string(), "");
  }
  if (out.size() > 1)
    throw FileError(
        path, 0,
        fmt::format("both {} and {}, expected one file of recipes", out[0].first, out[1].first));
  if (out.empty()) out = named;
  if (out.empty())
    throw FileError(path, 0, "expected recipes.jsonl, recipes*.tsv, or train.tsv, in this folder");
  return out;
}

std::string key_text(const Recipe& one) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", one.picture, one.kind, one.title,
                     fmt::join(one.ingredients, "|"), fmt::join(one.steps, "|"));
}

}  // namespace

std::vector<Recipe> parse_recipes(const std::string& text, const std::string& path) {
  std::vector<Recipe> out;
  bool json = false;
  each_line(std::string_view(text), path, [&](size_t number, std::string_view line) {
    if (trimmed(line).empty()) return;
    if (out.empty()) json = trimmed(line).front() == '{';
    out.push_back(json ? from_json(line, {path, number}) : from_columns(line, {path, number}));
  });
  if (out.empty()) throw FileError(path, 0, "no recipes in it");
  return out;
}

std::string recipe_lines(const std::vector<Recipe>& recipes) {
  std::string out;
  for (const Recipe& one : recipes) {
    Json item = Json::object();
    const auto add = [&](const char* field, const std::string& text) {
      if (!text.empty()) item[field] = text;
    };
    add("picture", one.picture);
    add("split", one.split);
    add("kind", one.kind);
    add("title", one.title);
    item["ingredients"] = one.ingredients;
    if (!one.steps.empty()) item["steps"] = one.steps;
    out += item.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return out;
}

Recipes read_recipes(const std::string& path, const SplitRequest& request) {
  Recipes out;
  std::error_code ignored;
  const std::string parent = fs::path(path).parent_path().string();
  out.folder = fs::is_directory(path, ignored) ? path : parent.empty() ? "." : parent;
  for (const auto& [file, split] : files_of(path))
    for (Recipe& one : parse_recipes(read_file(file), file)) {
      if (!split.empty()) one.split = split;
      out.items.push_back(std::move(one));
    }
  std::vector<uint64_t> keys;
  std::vector<int64_t> unsaid;
  for (size_t i = 0; i < out.items.size(); ++i) {
    keys.push_back(item_key(key_text(out.items[i])));
    if (out.items[i].split.empty()) unsaid.push_back(static_cast<int64_t>(i));
  }
  if (!unsaid.empty() && unsaid.size() < out.items.size())
    throw FileError(path, 0,
                    fmt::format("{} of {} recipes name no split, expected all or none",
                                unsaid.size(), out.items.size()));
  const bool own = unsaid.empty() && request.folds == 0;
  SplitRequest shares = request;
  shares.keys = keys;
  if (!own) {
    out.splits = split(static_cast<int64_t>(out.items.size()), shares);
    return out;
  }
  for (size_t i = 0; i < out.items.size(); ++i)
    out.splits.of(split_from_name(out.items[i].split)).push_back(static_cast<int64_t>(i));
  if (request.all_test) {
    if (out.splits.test.empty()) out.splits = split(static_cast<int64_t>(out.items.size()), shares);
    out.splits.train.clear();
    out.splits.validation.clear();
  }
  out.splits.keys = std::move(keys);
  return out;
}

}  // namespace fovea::data
