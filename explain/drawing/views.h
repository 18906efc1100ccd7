// The drawings of the views, each a piece; drawing.cc puts one together with its titles.
#pragma once

#include "explain/drawing/svg.h"

namespace fovea::explain::drawing {

// Queries down, keys across, the true entries outlined; a scale from 0, with the mark of even
// attention where weights sum to one. Of a large map, blocks by their largest entry.
Piece heat_map(const Explanation& explanation);
// Lines, points, bands and bars on two axes; of a slider, the step it stands on.
Piece plot(const Plot& plot, double wide);
// Keys as running text, shaded; a row for each of a few queries, or sentences with their bars.
Piece words(const Explanation& explanation);
// Instances with a bar beneath each, a strip for each bag; of a large bag the heaviest.
Piece strips(const Explanation& explanation);
// The keys as cards without weights.
Piece members(const Explanation& explanation);
// Regions over the picture, the first queries side by side.
Piece regions(const Explanation& explanation);
// Nodes where they lie, or on a ring; the heaviest edges.
Piece graph(const Explanation& explanation);
// The first rows of a table, a line under its head.
Piece table(const Table& table);
// Items down, hops across, each cell with its weight.
Piece memory(const Explanation& explanation);
// A beam search: a column for each word; what was pruned is counted.
Piece tree(const std::vector<TreeNode>& nodes);

}  // namespace fovea::explain::drawing
