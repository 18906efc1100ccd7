// Matrices, lines and texts: words that look at words.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "tests/page/sample_parts.h"
#include "tests/page/samples.h"

namespace fovea::explain::samples {

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
  for (const char* crowded : {"superb", "stirring"}) {  // on "great", at the edge: no room for them
    axis.x.push_back(1.74);
    axis.y.push_back(5);
    axis.names.push_back(crowded);
  }
  e.plots = {Plot{.title = "Polarity axis",
                  .x_label = "polarity w·x",
                  .y_label = "rank",
                  .curves = {axis},
                  .markers = {{"neutral", 0}}},
             Plot{.title = "One epoch",
                  .x_label = "epoch",
                  .y_label = "loss",
                  .curves = {Curve{.label = "training loss", .x = {1}, .y = {0.4}}}}};
  e.notes = {"Each word's number is the same in every sentence: a sum cannot negate."};
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

}  // namespace fovea::explain::samples
