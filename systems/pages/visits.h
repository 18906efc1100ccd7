// The visits of a tour: a system is trained (or its run unpacked), evaluated and explained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/report.h"
#include "systems/pages/tour.h"
#include "systems/system.h"
#include "train/progress.h"

namespace fovea::systems {

struct Visit {
  explain::Section section;
  std::optional<double> hit_rate;
  std::string failure;  // why there is no section; empty: there is one
};

// One for each system, in their order. Each is made in a process of its own, as many at a time as
// there are threads: small models gain nothing from a second thread, but two can learn at the same
// time. A system that measures time has the machine to itself.
std::vector<Visit> visits(const std::vector<const System*>&, const TourRequest&, train::Progress&);

}  // namespace fovea::systems
