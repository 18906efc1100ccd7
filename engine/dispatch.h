// The paths a call can take, fastest first. forward, backward, weights and explain_dispatch walk
// this one list: the first path that nothing speaks against is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/call/problem.h"

namespace fovea::engine {

// Why a path declines, or nothing. Made for every call, put into words for explain_dispatch only.
struct Reason {
  const char* text = nullptr;  // %zu stands for `got`, a second one for `expected`
  size_t got = 0, expected = 0;

  explicit operator bool() const { return text != nullptr; }
  std::string words() const;
};

enum class Task { kForward, kBackward, kWeights };

// What a path is asked to do. `result` is where forward writes, or what forward saved for backward.
// explain_dispatch knows no arrays: it leaves `result` and `gradients` null, and a path then answers
// for arrays that suit it.
struct Request {
  Task task;
  const Problem& problem;
  const Geometry& geometry;
  const Parallel& parallel;
  const Result* result = nullptr;
  const Gradients* gradients = nullptr;  // backward only
};

// What a path can do in one arithmetic type; null where it cannot.
template <class T>
struct Drivers {
  // Returns the number of queries that saw no key.
  int64_t (*forward)(const Problem& problem, const Geometry& geometry, const Result& result,
                     const Parallel& parallel) = nullptr;
  // Adds to the gradients of parameters, which are zero before; overwrites the others.
  void (*backward)(const Problem& problem, const Geometry& geometry, const Result& saved,
                   const Gradients& gradients, const Parallel& parallel) = nullptr;
  void (*weights)(const Problem& problem, const Geometry& geometry, const Selection& selection,
                  const SelectedWeights& out, const Parallel& parallel) = nullptr;
};

struct Path {
  const char* id;       // one word: what tests and messages call it
  const char* summary;  // how it goes about it
  // Why it does not serve the request, or nothing. Asked only for what its drivers can do.
  Reason (*declines)(const Request& request);
  // Why, besides, it does not serve a forward that saves for backward, nor that backward; null:
  // nothing. Such a path makes scores in an order of its own, from which no other path's backward
  // may start: a weight would come out as e^(what rounding makes of its score) times itself.
  Reason (*declines_to_save)(const Request& request) = nullptr;
  Drivers<float> f32{};
  Drivers<double> f64{};

  template <class T>
  const Drivers<T>& drivers() const {
    if constexpr (sizeof(T) == sizeof(double))
      return f64;
    else
      return f32;
  }
};

// Each is defined in the file of its name under paths/; graph and tiles in dispatch.cc.
extern const Path kShortPath, kDecodePath, kRankOneGraphPath, kGraphPath, kStridedPath,
    kKernelMeanPath, kSupportPath, kTilesPath;

// In the order in which they are asked. For every request one of the last two serves.
std::span<const Path* const> paths();
const Path& choose_path(const Request& request);

}  // namespace fovea::engine
