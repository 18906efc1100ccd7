#include "tests/page/samples.h"

namespace fovea::explain::samples {

std::vector<Explanation> all() {
  return {alignment(),  heads(),   maps(),          beside_truth(), sentence(),    document(),
          polarity(),   overlay(), neighbourhood(), computation(),  bags(),        members(),
          regression(), story(),   beam(),          shuffled_set(), point_cloud(), hostile()};
}

}  // namespace fovea::explain::samples
