// Draws the picture of every page under docs/scores, docs/normalisers and docs/structures from what
// the engine computes:
//   build/bin/docs_pictures docs
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "fovea/elementwise.h"
#include "fovea/engine.h"
#include "io/write.h"

namespace {

using namespace fovea::engine;
using Matrix = std::vector<std::vector<float>>;

View view(std::vector<float>& data, std::initializer_list<int64_t> size) {
  return View::of(data.data(), DType::kFloat32, size);
}

// The weights of a problem of one head: its output for the identity as value.
Matrix weights_of(Problem problem, int64_t queries, int64_t keys) {
  std::vector<float> identity(keys * keys, 0), output(queries * keys);
  for (int64_t j = 0; j < keys; ++j) identity[j * keys + j] = 1;
  const bool packed = problem.query.rank == 3;
  problem.value = packed ? view(identity, {keys, 1, keys}) : view(identity, {1, 1, keys, keys});
  forward(
      problem,
      {.output = packed ? view(output, {queries, 1, keys}) : view(output, {1, 1, queries, keys})},
      default_parallel());
  Matrix rows;
  for (int64_t i = 0; i < queries; ++i)
    rows.emplace_back(output.begin() + i * keys, output.begin() + (i + 1) * keys);
  return rows;
}

// Cells in eight shades, white for exactly zero; one path a shade.
std::string heat_map(const Matrix& rows) {
  constexpr int kCell = 10, kShades = 8;
  float most = 0;
  for (const auto& row : rows)
    for (float x : row) most = std::max(most, x);
  std::vector<std::string> path(kShades + 1);
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < rows[i].size(); ++j) {
      if (rows[i][j] <= 0) continue;
      const int shade = static_cast<int>(std::ceil(kShades * rows[i][j] / most));
      path[shade] += "M" + std::to_string(j * kCell) + " " + std::to_string(i * kCell) + "h9v9h-9z";
    }
  const size_t width = rows[0].size() * kCell, height = rows.size() * kCell;
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-14 -14 " + std::to_string(width + 16) +
      " " + std::to_string(height + 16) + "\" width=\"" + std::to_string(width + 16) +
      "\" font-family=\"sans-serif\" font-size=\"9\" fill=\"#555\">\n"
      "<text x=\"0\" y=\"-4\">keys</text><text transform=\"rotate(-90)\" x=\"-" +
      std::to_string(height) + "\" y=\"-4\">queries</text>\n<rect x=\"-1\" y=\"-1\" width=\"" +
      std::to_string(width + 1) + "\" height=\"" + std::to_string(height + 1) +
      "\" fill=\"#fff\" stroke=\"#ccc\"/>\n";
  for (int s = 1; s <= kShades; ++s) {
    if (path[s].empty()) continue;
    char colour[8];
    const double t = static_cast<double>(s) / kShades;
    std::snprintf(colour, sizeof colour, "#%02x%02x%02x", int(225 - 200 * t), int(235 - 160 * t),
                  int(250 - 90 * t));
    svg += std::string("<path fill=\"") + colour + "\" d=\"" + path[s] + "\"/>\n";
  }
  return svg + "</svg>\n";
}

struct Curve {
  std::string name;
  std::vector<float> y;
};

