// One Explanation for each view, made up but shaped like the real ones; the page tests and the eye
// judge the views by them.
#pragma once

#include <vector>

#include "explain/explanation.h"

namespace fovea::explain::samples {

Explanation alignment();      // matrix, sure and possible links
Explanation heads();          // bipartite, layers and heads
Explanation maps();           // matrix, layers x heads, exact zeros
Explanation beside_truth();   // matrix with a dense truth, signed weights
Explanation million();        // matrix, 1000 x 1000
Explanation far_apart();      // matrix, sparse, 200,000 x 200,000
Explanation sentence();       // text, two aspects
Explanation document();       // text with sentence bars
Explanation polarity();       // text, signed, with a polarity axis
Explanation overlay();        // image
Explanation neighbourhood();  // graph, ego, heads, entropy
Explanation computation();    // graph with positions and a slider of layers
Explanation bags();           // bag with pictures
Explanation members();        // bag of words
Explanation regression();     // curve with a slider
Explanation story();          // memory
Explanation beam();           // tree
Explanation shuffled_set();   // shuffle: digits, a sum and a GRU
Explanation point_cloud();    // shuffle: points, a maximum and answers drawn beforehand
Explanation hostile();        // text that tries to be markup

std::vector<Explanation> all();  // every one but the two large

}  // namespace fovea::explain::samples
