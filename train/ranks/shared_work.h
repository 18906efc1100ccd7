// Work that ranks share without a gradient, such as the batches of an evaluation: each rank does some
// pieces, and all get the results of all, in order.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fovea::train {

class Ranks;

// What each piece gave, as numbers. Results do not depend on who computed what. `ranks` null: this
// process does all. All ranks call it with as many pieces; `what` is what a waiting rank is said to wait
// for.
using Numbers = std::vector<double>;
std::vector<Numbers> shared_work(Ranks* ranks, size_t pieces,
                                 const std::function<Numbers(size_t piece)>& compute,
                                 const std::string& what);

// The same where a rank does its pieces together: `compute` is given their numbers, and gives a result
// for each.
std::vector<Numbers> shared_work_together(
    Ranks* ranks, size_t pieces,
    const std::function<std::vector<Numbers>(const std::vector<size_t>& own)>& compute,
    const std::string& what);

}  // namespace fovea::train
