#include "tests/page/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>

namespace fovea::explain::samples {
namespace {

std::vector<Item> words(const std::string& text) {
  std::vector<Item> items;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) items.push_back({.text = word});
  return items;
}

std::vector<float> softmax_rows(std::vector<float> scores, size_t columns) {
  for (size_t row = 0; row < scores.size(); row += columns) {
    float top = scores[row], sum = 0;
    for (size_t j = 0; j < columns; ++j) top = std::max(top, scores[row + j]);
    for (size_t j = 0; j < columns; ++j) sum += scores[row + j] = std::exp(scores[row + j] - top);
    for (size_t j = 0; j < columns; ++j) scores[row + j] /= sum;
  }
  return scores;
}

// Scores that favour the given key of each query, with noise.
std::vector<float> peaked(const std::vector<int>& favourite, size_t columns, float height,
                          uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise(0, 0.7f);
  std::vector<float> scores(favourite.size() * columns);
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = noise(random) + (int(i % columns) == favourite[i / columns] ? height : 0);
  return softmax_rows(scores, columns);
}

Explanation labelled(const char* system, const char* title, View view) {
  Explanation e;
  e.system = system;
  e.title = title;
  e.view = view;
  e.score = "scaled dot product";
  e.normaliser = "softmax";
  e.structure = "dense";
  e.scale = "1/√64 = 0.125";
  return e;
}

// A digit as seven bars, 28 x 28.
Picture digit(int value, uint32_t seed) {
  static constexpr int kBars[10] = {0b1110111, 0b0100100, 0b1011101, 0b1101101, 0b0101110,
                                    0b1101011, 0b1111011, 0b0100101, 0b1111111, 0b1101111};
  static constexpr int kAt[7][4] = {{8, 4, 12, 2}, {7, 5, 2, 9},   {19, 5, 2, 9}, {8, 13, 12, 2},
                                    {7, 14, 2, 9}, {19, 14, 2, 9}, {8, 22, 12, 2}};
  static constexpr int kBit[7] = {0, 1, 2, 3, 4, 5, 6};
  std::mt19937 random(seed);
  Picture p{28, 28, 1, std::vector<uint8_t>(784)};
  for (int b = 0; b < 7; ++b) {
    if (!(kBars[value] >> kBit[b] & 1)) continue;
    for (int y = 0; y < kAt[b][3]; ++y)
      for (int x = 0; x < kAt[b][2]; ++x)
        p.pixels[(kAt[b][1] + y) * 28 + kAt[b][0] + x] = 200 + random() % 56;
  }
  return p;
}

}  // namespace

Explanation alignment() {
  Explanation e = labelled("bahdanau", "The house is small, word by word", View::kMatrix);
  e.score = "additive";
  e.scale = "1";
  e.query_label = "output word";
  e.key_label = "source word";
  e.keys = words("das kleine Haus steht leider nicht mehr am See .");
  e.queries = words("unfortunately the small house by the lake no longer stands .");
  const std::vector<int> favourite = {4, 0, 1, 2, 7, 7, 8, 5, 6, 3, 9};
  e.maps = {{0, 0, peaked(favourite, 10, 5, 1), {}}};
  e.truth = Truth{.label = "gold alignment"};
  for (size_t i = 0; i < favourite.size(); ++i) e.truth->sure.push_back({int(i), favourite[i], 0});
  e.truth->possible = {{7, 6, 0}, {8, 5, 0}, {5, 8, 0}};
  e.notes = {"Row t belongs to output word t though it is scored with the state before it."};
  return e;
}

Explanation heads() {
  Explanation e = labelled("multi-head", "Who did what to whom", View::kBipartite);
  e.query_label = e.key_label = "word";
  e.queries = e.keys = words("The animal did not cross the street because it was tired");
  e.layers.names = {"1", "2"};
  e.heads.names = {"who", "did what", "to whom"};
  for (int layer = 0; layer < 2; ++layer)
    for (int head = 0; head < 3; ++head) {
      std::vector<int> favourite(11);
      for (int i = 0; i < 11; ++i)
        favourite[i] = head == 0 ? (i == 8 ? 1 : i) : head == 1 ? (i + 10) % 11 : 6;
      e.maps.push_back(
          {layer, head, peaked(favourite, 11, layer == 0 ? 2.2f : 4.5f, 7 * layer + head), {}});
    }
  e.truth = Truth{.label = "what “it” means"};
  e.truth->sure = {{8, 1, 0}};
  return e;
}

