// The rows of the structure table and of the normaliser table.
#include <algorithm>
#include <cmath>

#include "cases/cases.h"
#include "cases/ranges.h"

namespace fovea::cases {
namespace {

using engine::DType;
using engine::View;

// Offsets of `batch` sequences: the longest first, then any length, 0 for the third.
View offsets(Storage& storage, int64_t batch, int64_t longest) {
  std::vector<double> at = {0};
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = b == 0 ? longest : b == 2 ? 0 : storage.integer(0, longest);
    at.push_back(at.back() + static_cast<double>(length));
  }
  return storage.values(DType::kInt32, at);
}

View booleans(Storage& storage, std::initializer_list<int64_t> size, double share) {
  const View view = storage.zeros(DType::kBool, size);
  Storage::each(view, [&](int64_t at) { Storage::set(view, at, storage.uniform(0, 1) < share); });
  return view;
}

// Runs of equal ids, with an id no one shares now and then.
View documents(Storage& storage, std::initializer_list<int64_t> size, double stranger) {
  const View view = storage.zeros(DType::kInt32, size);
  double id = 0;
  Storage::each(view, [&](int64_t at) {
    if (storage.uniform(0, 1) < 0.3) id = std::fmod(id + 1, 3);
    Storage::set(view, at, storage.uniform(0, 1) < 0.15 ? stranger : id);
  });
  return view;
}

// Rows of about `share` of the keys; every fifth row is empty.
engine::Structure graph(Storage& storage, const Shape& s, double share) {
  std::vector<double> rows = {0}, columns;
  for (int64_t i = 0; i < s.queries; ++i) {
    for (int64_t j = 0; j < s.keys && i % 5 != 3; ++j) {
      if (storage.uniform(0, 1) < share) columns.push_back(static_cast<double>(j));
    }
    rows.push_back(static_cast<double>(columns.size()));
  }
  return engine::Graph{storage.values(DType::kInt32, rows), storage.values(DType::kInt32, columns)};
}

// The same with columns in any order and some of them twice.
engine::Structure shuffled_graph(Storage& storage, const Shape& s) {
  std::vector<double> rows = {0}, columns;
  for (int64_t i = 0; i < s.queries; ++i) {
    const int64_t degree = s.keys == 0 ? 0 : storage.integer(0, s.keys);
    for (int64_t n = 0; n < degree; ++n) {
      columns.push_back(static_cast<double>(storage.integer(0, s.keys - 1)));
    }
    rows.push_back(static_cast<double>(columns.size()));
  }
  return engine::Graph{storage.values(DType::kInt32, rows), storage.values(DType::kInt32, columns)};
}

int64_t root(int64_t n) {
  return std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(n))));
}
int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
constexpr int64_t kBlock = 3;

}  // namespace

const std::vector<NormaliserRow>& normalisers() {
  using S = Storage;
  static const std::vector<NormaliserRow> rows = {
      {"softmax", "softmax",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Softmax{}; }},
      {"softmax_sink", "softmax",
       [](S& m, const Case& c, const Shape& s) -> engine::Normaliser {
         return engine::Softmax{m.floats(engine::arithmetic_of(c.dtype), {s.heads}, -1, 1)};
       }},
      {"softmax_one_sink", "softmax",
       [](S& m, const Case& c, const Shape&) -> engine::Normaliser {
         return engine::Softmax{m.floats(engine::arithmetic_of(c.dtype), {1}, -1, 1)};
       }},
      {"kernel_ratio", "kernel_ratio",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::KernelRatio{}; }},
      {"unnormalised", "unnormalised",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Unnormalised{}; }},
      {"uniform", "uniform",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Uniform{}; }},
      {"sigmoid", "sigmoid",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Sigmoid{}; }},
      {"sparsemax", "sparsemax",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Sparsemax{}; }},
      {"entmax", "entmax",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Entmax{}; }},
      {"entmax_1.3", "entmax",
       [](S&, const Case&, const Shape&) -> engine::Normaliser {
         return engine::Entmax{.alpha = 1.3, .alpha_tensor = {}};
       }},
      {"entmax_alpha", "entmax",
       [](S& m, const Case& c, const Shape& s) -> engine::Normaliser {
         return engine::Entmax{.alpha_tensor =
                                   m.floats(engine::arithmetic_of(c.dtype), {s.heads}, 1.2, 2.2)};
       }},
      {"top_k", "top_k",
       [](S&, const Case&, const Shape& s) -> engine::Normaliser {
         return engine::TopK{std::clamp<int64_t>(s.keys, 1, 3)};
       }},
      {"hard", "hard",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Hard{}; }},
      {"hard_sample", "hard",
       [](S&, const Case&, const Shape&) -> engine::Normaliser { return engine::Hard{true}; }},
  };
  return rows;
}

