#include "explain/bars.h"

namespace fovea::explain {

Plot bars(Plot frame, const std::string& slider_label, const std::vector<BarRow>& rows) {
  Slider slider{.label = slider_label};
  for (size_t row = 0; row < rows.size(); ++row) {
    Curve curve{.kind = Curve::Kind::kBars,
                .label = rows[row].label,
                .step = rows.size() > 1 ? static_cast<int>(row) : -1};
    for (size_t i = 0; i < rows[row].heights.size(); ++i) {
      curve.x.push_back(static_cast<double>(i + 1));
      curve.y.push_back(rows[row].heights[i]);
    }
    frame.curves.push_back(std::move(curve));
    slider.values.push_back(static_cast<double>(row + 1));
  }
  if (rows.size() > 1) frame.slider = slider;
  return frame;
}

}  // namespace fovea::explain