Explanation maps() {
  Explanation e =
      labelled("transformer", "Causal self-attention, every layer and head", View::kMatrix);
  e.normaliser = "sparsemax";
  e.structure = "causal";
  e.query_label = e.key_label = "token";
  e.queries = e.keys =
      words("a woman in a red coat is walking two dogs across the frozen lake at dawn .");
  const size_t n = e.keys.size();
  e.layers.names = {"1", "2", "3"};
  e.heads.names = {"1", "2", "3", "4"};
  std::mt19937 random(3);
  std::normal_distribution<float> noise(0, 1);
  for (int layer = 0; layer < 3; ++layer)
    for (int head = 0; head < 4; ++head) {
      std::vector<float> dense(n * n);
      for (size_t i = 0; i < n; ++i) {
        float sum = 0;
        for (size_t j = 0; j <= i; ++j) {
          const float near =
              head % 2 ? std::exp(-0.5f * float(i - j)) * 2 : (j % (head + 2) == 0 ? 1.2f : 0);
          dense[i * n + j] = std::max(0.0f, near + 0.4f * noise(random) - 0.35f);
          sum += dense[i * n + j];
        }
        if (sum == 0) dense[i * n + i] = sum = 1;
        for (size_t j = 0; j <= i; ++j) dense[i * n + j] /= sum;
      }
      e.maps.push_back({layer, head, dense, {}});
    }
  return e;
}

Explanation beside_truth() {
  Explanation e = labelled("nadaraya-watson", "Silverman's kernel goes negative", View::kMatrix);
  e.score = "Silverman kernel, h = 0.9";
  e.normaliser = "kernel ratio";
  e.scale = "h = 0.9";
  e.query_label = "grid point";
  e.key_label = "data point";
  const int n = 40;
  std::vector<float> dense(n * n), truth(n * n);
  for (int i = 0; i < n; ++i) {
    e.queries.push_back({.text = "x" + std::to_string(i)});
    e.keys.push_back({.text = "x" + std::to_string(i)});
    float sum = 0;
    for (int j = 0; j < n; ++j) {
      const float u = std::abs(i - j) / 2.0f / std::sqrt(2.0f);
      sum += dense[i * n + j] = std::exp(-u) * std::sin(u + 0.785398f);
      truth[i * n + j] = std::exp(-0.5f * (i - j) * (i - j) / 9.0f) / 7.5f;
    }
    for (int j = 0; j < n; ++j) dense[i * n + j] /= sum;
  }
  e.maps = {{0, 0, dense, {}}};
  e.truth = Truth{.label = "Gaussian kernel", .dense = truth};
  e.notes = {"Silverman's weights may be negative: they are not probabilities."};
  return e;
}

Explanation million() {
  Explanation e = labelled("sparse-patterns", "A thousand by a thousand", View::kMatrix);
  const int n = 1000;
  std::mt19937 random(5);
  std::vector<float> dense(size_t(n) * n);
  for (int i = 0; i < n; ++i) {
    e.queries.push_back({.text = "t" + std::to_string(i)});
    e.keys.push_back({.text = "t" + std::to_string(i)});
    for (int j = 0; j <= i; ++j)
      if (i - j <= 31 || (i - j) % 32 == 0)
        dense[size_t(i) * n + j] =
            float(random() % 1000 + 1) / 1000 / std::sqrt(1.0f + (i - j) % 97);
  }
  e.structure = "strided, l = 32";
  e.maps = {{0, 0, dense, {}}};
  return e;
}

Explanation far_apart() {
  Explanation e = labelled("gat", "A graph of 200,000 nodes", View::kMatrix);
  const int n = 200'000;
  e.queries.resize(n);
  e.keys.resize(n);
  std::mt19937 random(6);
  Map map;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < 3; ++k)
      map.links.push_back({i, int((i + random() % (k * 5000 + 2)) % n), 1.0f / 3});
  e.structure = "graph";
  e.maps = {map};
  return e;
}

Explanation sentence() {
  Explanation e = labelled("document-attention", "One sentence, two aspects", View::kText);
  e.score = "additive";
  e.scale = "1";
  e.outcome = "food: positive, p = 0.98 · service: negative, p = 0.97";
  e.query_label = "aspect";
  e.key_label = "word";
  e.queries = words("food service");
  e.keys = words("the food was delicious but the service was dreadful and slow .");
  e.maps = {{0, 0, peaked({3, 8}, 12, 4, 9), {}}};
  e.truth = Truth{.label = "the aspect's clause"};
  e.truth->sure = {{0, 3, 0}, {1, 8, 0}};
  e.truth->possible = {{0, 1, 0}, {1, 6, 0}, {1, 10, 0}};
  return e;
}

