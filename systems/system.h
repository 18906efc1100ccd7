// An attention system. It is registered once; then `list`, `generate`, `train`, `evaluate`,
// `predict`, `explain` and `tour` work on it.
//
//   namespace {
//   const fovea::systems::Registration registered{{.info = {...}, .options = {...}, .make = ...}};
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/descent/recipe.h"
#include "train/option_values.h"

namespace fovea {
class Task;
struct RunOptions;
}  // namespace fovea

namespace fovea::systems {

// Query, key, value, score, normaliser and structure of a system, in words.
struct Triple {
  std::string query = {}, key = {}, value = {};
  std::string score = {}, normaliser = {}, structure = {};
};

struct Info {
  std::string name = {};      // on the command line
  int number = 0;             // its place in lists and in the tour
  std::string title = {};     // "Nadaraya–Watson regression"
  std::string idea = {};      // a paragraph for the tour: what it does and why
  std::string paper = {};     // authors, year
  std::string equation = {};  // LaTeX; scripts/system-pages typesets it for the pages
  std::string code = {};      // the C++ lines that run it
  Triple triple = {};
  std::vector<std::string> formats = {};  // the data it takes, one line each
  std::string expect = {};                // the figure to expect, with its source
};

struct System {
  Info info = {};
  std::vector<Option> options = {};          // its own; those of the recipe are added
  std::optional<train::Recipe> recipe = {};  // how it is trained by gradient; none: it is not
  std::vector<std::string> tour = {};        // settings ("epochs=3") of the tour's short run
  // Multiply-adds of the product that training repeats most, on `data` (empty: generated). It is
  // set where that product may be too small for threads.
  std::function<double(const OptionValues&, const std::string& data)> step_work = {};
  std::function<std::unique_ptr<Task>(const RunOptions&)> make = {};

  // Every option a user may set.
  OptionValues option_values() const;
};

// The product of a recurrent layer: for each row a state of `width` numbers, times the weights of
// `gates` such states.
inline double recurrent_step(int64_t rows, int64_t width, int64_t gates) {
  return static_cast<double>(rows * gates) * static_cast<double>(width * width);
}
// With a vocabulary of real text, most of the work is in the words, not in the steps.
inline constexpr double kLargeStep = std::numeric_limits<double>::infinity();
// The step_work of a system of recurrent layers with the options `batch` and `width`.
inline auto recurrent_work(int64_t gates) {
  return [gates](const OptionValues& o, const std::string& data) {
    return data.empty() ? recurrent_step(o.integer("batch"), o.integer("width"), gates)
                        : kLargeStep;
  };
}

// In order of number.
std::vector<const System*> all();
// UsageError, with the nearest name, if there is no such system.
const System& find(const std::string& name);

struct Registration {
  explicit Registration(System);
};

}  // namespace fovea::systems
