// The one table of cases: correctness, gradients and benchmarks all build their problems from it.
//
// A case names its choices by the rows of four tables (scores, modifiers, normalisers, structures);
// `build` turns it into an engine::Problem that owns its memory, the same for the same seed on
// every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/storage.h"
#include "fovea/engine.h"

namespace fovea::cases {

// Packed structures: `batch` sequences (one for a graph) of at most `queries` and `keys`.
struct Shape {
  int64_t batch = 2, heads = 2, key_heads = 2;
  int64_t queries = 5, keys = 7;
  int64_t width = 4, value_width = 3;
};

enum class Content {
  kPlain,   // scores of the order of 1
  kLarge,   // scores of the order of 1e4
  kPoison,  // plain, with NaN wherever no query looks: unseen keys and values, masked biases,
            // queries that see nothing
};

enum class Layout {
  kContiguous,
  kStrided,  // heads inside the sequence, rows padded, and an odd offset: [B, L, H, E + 3] + 1 seen
             // as [B, H, L, E]
};

struct Case {
  std::string score = "dot";
  std::vector<std::string> modifiers{};
  std::string normaliser = "softmax";
  std::vector<std::string> structure = {"dense"};  // all of these
  Shape shape{};
  engine::DType dtype = engine::DType::kFloat32;
  bool key_lengths = false;
  bool query_offset = false;  // one for each item
  double dropout_p = 0;
  uint64_t seed = 1;
  Content content = Content::kPlain;
  Layout layout = Layout::kContiguous;

  std::string name() const;
};

// A case's problem with the memory behind it, places for results and gradients, and gradients of
// the outputs.
struct Built {
  Storage storage;
  engine::Problem problem;
  engine::Result result;
  engine::Gradients gradients;
};

Built build(const Case&);

// One row of a table: what to call it, which alternative of the variant it is, and how to make it.
struct ScoreRow {
  std::string name;
  std::string kind;  // the alternative's kName
  engine::Score (*make)(Storage&, const Case&, const Shape&);
  int64_t (*query_width)(const Shape&);
  int64_t (*key_width)(const Shape&);
  double (*flops)(const Shape&);  // a pair, forward
};
struct ModifierRow {
  std::string name, kind;
  engine::Modifier (*make)(Storage&, const Case&, const Shape&);
};
struct NormaliserRow {
  std::string name, kind;
  engine::Normaliser (*make)(Storage&, const Case&, const Shape&);
};
struct StructureRow {
  std::string name, kind;
  engine::Structure (*make)(Storage&, const Case&, const Shape&);
};

const std::vector<ScoreRow>& scores();
const std::vector<ModifierRow>& modifiers();
const std::vector<NormaliserRow>& normalisers();
const std::vector<StructureRow>& structures();
// A row by name; throws InvalidArgument with the names there are.
const ScoreRow& score(const std::string& name);
const ModifierRow& modifier(const std::string& name);
const NormaliserRow& normaliser(const std::string& name);
const StructureRow& structure(const std::string& name);

// Pairs that may meet, over the whole batch and all heads.
int64_t pairs(const engine::Problem&);
// Multiply and add counted apart: each pair's score and its part of the sum of values.
double flops(const Case&, const engine::Problem&);

}  // namespace fovea::cases
