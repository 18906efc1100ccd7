#include "engine/dispatch.h"

#include <array>

#include "engine/bf16/products.h"
#include "engine/paths/decode.h"
#include "engine/paths/rank_one_graph.h"
#include "engine/paths/kernel_mean.h"
#include "engine/paths/strided.h"

namespace fovea::engine {
namespace {

const std::array kPaths = {
    Path{"decode: keys split into chunks, read once where they lie", against_decode},
    Path{"rank-one graph: all heads of an edge in one sweep", against_rank_one},
    Path{"graph: keys of each row gathered",
         [](const Problem&, const Geometry& g) {
           return std::string(g.graph ? "" : "the structure is not a graph");
         }},
    Path{"strided: the band, then each residue as a causal problem of its own", against_strided},
    Path{"kernel mean: weights used in registers, no tile stored", against_kernel_mean},
    Path{"tiles: blocks of queries against packed keys",
         [](const Problem&, const Geometry& g) {
           return std::string(g.graph ? "the structure is a graph" : "");
         }},
};

}  // namespace

std::span<const Path> paths() { return kPaths; }

PathId choose_path(const Problem& problem, const Geometry& geometry) {
  size_t i = 0;
  while (!kPaths[i].against(problem, geometry).empty()) ++i;
  return static_cast<PathId>(i);
}

std::string explain_dispatch(const Problem& problem) {
  const Geometry geometry = resolve(problem);
  std::string text;
  bool taken = false;
  for (const Path& path : kPaths) {
    const std::string reason = path.against(problem, geometry);
    const char* verdict = !reason.empty() ? "declined: " : taken ? "not needed" : "taken";
    text += std::string(path.name) + ": " + verdict + reason + "\n";
    taken = taken || reason.empty();
  }
  const Bf16Products* bf16 = bf16_products();
  return text + "simd: " + simd_target() +
         (bf16 ? std::string(", bf16 products by ") + bf16->name : "") + "\n";
}

}  // namespace fovea::engine