// Curves over x in [-3, 3] in one frame.
std::string frame(const std::vector<Curve>& curves, float low, float high, int x0, int y0,
                  int width, int height, bool named) {
  static const char* kColours[] = {"#1f5fa8", "#c8501e", "#2f8f4e"};
  const auto px = [&](size_t i, size_t n) {
    return x0 + width * static_cast<double>(i) / static_cast<double>(n - 1);
  };
  const auto py = [&](double y) { return y0 + height * (1 - (y - low) / (high - low)); };
  char text[256];
  std::snprintf(
      text, sizeof text,
      "<path d=\"M%d %.1fh%d\" stroke=\"#ccc\"/><path d=\"M%d %dv%d\" stroke=\"#ddd\"/>\n", x0,
      py(0), width, x0 + width / 2, y0, height);
  std::string svg = text;
  for (size_t c = 0; c < curves.size(); ++c) {
    svg += std::string("<path fill=\"none\" stroke=\"") + kColours[c % 3] + "\" d=\"M";
    for (size_t i = 0; i < curves[c].y.size(); ++i) {
      std::snprintf(text, sizeof text, "%.0f %.1f ", px(i, curves[c].y.size()), py(curves[c].y[i]));
      svg += text;
    }
    svg += "\"/>\n";
    if (!named) continue;
    std::snprintf(text, sizeof text,
                  "<text x=\"%d\" y=\"%d\" stroke=\"none\" fill=\"%s\">%s</text>\n", x0 + 3,
                  y0 + 10 + 11 * static_cast<int>(c), kColours[c % 3], curves[c].name.c_str());
    svg += text;
  }
  return svg;
}

std::string plot(const std::string& body, int width, int height) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + std::to_string(width) + " " +
         std::to_string(height) + "\" width=\"" + std::to_string(width) +
         "\" font-family=\"sans-serif\" font-size=\"10\" stroke-width=\"1.5\">\n" + body +
         "</svg>\n";
}

class Album {
 public:
  explicit Album(std::string folder) : folder_(std::move(folder)) {}
  void add(const std::string& page, const std::string& svg) const {
    fovea::io::write_file(folder_ + "/" + page + ".svg", svg);
  }

 private:
  std::string folder_;
};

constexpr int64_t kQueries = 16, kKeys = 24;

// Points around a circle, every third key farther out.
std::vector<float> circle(int64_t n, double radius, double farther) {
  std::vector<float> points;
  for (int64_t i = 0; i < n; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n),
                 r = radius * (i % 3 == 0 ? farther : 1);
    points.push_back(static_cast<float>(r * std::cos(angle)));
    points.push_back(static_cast<float>(r * std::sin(angle)));
  }
  return points;
}

void draw_scores(const Album& album) {
  std::vector<float> query = circle(kQueries, 2, 1), key = circle(kKeys, 1.5, 1.6),
                     swap = {0, 1, 1, 0}, weight = {3, 3}, one = {4}, beta = {6};
  std::vector<float> slopes = {0.4f}, bias(kQueries * kKeys, 0), table(2 * 5, 0), numbers(kQueries),
                     key_numbers(kKeys), rows(kQueries * kKeys);
  for (int64_t i = 0; i < kQueries; ++i) bias[i * kKeys + std::min(kKeys - 1, i + 1)] = 3;
  for (int e = 6; e < 8; ++e) table[e] = query[e] * 2;
  for (int64_t i = 0; i < kQueries; ++i) numbers[i] = static_cast<float>(i) / 4 - 2;
  for (int64_t j = 0; j < kKeys; ++j) key_numbers[j] = 2 * std::sin(static_cast<float>(j));
  for (int64_t i = 0; i < kQueries; ++i)
    for (int64_t j = 0; j < kKeys; ++j)
      rows[i * kKeys + j] = -std::fabs(static_cast<float>(j) - 1.4f * static_cast<float>(i)) / 2;
  const auto draw = [&](const std::string& name, const Score& score, View q, View k) {
    album.add("scores/" + name,
              heat_map(weights_of({.query = q, .key = k, .score = score}, kQueries, kKeys)));
  };
  const View q = view(query, {1, 1, kQueries, 2}), k = view(key, {1, 1, kKeys, 2});
  const View qn = view(numbers, {1, 1, kQueries, 1}), kn = view(key_numbers, {1, 1, kKeys, 1});
  draw("dot", Dot{}, q, k);
  draw("bilinear", Bilinear{view(swap, {2, 2})}, q, k);
  draw("additive", Additive{view(weight, {2})}, q, k);
  draw("gated_additive", GatedAdditive{view(one, {1})}, q, k);
  draw("cosine", Cosine{view(beta, {1})}, q, k);
  draw("rank_one", RankOne{}, qn, kn);
  draw("location", Location{}, view(rows, {1, 1, kQueries, kKeys}), kn);
  draw("constant", Constant{}, q, k);
  draw("bias", Score(Constant{}).bias(view(bias, {kQueries, kKeys})), q, k);
  draw("alibi", Score(Constant{}).alibi(view(slopes, {1})), q, k);
  draw("relative", Score(Dot{}).relative(view(table, {5, 2}), View{}, 2), q, k);
  draw("soft_cap", Score(Dot{.scale = 10.0}).soft_cap(2), q, k);
  const auto later = fovea::elementwise(
      [](auto score, const fovea::RowPosition& at) {
        return score - 0.5f * static_cast<float>(at.key);
      },
      [](auto, const fovea::RowPosition&) { return 1.0f; });
  draw("custom", Score(Dot{}).custom(later), q, k);
}

