#include "engine/dispatch.h"

#include <array>
#include <cstdio>

#include "engine/bf16/products.h"
#include "engine/call/pages.h"
#include "engine/call/view.h"
#include "engine/graph/graph.h"
#include "engine/tiles/backward.h"
#include "engine/tiles/forward.h"

namespace fovea::engine {

constinit const Path kGraphPath{
    .id = "graph",
    .summary = "keys of each row gathered",
    .declines = [](const Request& request) -> Reason {
      return {request.geometry.graph ? nullptr : "the structure is not a graph"};
    },
    .f32 = {graph_forward<float>, graph_backward<float>, graph_weights<float>},
    .f64 = {graph_forward<double>, graph_backward<double>, graph_weights<double>}};

constinit const Path kTilesPath{
    .id = "tiles",
    .summary = "blocks of queries against packed keys",
    .declines = [](const Request& request) -> Reason {
      return {request.geometry.graph ? "the structure is a graph" : nullptr};
    },
    .f32 = {tiles_forward<float>, tiles_backward<float>, tiles_weights<float>},
    .f64 = {tiles_forward<double>, tiles_backward<double>, tiles_weights<double>}};

namespace {

constexpr std::array kPaths = {&kShortPath,   &kDecodePath,     &kRankOneGraphPath, &kGraphPath,
                               &kStridedPath, &kKernelMeanPath, &kSupportPath,      &kTilesPath};

// The name of a task in explain_dispatch, and the reason of a path that does not have it.
struct TaskNames {
  const char *name, *missing;
};
constexpr TaskNames names_of(Task task) {
  switch (task) {
    case Task::kForward:
      return {"forward", "it has no forward in this type"};
    case Task::kBackward:
      return {"backward", "it has no backward in this type"};
    case Task::kWeights:
      break;
  }
  return {"weights", "it has no weights in this type"};
}

template <class T>
bool can(const Drivers<T>& drivers, Task task) {
  switch (task) {
    case Task::kForward:
      return drivers.forward;
    case Task::kBackward:
      return drivers.backward;
    case Task::kWeights:
      break;
  }
  return drivers.weights;
}

Reason reason_against(const Path& path, const Request& request) {
  const bool has = visit_arithmetic(
      request.geometry.storage, [&]<class T>() { return can(path.drivers<T>(), request.task); });
  if (!has) return {names_of(request.task).missing};
  if (request.geometry.paged && !path.reads_pages) return {"keys lie in pages"};
  const Reason reason = path.declines(request);
  const bool saves =
      request.task == Task::kBackward || (request.result && request.result->statistics);
  return reason || !saves || !path.declines_to_save ? reason : path.declines_to_save(request);
}

// One line for each path, up to the first that is taken whether or not forward saves statistics.
std::string explain(const Request& request) {
  std::string text = std::string(names_of(request.task).name) + "\n";
  for (const Path* path : kPaths) {
    const Reason reason = reason_against(*path, request);
    const Reason to_save =
        reason || !path->declines_to_save ? Reason{} : path->declines_to_save(request);
    text += std::string("  ") + path->id + ": ";
    if (reason)
      text += reason.words();
    else if (to_save)
      text += std::string("taken where nothing is saved for backward, ") + path->summary +
              "; otherwise: " + to_save.words();
    else
      text += std::string("taken, ") + path->summary;
    text += "\n";
    if (!reason && !to_save) break;
  }
  return text;
}

// Where no path reads keys in their pages, they are copied, and the list is searched again.
std::string explain(Task task, const Problem& problem, const Geometry& geometry) {
  const Parallel serial;
  const Request request{task, problem, geometry, serial};
  if (!geometry.paged || find_path(request)) return explain(request);
  const CopiedPages copied(problem, geometry, default_parallel());
  const std::string text = explain({task, copied.problem(), resolve(copied.problem()), serial});
  const size_t line = text.find('\n') + 1;
  return text.substr(0, line) +
         "  pages: keys and values are copied out of them, for the paths below\n" +
         text.substr(line);
}

}  // namespace

std::string Reason::words() const {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, text, got, expected);
  return buffer;
}

std::span<const Path* const> paths() { return kPaths; }

const Path* find_path(const Request& request) {
  for (const Path* path : kPaths) {
    if (!reason_against(*path, request)) return path;
  }
  return nullptr;
}

std::string explain_dispatch(const Problem& problem) {
  const Geometry geometry = resolve(problem);
  const Bf16Products* bf16 = bf16_products();
  return explain(Task::kForward, problem, geometry) + explain(Task::kBackward, problem, geometry) +
         "simd: " + simd_target() + (bf16 ? std::string(", bf16 products by ") + bf16->name : "") +
         "\n";
}

}  // namespace fovea::engine
