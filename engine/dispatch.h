// The ways forward can go, fastest first; the first that nothing speaks against is taken.
#pragma once

#include <span>
#include <string>

#include "engine/call/problem.h"

namespace fovea::engine {

struct Path {
  const char* name;
  std::string (*against)(const Problem& problem, const Geometry& geometry);  // empty: serves it
};

enum class PathId { kDecode, kRankOneGraph, kGraph, kStrided, kKernelMean, kTiles };
std::span<const Path> paths();
PathId choose_path(const Problem& problem, const Geometry& geometry);

}  // namespace fovea::engine
