// Weights for a picture, computed where a model calls attend, and only while they are wanted.
//
// After its call of attend, a model calls capture with the same arguments:
//
//   auto out = fovea::attend(query, key, value, choices);
//   explain::capture("encoder 1", query, key, choices);
//
// capture returns at once unless a Capture object exists on this thread. If one does, it computes
// the weights of the wanted rows and heads, and no others. Run the model on the items to be shown,
// not on a batch of thousands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "fovea/attend.h"

namespace fovea::explain {

struct CaptureRequest {
  std::vector<int64_t> rows = {}, heads = {};  // empty: all
  int64_t item = 0;                            // of the batch
  int64_t top_k = 0;  // keep the largest of each row, as links (graphs, long rows); 0: whole rows
};

// One call of attend that was seen.
struct Captured {
  std::string name;
  int64_t queries = 0, keys = 0;
  std::vector<Map> maps;                            // one for each head wanted
  std::string score, normaliser, structure, scale;  // the labels of a picture
};

class Capture {
 public:
  explicit Capture(CaptureRequest request = {});
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // In the order of the calls.
  const std::vector<Captured>& calls() const { return calls_; }
  // Maps, layers, heads and labels from every call, one layer each. The items must be there
  // already: further keys are padding and are left out. InvalidArgument if there are fewer rows
  // than queries, or if no call was seen.
  void fill(Explanation& explanation) const;

 private:
  friend void capture(const char*, const at::Tensor&, const at::Tensor&, const Choices&,
                      const Options&);
  CaptureRequest request_;
  std::vector<Captured> calls_;
  Capture* outer_;  // the Capture that was active before this one
};

void capture(const char* name, const at::Tensor& query, const at::Tensor& key,
             const Choices& choices = {}, const Options& options = {});

// The four labels of a combination, written as its picture shows them.
void label(Explanation& explanation, const Choices& choices, const Options& options, int64_t width);

}  // namespace fovea::explain
