#include "systems/inverse_cooking/dishes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "data/digits.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/generated/plates.h"
#include "data/pictures/idx.h"
#include "data/pictures/picture_questions.h"
#include "data/pictures/readable.h"

namespace fovea::systems::inverse_cooking {
namespace {

constexpr const char* kPictures = "pictures.idx";

Dishes plates(const Source& source, const OptionValues& options) {
  const int64_t train = options.integer("plates");
  const data::PlatePlan plan{.side = options.integer("side"),
                             .parts = {.train = train,
                                       .validation = std::max<int64_t>(1, train / 8),
                                       .test = std::max<int64_t>(1, train / 4)},
                             .seed = source.seed};
  data::Plates set = source.path.empty() ? data::generate_plates(plan)
                                         : data::plates_of(plan, data::read_mnist(source.path));
  Dishes out;
  out.recipes.splits = std::move(set.splits);
  for (data::Plate& plate : set.items) {
    plate.recipe.picture = fmt::format("{}#{}", kPictures, out.pixels.size());
    out.recipes.items.push_back(std::move(plate.recipe));
    out.pixels.push_back(std::move(plate.pixels));
  }
  return out;
}

using Counts = std::map<std::string, double>;

double cosine(const Counts& a, const Counts& b) {
  double sum = 0, of_a = 0, of_b = 0;
  for (const auto& [word, weight] : a) {
    of_a += weight * weight;
    if (const auto found = b.find(word); found != b.end()) sum += weight * found->second;
  }
  for (const auto& [word, weight] : b) of_b += weight * weight;
  return of_a > 0 && of_b > 0 ? sum / std::sqrt(of_a * of_b) : 0;
}

}  // namespace

bool Dishes::has_steps() const {
  return std::any_of(recipes.items.begin(), recipes.items.end(),
                     [](const data::Recipe& one) { return !one.steps.empty(); });
}

Dishes read_dishes(const Source& source, const OptionValues& options) {
  if (source.path.empty() || data::is_mnist(source.path)) return plates(source, options);
  Dishes out{.recipes = data::read_recipes(source.path, split_request(source)), .pixels = {}};
  const bool pictures = !out.recipes.items.front().picture.empty();
  data::PictureStore store(out.recipes.folder, options.integer("side"));
  data::Readable readable;
  for (const data::Recipe& one : out.recipes.items) {
    if (one.picture.empty() == pictures)
      throw data::FileError(source.path, 0,
                            "some recipes have a picture and some have none, expected all or none");
    if (!pictures && one.title.empty() && one.kind.empty() && !source.all_test)
      throw data::FileError(source.path, 0,
                            "a recipe with neither picture, title nor class, expected one of them");
    if (!pictures) continue;
    auto& pixels = out.pixels.emplace_back();
    readable.next([&] { pixels = store.at(one.picture); });
  }
  out.note = readable.note(source.path).value_or("");
  readable.leave_out_of(out.recipes.splits);
  return out;
}

Written write_dishes(const Dishes& dishes, int64_t side) {
  data::Idx all{{static_cast<int64_t>(dishes.pixels.size()), side, side, 3}, {}};
  for (const auto& picture : dishes.pixels)
    all.values.insert(all.values.end(), picture.begin(), picture.end());
  std::vector<data::Recipe> recipes = dishes.recipes.items;
  for (const Split part : {Split::kTrain, Split::kValidation, Split::kTest})
    for (const int64_t i : dishes.recipes.splits.of(part))
      recipes[static_cast<size_t>(i)].split = data::name_of(part);
  return {
      .files = {{kPictures, data::idx_bytes(all)}, {"recipes.jsonl", data::recipe_lines(recipes)}},
      .truth =
          "\"ingredients\" and \"steps\" of each line: a word that names an ingredient has "
          "to look at it"};
}

std::vector<std::string> title_words(const data::Recipe& recipe) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : data::lower_ascii(recipe.kind + " " + recipe.title) + " ") {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80) {
      word += c;
      continue;
    }
    const bool number =
        std::all_of(word.begin(), word.end(), [](unsigned char d) { return std::isdigit(d); });
    if (!word.empty() && !number && std::find(out.begin(), out.end(), word) == out.end())
      out.push_back(word);
    word.clear();
  }
  if (!recipe.kind.empty()) out.push_back("<" + recipe.kind + ">");
  return out;
}

std::vector<std::vector<std::string>> of_nearest_title(const std::vector<data::Recipe>& recipes,
                                                       const std::vector<data::Recipe>& known) {
  std::vector<std::vector<std::string>> words;
  std::map<std::string, double> documents;
  for (const data::Recipe& one : known) {
    words.push_back(title_words(one));
    for (const std::string& word : words.back()) documents[word] += 1;
  }
  const auto weighted = [&](const std::vector<std::string>& of) {
    Counts out;
    for (const std::string& word : of)
      if (const auto found = documents.find(word); found != documents.end())
        out[word] = std::log((1 + static_cast<double>(known.size())) / found->second);
    return out;
  };
  std::vector<Counts> candidates;
  for (const auto& one : words) candidates.push_back(weighted(one));
  std::vector<std::vector<std::string>> out;
  for (const data::Recipe& one : recipes) {
    const Counts asked = weighted(title_words(one));
    size_t best = 0;
    double largest = -1;
    for (size_t i = 0; i < candidates.size(); ++i)
      if (const double near = cosine(asked, candidates[i]); near > largest) {
        largest = near;
        best = i;
      }
    out.push_back(known.empty() ? std::vector<std::string>{} : known[best].ingredients);
  }
  return out;
}

}  // namespace fovea::systems::inverse_cooking