const std::vector<StructureRow>& structures() {
  using S = Storage;
  static const std::vector<StructureRow> rows = {
      {"dense", "dense",
       [](S&, const Case&, const Shape&) -> engine::Structure { return engine::Dense{}; }},
      {"causal", "causal",
       [](S&, const Case&, const Shape&) -> engine::Structure { return engine::Causal{}; }},
      {"causal_bottom_right", "causal",
       [](S&, const Case&, const Shape&) -> engine::Structure {
         return engine::Causal{choice::Alignment::kBottomRight};
       }},
      {"window", "window",
       [](S&, const Case&, const Shape& s) -> engine::Structure {
         return engine::Window{s.keys / 4 + 1, s.keys / 8};
       }},
      {"window_left", "window",
       [](S&, const Case&, const Shape&) -> engine::Structure {
         return engine::Window{-1, 1};
       }},
      {"prefix", "prefix",
       [](S&, const Case&, const Shape& s) -> engine::Structure {
         return engine::Prefix{(s.keys + 2) / 3};
       }},
      {"prefix_per_item", "prefix",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         std::vector<double> lengths;
         for (int64_t b = 0; b < s.batch; ++b)
           lengths.push_back(static_cast<double>(m.integer(0, s.keys + 1)));
         return engine::Prefix{.lengths = m.values(DType::kInt32, lengths)};
       }},
      {"documents", "documents",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         return engine::Documents{documents(m, {s.queries}, -1), documents(m, {s.keys}, -2)};
       }},
      {"documents_per_batch", "documents",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         return engine::Documents{documents(m, {s.batch, s.queries}, -1),
                                  documents(m, {s.batch, s.keys}, -2)};
       }},
      {"blocks", "blocks",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         return engine::Blocks{
             booleans(m,
                      {s.batch, s.heads, blocks_of(s.queries, kBlock), blocks_of(s.keys, kBlock)},
                      0.5),
             kBlock};
       }},
      {"keep", "keep",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         const View mask = booleans(m, {s.batch, s.heads, s.queries, s.keys}, 0.6);
         int64_t n = 0;  // every fifth row sees nothing
         Storage::each(mask, [&](int64_t at) {
           if (n++ / s.keys % 5 == 3) Storage::set(mask, at, 0);
         });
         return engine::Keep{mask};
       }},
      {"keep_keys", "keep",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         return engine::Keep{booleans(m, {s.batch, 1, 1, s.keys}, 0.6)};
       }},
      {"ragged", "ragged",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         const View queries = offsets(m, s.batch, s.queries);
         return engine::Ragged{queries, offsets(m, s.batch, s.keys)};
       }},
      {"graph", "graph",
       [](S& m, const Case&, const Shape& s) -> engine::Structure { return graph(m, s, 0.5); }},
      {"graph_shuffled", "graph",
       [](S& m, const Case&, const Shape& s) -> engine::Structure { return shuffled_graph(m, s); }},
      {"strided", "strided",
       [](S&, const Case&, const Shape& s) -> engine::Structure {
         return engine::Strided{root(s.keys)};
       }},
      {"fixed", "fixed",
       [](S&, const Case&, const Shape& s) -> engine::Structure {
         return engine::Fixed{root(s.keys), 1};
       }},
      {"first", "first",
       [](S&, const Case&, const Shape& s) -> engine::Structure {
         return engine::First{(s.keys + 3) / 4};
       }},
      {"streaming", "any_of",
       [](S&, const Case&, const Shape& s) -> engine::Structure {
         return engine::Causal{} & (engine::Window{s.keys / 5, 0} | engine::First{2});
       }},
      {"keep_or_window", "any_of",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         return engine::Keep{booleans(m, {s.batch, 1, s.queries, s.keys}, 0.3)} |
                engine::Window{1, 1};
       }},
      {"beyond_window", "not",
       [](S&, const Case&, const Shape& s) -> engine::Structure {
         return ~engine::Window{s.keys / 5, s.keys / 7};
       }},
      {"not_documents", "not",
       [](S& m, const Case&, const Shape& s) -> engine::Structure {
         return ~(engine::Documents{documents(m, {s.batch, s.queries}, -1),
                                    documents(m, {s.batch, s.keys}, -2)} |
                  ~engine::Causal{});
       }},
  };
  return rows;
}

}  // namespace fovea::cases
