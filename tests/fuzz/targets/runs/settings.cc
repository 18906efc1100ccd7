// `--set name=value`, and the options that a run's configuration holds.
#include "train/option_values.h"

#include <cmath>

#include "data/files/json.h"
#include "tests/fuzz/target.h"
#include "train/descent/recipe.h"
#include "train/types.h"

namespace fovea::fuzz {
namespace {

void fuzz_settings(std::string_view input) {
  Bytes bytes(input);
  static const OptionValues fresh = [] {
    std::vector<Option> declared = train::options_of(train::Recipe{});
    declared.emplace_back("shared", true, "a flag");
    declared.emplace_back("columns", "", "a list");
    return OptionValues(declared);
  }();
  OptionValues given = fresh;
  if (input.starts_with('{')) {
    const Json json = data::json_in(input);
    if (!json.is_discarded()) accepts([&] { given.restore(json); });
  } else {
    while (!bytes.rest().empty()) accepts([&] { given.set(bytes.part()); });
  }
  require(std::isfinite(given.number("rate")) && given.number("rate") >= 0,
          "a number is in its range");
  require(given.integer("batch") >= 1, "a whole number is in its range");
  given.list("columns");
  train::recipe_of(given);
}
const Registration option_values{"settings", fuzz_settings};

}  // namespace
}  // namespace fovea::fuzz
