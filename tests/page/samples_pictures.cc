// Images, graphs, bags, curves, memories and trees.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "tests/page/sample_parts.h"
#include "tests/page/samples.h"

namespace fovea::explain::samples {

Explanation overlay() {
  Explanation e = labelled("show-attend-tell", "A seven above a two", View::kImage);
  e.score = "additive";
  e.scale = "1";
  e.query_label = "word";
  e.key_label = "region";
  Picture canvas{56, 56, 3, std::vector<uint8_t>(56 * 56 * 3, 18)};
  const auto paste = [&](int value, int left, int top) {
    const Picture d = digit(value, 3);
    for (int y = 0; y < 28; ++y)
      for (int x = 0; x < 28; ++x)
        for (int c = 0; c < 3; ++c)
          if (d.pixels[y * 28 + x])
            canvas.pixels[((top + y) * 56 + left + x) * 3 + c] = d.pixels[y * 28 + x];
  };
  paste(7, 20, 0);
  paste(2, 6, 28);
  e.picture = canvas;
  for (int y = 0; y < 7; ++y)
    for (int x = 0; x < 7; ++x)
      e.keys.push_back(
          {.text = "row " + std::to_string(y + 1) + ", column " + std::to_string(x + 1),
           .position = {x / 7.0, y / 7.0, 1 / 7.0, 1 / 7.0}});
  e.queries = words("a seven above a two");
  e.truth = Truth{.label = "box of the digit named"};
  std::vector<float> scores(5 * 49);
  for (int q = 0; q < 5; ++q)
    for (int k = 0; k < 49; ++k) {
      const double x = k % 7 + 0.5, y = k / 7 + 0.5;
      const double cx = q < 2 ? 4.2 : 2.5, cy = q < 2 ? 1.7 : 5.2,
                   spread = q == 1 || q == 4 ? 1.2 : 5;
      scores[q * 49 + k] = -((x - cx) * (x - cx) + (y - cy) * (y - cy)) / (2 * spread);
      const bool inside = q == 1   ? (x > 3 && x < 6 && y < 3.2)
                          : q == 4 ? (x > 1 && x < 4.2 && y > 3.8)
                                   : false;
      if (inside) e.truth->sure.push_back({q, k, 0});
    }
  e.maps = {{0, 0, softmax_rows(scores, 49), {}}};
  return e;
}

Explanation neighbourhood() {
  Explanation e = labelled("gat", "A paper and what it cites", View::kGraph);
  e.score = "LeakyReLU(a·[Wh;Wh′])";
  e.scale = "1";
  e.structure = "edges and self";
  e.query_label = "paper";
  e.key_label = "cited paper";
  const int n = 60;
  for (int i = 0; i < n; ++i) e.queries.push_back({.text = "paper " + std::to_string(i + 1)});
  e.keys = e.queries;
  e.heads.names = {"1", "2", "3", "4"};
  std::mt19937 random(8);
  std::vector<std::vector<int>> neighbours(n);
  for (int i = 0; i < n; ++i) {
    neighbours[i].push_back(i);
    for (int k = 0; k < 2 + int(random() % 6); ++k) {
      const int j = random() % n;
      if (std::find(neighbours[i].begin(), neighbours[i].end(), j) == neighbours[i].end())
        neighbours[i].push_back(j);
    }
  }
  for (int head = 0; head < 4; ++head) {
    Map map{0, head, {}, {}};
    for (int i = 0; i < n; ++i) {
      std::vector<float> scores(neighbours[i].size());
      for (float& s : scores) s = float(random() % 300) / 100;
      const std::vector<float> weights = softmax_rows(scores, scores.size());
      for (size_t k = 0; k < weights.size(); ++k)
        map.links.push_back({i, neighbours[i][k], weights[k]});
    }
    e.maps.push_back(map);
  }
  e.notes = {
      "The ranking of keys is the same for every query: the score is monotone in the key's half."};
  return e;
}

Explanation computation() {
  Explanation e = labelled("gradient-masking", "Where the gradient flows", View::kGraph);
  e.score = "given";
  e.scale = "1";
  e.query_label = "receives";
  e.key_label = "sends";
  const std::vector<std::tuple<const char*, double, double>> nodes = {
      {"loss", 3, 1}, {"o", 2, 1}, {"x₁", 1, 0}, {"x₂", 1, 2}, {"e₁", 0, 0.5}, {"e₂", 0, 1.5}};
  for (const auto& [text, x, y] : nodes) e.keys.push_back({.text = text, .position = {x, y}});
  e.queries = e.keys;
  e.layers.label = "e₁ − e₂";
  e.layers.chosen = 8;
  e.layers.names.clear();
  for (int step = 0; step <= 16; ++step) {
    const double gap = step - 8;
    e.layers.names.push_back(std::to_string(int(gap)));
    const float a = 1 / (1 + std::exp(-gap));
    e.maps.push_back(
        {step,
         0,
         {},
         {{1, 0, 1}, {2, 1, a}, {3, 1, 1 - a}, {4, 1, a * (1 - a)}, {5, 1, a * (1 - a)}}});
  }
  return e;
}

Explanation bags() {
  Explanation e = labelled("mil", "Does the bag hold a nine?", View::kBag);
  e.score = "gated additive";
  e.scale = "1";
  e.query_label = "bag";
  e.key_label = "instance";
  e.structure = "ragged";
  e.truth = Truth{.label = "key instance"};
  std::mt19937 random(2);
  Map map;
  for (int bag = 0; bag < 2; ++bag) {
    e.groups.push_back({bag == 0 ? "positive" : "negative", std::nullopt, std::nullopt});
    e.queries.push_back(
        {.text = bag == 0 ? "positive bag, p = 0.99" : "negative bag, p = 0.02", .group = bag});
    const int n = 10 + bag;
    std::vector<float> scores(n);
    const size_t first = e.keys.size();
    for (int i = 0; i < n; ++i) {
      const bool nine = bag == 0 && (i == 3 || i == 7);
      const int value = nine ? 9 : int(random() % 9);
      e.keys.push_back({.text = "", .group = bag, .picture = digit(value, random())});
      scores[i] = nine ? 5 : float(random() % 100) / 100;
      if (nine) e.truth->sure.push_back({bag, int(first) + i, 0});
    }
    const std::vector<float> weights = softmax_rows(scores, n);
    for (int i = 0; i < n; ++i) map.links.push_back({bag, int(first) + i, weights[i]});
  }
  e.maps = {map};
  e.notes = {"A negative bag's weights are nearly uniform: they are shown all the same."};
  return e;
}

Explanation members() {
  Explanation e = labelled("set-outlier", "The odd one out", View::kBag);
  e.score = "equivariant layers";
  e.normaliser = "none: margins over the least";
  e.query_label = "set";
  e.key_label = "member";
  e.queries = {{.text = "spring, summer, …"}};
  e.keys = words("spring summer autumn winter Tuesday equinox solstice");
  e.maps = {{0, 0, {0, 0.04f, 0, 0.02f, 0.91f, 0.03f, 0}, {}}};
  e.truth = Truth{.label = "the outlier"};
  e.truth->sure = {{0, 4, 0}};
  return e;
}

Explanation regression() {
  Explanation e = labelled("nadaraya-watson", "Kernel regression and its bandwidth", View::kCurve);
  e.score = "Gaussian kernel";
  e.normaliser = "kernel ratio";
  e.scale = "h, the slider";
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.35);
  Curve data{.kind = Curve::Kind::kPoints, .label = "data"};
  for (int i = 0; i < 60; ++i) {
    data.x.push_back(i / 6.0 + noise(random) * 0.2);
    data.y.push_back(2 * std::sin(data.x.back()) + 0.6 * data.x.back() + noise(random));
  }
  Plot fit{.title = "Data and estimate", .x_label = "x", .y_label = "y", .curves = {data}};
  Plot error{.title = "Leave-one-out error",
             .x_label = "bandwidth h",
             .y_label = "mean squared error",
             .log_x = true,
             .log_y = true};
  Slider slider{.label = "bandwidth h"};
  Curve loo{.label = "leave-one-out"};
  for (int s = 0; s < 24; ++s) {
    const double h = 0.05 * std::pow(1.22, s);
    slider.values.push_back(h);
    Curve estimate{.label = "estimate", .step = s},
        band{.kind = Curve::Kind::kBand, .label = "± noise", .step = s};
    for (int i = 0; i <= 120; ++i) {
      const double x = i / 12.0;
      double sum = 0, total = 0;
      for (size_t k = 0; k < data.x.size(); ++k) {
        const double w = std::exp(-0.5 * std::pow((x - data.x[k]) / h, 2));
        sum += w * data.y[k];
        total += w;
      }
      estimate.x.push_back(x);
      estimate.y.push_back(total > 1e-12 ? sum / total : std::nan(""));
      if (total > 1e-12) {
        band.x.push_back(x);
        band.y.push_back(sum / total - 0.35);
        band.upper.push_back(sum / total + 0.35);
      }
    }
    fit.curves.push_back(band);
    fit.curves.push_back(estimate);
    loo.x.push_back(h);
    loo.y.push_back(0.12 + 0.02 / h + 0.4 * h * h / (1 + h));
  }
  slider.chosen = 9;
  fit.slider = slider;
  error.curves = {loo};
  error.markers = {{"chosen h = 0.299", slider.values[9]},
                   {"Silverman's rule", slider.values[10]}};  // nearer than their labels are wide
  e.plots = {fit, error};
  return e;
}