void draw_kernels(const Album& album) {
  static const char* kNames[] = {"gaussian",  "laplace", "logistic",   "sigmoid",      "silverman",
                                 "cauchy",    "box",     "triangular", "epanechnikov", "quartic",
                                 "triweight", "tricube", "cosine"};
  constexpr int64_t kPoints = 121;
  std::vector<float> x, zero = {0}, bandwidth = {1};
  for (int64_t i = 0; i < kPoints; ++i) x.push_back(static_cast<float>(i - kPoints / 2) / 20);
  std::string body;
  for (int n = 0; n < 13; ++n) {
    Problem problem{.query = view(x, {1, 1, kPoints, 1}),
                    .key = view(zero, {1, 1, 1, 1}),
                    .score = Kernel{.name = static_cast<fovea::choice::KernelName>(n),
                                    .bandwidth = view(bandwidth, {1})},
                    .normaliser = Unnormalised{}};
    Curve curve{kNames[n], {}};
    for (const auto& row : weights_of(problem, kPoints, 1)) curve.y.push_back(row[0]);
    body += frame({curve}, -0.1f, 1.1f, 5 + n % 5 * 105, 5 + n / 5 * 75, 95, 65, true);
  }
  album.add("scores/kernel", plot(body, 530, 230));
}

void draw_normalisers(const Album& album) {
  constexpr int64_t kPoints = 121;
  std::vector<float> rows, keys(3, 0);
  for (int64_t i = 0; i < kPoints; ++i)
    rows.insert(rows.end(), {static_cast<float>(i - kPoints / 2) / 20, 0.0f, -0.5f});
  const auto draw = [&](const std::string& name, const Normaliser& normaliser, float low,
                        float high) {
    const Problem problem{.query = view(rows, {1, 1, kPoints, 3}),
                          .key = view(keys, {1, 1, 3, 1}),
                          .score = Location{},
                          .normaliser = normaliser};
    std::vector<Curve> curves = {{"score x", {}}, {"score 0", {}}, {"score -0.5", {}}};
    for (const auto& row : weights_of(problem, kPoints, 3))
      for (int c = 0; c < 3; ++c) curves[c].y.push_back(std::min(high, std::max(low, row[c])));
    album.add("normalisers/" + name,
              plot(frame(curves, low, high, 5, 5, 290, 120, true), 300, 130));
  };
  draw("softmax", Softmax{}, -0.05f, 1.05f);
  draw("kernel_ratio", KernelRatio{}, -4, 4);
  draw("unnormalised", Unnormalised{}, -3, 3);
  draw("uniform", Uniform{}, -0.05f, 1.05f);
  draw("sigmoid", Sigmoid{}, -0.05f, 1.05f);
  draw("sparsemax", Sparsemax{}, -0.05f, 1.05f);
  draw("entmax", Entmax{}, -0.05f, 1.05f);
  draw("top_k", TopK{2}, -0.05f, 1.05f);
  draw("hard", Hard{}, -0.05f, 1.05f);
}