Explanation document() {
  Explanation e = labelled("hierarchical", "A review, sentence by sentence", View::kText);
  e.score = "dot with a learned context vector";
  e.scale = "1";
  e.outcome = "positive, p = 0.91 (truth: positive)";
  e.key_label = "word";
  e.queries = {{.text = "document"}};
  const std::vector<std::pair<const char*, double>> sentences = {
      {"The film opens in a small harbour town in the north .", 0.04},
      {"Two brothers repair an old boat through one long winter .", 0.05},
      {"It is a tender , funny and quietly magnificent piece of work .", 0.71},
      {"Their sister returns from the city with news .", 0.06},
      {"I was moved far more than I expected .", 0.14}};
  std::mt19937 random(4);
  std::vector<float> weights;
  for (size_t s = 0; s < sentences.size(); ++s) {
    e.groups.push_back(
        {"sentence " + std::to_string(s + 1), sentences[s].second, s == 2 || s == 4});
    std::vector<float> scores;
    for (Item item : words(sentences[s].first)) {
      item.group = int(s);
      scores.push_back(item.text.size() > 5 ? float(random() % 30) / 10 : 0.2f);
      e.keys.push_back(item);
    }
    for (float w : softmax_rows(scores, scores.size())) weights.push_back(w);
  }
  e.maps = {{0, 0, weights, {}}};
  return e;
}

Explanation polarity() {
  Explanation e = labelled("word-sum", "The failing pair", View::kText);
  e.score = "constant";
  e.normaliser = "none";
  e.scale = "1";
  e.outcome = "not really great: positive, p = 0.88 (truth: negative)";
  e.queries = {{.text = "sentence"}};
  e.key_label = "word";
  e.keys = words("not really great , a dull and lifeless affair");
  e.maps = {{0, 0, {-0.31f, 0.12f, 1.74f, 0, 0.02f, -1.52f, 0.05f, -1.61f, -0.2f}, {}}};
  Curve axis{.kind = Curve::Kind::kPoints, .label = "word"};
  int rank = 0;
  for (const auto& [word, value] : std::vector<std::pair<std::string, double>>{{"lifeless", -1.61},
                                                                               {"dull", -1.52},
                                                                               {"not", -0.31},
                                                                               {"really", 0.12},
                                                                               {"great", 1.74},
                                                                               {"moving", 1.41}}) {
    axis.x.push_back(value);
    axis.y.push_back(++rank);
    axis.names.push_back(word);
  }
  e.plots = {Plot{.title = "Polarity axis",
                  .x_label = "polarity w·x",
                  .y_label = "rank",
                  .curves = {axis},
                  .markers = {{"neutral", 0}}}};
  e.notes = {"Each word's number is the same in every sentence: a sum cannot negate."};
  return e;
}

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
  e.normaliser = "sparsemax";
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
  error.markers = {{"chosen h = 0.299", slider.values[9]}};
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
  using S = TreeNode::State;
  e.tree = {{-1, "<s>", 0, S::kLive},         {0, "the", -0.4, S::kLive},
            {0, "a", -1.2, S::kLive},         {0, "this", -1.6, S::kLive},
            {0, "one", -3.9, S::kPruned},     {1, "house", -0.7, S::kLive},
            {1, "small", -1.1, S::kLive},     {1, "home", -2.8, S::kPruned},
            {2, "small", -1.5, S::kLive},     {2, "house", -2.6, S::kPruned},
            {3, "house", -3.1, S::kPruned},   {5, "is", -0.9, S::kLive},
            {5, "was", -2.7, S::kPruned},     {6, "house", -1.2, S::kLive},
            {8, "house", -1.8, S::kLive},     {8, "home", -3.3, S::kPruned},
            {11, "small", -1.0, S::kLive},    {11, "little", -1.9, S::kPruned},
            {13, "</s>", -1.7, S::kFinished}, {14, "</s>", -2.2, S::kFinished},
            {16, "</s>", -1.1, S::kBest}};
  return e;
}

Explanation hostile() {
  Explanation e =
      labelled("hostile", "</script><script>window.broken = 1</script> & <b>bold</b>", View::kText);
  e.outcome = "<img src=x onerror='window.broken = 2'>";
  e.notes = {"<script>window.broken = 3</script>"};
  e.queries = {{.text = "<i>q</i>"}};
  e.keys = words("</script> <!-- <script> \"onload='x'\" \u2028 \\u003c ]]>");
  e.maps = {{0, 0, std::vector<float>(e.keys.size(), 1.0f / e.keys.size()), {}}};
  e.shapes = Shapes{"1 × 8", "7 × 8", "7 × 4", "1 × 7", "1 × 4"};
  e.tables = {Table{"<u>steps</u>", -1, {"step", "value"}, {{"score", "<0.5>"}}}};
  return e;
}

std::vector<Explanation> all() {
  return {alignment(),  heads(),   maps(),          beside_truth(), sentence(), document(),
          polarity(),   overlay(), neighbourhood(), computation(),  bags(),     members(),
          regression(), story(),   beam(),          hostile()};
}

}  // namespace fovea::explain::samples
