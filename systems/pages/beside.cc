#include "systems/pages/beside.h"

#include <algorithm>

#include "systems/system.h"
#include "translate/pictures.h"

namespace fovea::systems {
namespace {

explain::Explanation* by_length(std::vector<explain::Section>& sections,
                                const std::string& system) {
  for (explain::Section& section : sections) {
    if (section.id != system) continue;
    for (explain::Explanation& e : section.explanations)
      if (e.title == translate::kLengthTitle && e.plots.size() == 1) return &e;
  }
  return nullptr;
}

std::string generator_of(const std::string& system) {
  for (const std::string& setting : find(system).tour)
    if (setting.starts_with("generator=")) return setting;
  return system;  // its own default; another system may not have it
}

explain::Curve bleu_of(const explain::Explanation& e) {
  const std::vector<explain::Curve>& curves = e.plots[0].curves;
  const auto found = std::find_if(curves.begin(), curves.end(),
                                  [](const explain::Curve& c) { return c.label == "BLEU"; });
  explain::Curve curve = found == curves.end() ? explain::Curve{} : *found;
  curve.label = e.system;
  return curve;
}

}  // namespace

void set_beside(std::vector<explain::Section>& sections, const std::string& one,
                const std::string& other) {
  explain::Explanation *a = by_length(sections, one), *b = by_length(sections, other);
  if (a == nullptr || b == nullptr || generator_of(one) != generator_of(other)) return;
  const std::vector<explain::Curve> curves = {bleu_of(*a), bleu_of(*b)};
  for (explain::Explanation* e : {a, b}) {
    e->plots[0].curves = curves;
    e->plots[0].y_label = "BLEU";
    e->notes = {
        "Both were trained on the same sentences, and are judged on the same test sentences."};
  }
}

}  // namespace fovea::systems