void draw_structures(const Album& album) {
  constexpr int64_t n = 16;
  std::vector<float> nothing(n, 0);
  std::vector<int32_t> ids, offsets = {0, 3, 9, 16}, row_offsets = {0}, columns;
  for (int64_t i = 0; i < n; ++i) ids.push_back(i < 5 ? 0 : i < 11 ? 1 : 2);
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j : {i, (i * 5 + 3) % 16, (i * 7 + 1) % 16}) columns.push_back(j);
    row_offsets.push_back(static_cast<int32_t>(columns.size()));
  }
  static bool blocks[16], mask[n * n];
  for (int b = 0; b < 16; ++b) blocks[b] = b % 4 == b / 4 || b % 4 == 0 || b == 7;
  for (int m = 0; m < n * n; ++m) mask[m] = (m * 37 % 101) % 3 == 0;
  const auto ints = [](std::vector<int32_t>& data) {
    return View::of(data.data(), DType::kInt32, {static_cast<int64_t>(data.size())});
  };
  const auto draw = [&](const std::string& name, const Structure& structure, bool packed = false) {
    const View rows = packed ? view(nothing, {n, 1, 1}) : view(nothing, {1, 1, n, 1});
    album.add("structures/" + name, heat_map(weights_of({.query = rows,
                                                         .key = rows,
                                                         .score = Constant{},
                                                         .normaliser = Uniform{},
                                                         .structure = structure},
                                                        n, n)));
  };
  draw("dense", Dense{});
  draw("causal", Causal{});
  draw("window", Window{2, 1});
  draw("prefix", Prefix{5});
  draw("documents", Documents{ints(ids), ints(ids)});
  draw("blocks", Blocks{View::of(blocks, DType::kBool, {4, 4}), 4});
  draw("keep", Keep{View::of(mask, DType::kBool, {n, n})});
  draw("ragged", Ragged{ints(offsets), ints(offsets)}, true);
  draw("graph", Graph{ints(row_offsets), ints(columns)}, true);
  draw("strided", Strided{4});
  draw("fixed", Fixed{4, 1});
  draw("first", First{3});
  draw("streaming", Causal{} & (Window{3, 0} | First{2}));
  std::vector<int32_t> table = {2, 0, 3, 1}, lengths = {13};
  const Paged pages{View::of(table.data(), DType::kInt32, {1, 4}), ints(lengths)};
  std::vector<float> seen(n * n);
  weights({.query = view(nothing, {1, 1, n, 1}),
           .key = view(nothing, {4, 4, 1, 1}),
           .score = Constant{},
           .normaliser = Uniform{},
           .structure = pages & Causal{}},
          {}, {.weights = view(seen, {1, 1, n, n})}, default_parallel());
  Matrix matrix;
  for (int64_t i = 0; i < n; ++i)
    matrix.emplace_back(seen.begin() + i * n, seen.begin() + (i + 1) * n);
  album.add("structures/paged", heat_map(matrix));
  std::vector<float> bias;
  for (size_t e = 0; e < columns.size(); ++e) bias.push_back(e % 3 == 0 ? 2 : 0);
  const View rows = view(nothing, {n, 1, 1});
  album.add(
      "scores/edge_bias",
      heat_map(weights_of(
          {.query = rows,
           .key = rows,
           .score = Score(Constant{}).edge_bias(view(bias, {static_cast<int64_t>(bias.size())})),
           .structure = Graph{ints(row_offsets), ints(columns)}},
          n, n)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: docs_pictures DOCS_FOLDER\n");
    return 2;
  }
  try {
    const Album album(argv[1]);
    draw_scores(album);
    draw_kernels(album);
    draw_normalisers(album);
    draw_structures(album);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "docs_pictures: %s\n", error.what());
    return 1;
  }
}
