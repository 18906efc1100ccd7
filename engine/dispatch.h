// The paths a call can take, fastest first. forward, backward, weights and explain_dispatch go
// through this one list: the first path that does not decline is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/call/problem.h"

namespace fovea::engine {

// Why a path declines, or nothing. Made for every call; formatted as text for explain_dispatch only.
struct Reason {
  const char* text = nullptr;  // %zu stands for `got`, a second one for `expected`
  size_t got = 0, expected = 0;

  explicit operator bool() const { return text != nullptr; }
  std::string words() const;
};

enum class Task { kForward, kBackward, kWeights };

// What a path is to do. `result` is where forward writes, or what forward saved for backward.
// explain_dispatch has no arrays and leaves `result` and `gradients` null; a path then assumes that
// the arrays suit it.
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
  const char* id;       // one word, its name in tests and messages
  const char* summary;  // how it works
  // Why it declines the request, or nothing. Called only for tasks that its drivers have.
  Reason (*declines)(const Request& request);
  // A further reason to decline a forward that saves for backward, and that backward; null: none.
  // For a path that adds up scores in another order: the backward of another path would compute
  // slightly different scores, and weights that do not sum to one.
  Reason (*declines_to_save)(const Request& request) = nullptr;
  bool reads_pages = false;  // its forward reads keys that lie in pages
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

// In the order in which they are tried. kGraphPath or kTilesPath accepts every request whose keys do
// not lie in pages.
std::span<const Path* const> paths();
// Null: keys lie in pages, and no path reads them there for this request.
const Path* find_path(const Request& request);

}  // namespace fovea::engine
