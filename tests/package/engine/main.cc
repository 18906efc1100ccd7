// A program outside the tree: causal attention on its own arrays, without libtorch.
#include <fovea/engine.h>
#include <fovea/version.h>

#include <cstdio>
#include <vector>

extern int own_highway_calls;

int main() {
  using namespace fovea::engine;
  std::vector<float> query(4 * 8, 0.5f), key(4 * 8, 0.25f), value{1, 2, 3, 4}, output(4);
  const Problem problem{.query = View::of(query.data(), DType::kFloat32, {1, 1, 4, 8}),
                        .key = View::of(key.data(), DType::kFloat32, {1, 1, 4, 8}),
                        .value = View::of(value.data(), DType::kFloat32, {1, 1, 4, 1}),
                        .score = Dot{},
                        .normaliser = Softmax{},
                        .structure = Causal{}};
  forward(problem, {.output = View::of(output.data(), DType::kFloat32, {1, 1, 4, 1})},
          default_parallel());
  // Equal scores: each query averages the values up to its own place.
  for (float mean : output) std::printf("%.2f ", mean);
  std::printf("%s %s %d\n", simd_target(), FOVEA_VERSION, own_highway_calls);
}