Explanation story() {
  Explanation e = labelled("memory-network", "Where is the football?", View::kMemory);
  e.score = "dot";
  e.scale = "1";
  e.outcome = "garden, p = 0.94 (truth: garden)";
  e.query_label = "hop";
  e.key_label = "story";
  e.queries = {{.text = "hop 1"}, {.text = "hop 2"}, {.text = "hop 3"}};
  for (const char* line :
       {"Mary moved to the bathroom.", "John took the football.", "Mary journeyed to the hallway.",
        "John went to the garden.", "Sandra is in the kitchen."})
    e.keys.push_back({.text = line});
  e.maps = {
      {0, 0, {0.02f, 0.93f, 0, 0.05f, 0, 0, 0.18f, 0.02f, 0.8f, 0, 0, 0.03f, 0, 0.97f, 0}, {}}};
  e.truth = Truth{.label = "supporting fact"};
  e.truth->sure = {{0, 1, 0}, {1, 3, 0}, {2, 3, 0}};
  return e;
}

Explanation beam() {
  Explanation e = labelled("beam-search", "Beam of three", View::kTree);
  e.normaliser.clear();
  e.score = "log p / lp, α = 0.6";
  e.scale = "";
  e.structure = "";
  e.outcome = "beam of three: the house is small (right)\ngreedy search: the small house (wrong)";
  using S = TreeNode::State;
  e.tree = {{-1, "<s>", 0, S::kLive},       {0, "the", -0.4, S::kLive},
            {0, "a", -1.2, S::kLive},       {0, "this", -1.6, S::kLive},
            {0, "one", -3.9, S::kPruned},   {1, "house", -0.7, S::kLive},
            {1, "small", -1.1, S::kLive},   {1, "home", -2.8, S::kPruned},
            {2, "small", -1.5, S::kLive},   {2, "house", -2.6, S::kPruned},
            {3, "house", -3.1, S::kPruned}, {5, "is", -0.9, S::kLive},
            {5, "was", -2.7, S::kPruned},   {6, "house", -1.2, S::kLive},
            {8, "house", -1.8, S::kLive},   {8, "home", -3.3, S::kPruned},
            {11, "small", -1.0, S::kLive},  {11, "little", -1.9, S::kPruned},
            {13, "</s>", -1.7, S::kGreedy}, {14, "</s>", -2.2, S::kFinished},
            {16, "</s>", -1.1, S::kBest}};
  return e;
}

}  // namespace fovea::explain::samples
