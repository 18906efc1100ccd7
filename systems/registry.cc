#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

#include "data/nearest.h"
#include "systems/system.h"

namespace fovea::systems {
namespace {

// A static of a function: it is constructed before the first system registers itself. A deque keeps
// addresses.
std::deque<System>& registry() {
  static std::deque<System> systems;
  return systems;
}

}  // namespace

Registration::Registration(System system) { registry().push_back(std::move(system)); }

std::vector<const System*> all() {
  std::vector<const System*> systems;
  for (const System& system : registry()) systems.push_back(&system);
  std::sort(systems.begin(), systems.end(), [](const System* a, const System* b) {
    return std::pair(a->info.number, a->info.name) < std::pair(b->info.number, b->info.name);
  });
  return systems;
}

const System& find(const std::string& name) {
  std::vector<std::string> names;
  for (const System* system : all()) {
    if (system->info.name == name) return *system;
    names.push_back(system->info.name);
  }
  throw UsageError(fmt::format("no system '{}'{}; `fovea list` shows them all", name,
                               data::did_you_mean(name, names)));
}

OptionValues System::option_values() const {
  std::vector<Option> declared = options;
  if (recipe) {
    std::vector<Option> learning = train::options_of(*recipe);
    declared.insert(declared.end(), learning.begin(), learning.end());
  }
  return OptionValues(std::move(declared));
}

}  // namespace fovea::systems
