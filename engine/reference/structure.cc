#include "engine/reference/structure.h"

#include <type_traits>

namespace fovea::reference {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

// ids [N] or [B, N].
int32_t id_at(const Tensor<int32_t>& ids, int64_t batch, int64_t position) {
  return ids.data[ids.broadcast(0, 0, batch, position)];
}

}  // namespace

Structure::Structure(const engine::Problem& problem) : structure_(problem.structure) {
  const engine::View& query = problem.query;
  const engine::View& key = problem.key;
  lengths_ = Tensor<int32_t>(problem.key_lengths).data;
  choice::each_kind(structure_, [&](const auto& kind) {
    Tensor<int32_t> first, second;
    const auto take = Overloaded{
        [&](const engine::Documents& s) {
          first = Tensor<int32_t>(s.query_ids);
          second = Tensor<int32_t>(s.key_ids);
        },
        [&](const engine::Prefix& s) { first = Tensor<int32_t>(s.lengths); },
        [&](const engine::Blocks& s) { first = Tensor<int32_t>(s.mask); },
        [&](const engine::Keep& s) { first = Tensor<int32_t>(s.mask); },
        [&](const engine::Ragged& s) {
          packed_ = true;
          const auto queries = Tensor<int32_t>(s.query_offsets).data;
          const auto keys = Tensor<int32_t>(s.key_offsets).data;
          for (size_t b = 0; b + 1 < queries.size(); ++b) {
            sequences_.push_back({.batch = static_cast<int64_t>(b),
                                  .queries = queries[b + 1] - queries[b],
                                  .keys = keys[b + 1] - keys[b],
                                  .first_query = queries[b],
                                  .first_key = keys[b]});
          }
        },
        [&](const engine::Graph& s) {
          packed_ = true;
          row_offsets_ = Tensor<int32_t>(s.row_offsets).data;
          columns_ = Tensor<int32_t>(s.columns).data;
          sequences_.push_back({0, query.size[0], key.size[0], 0, 0});
        },
        [&](const engine::Paged& s) {
          table_ = Tensor<int32_t>(s.table);
          lengths_ = Tensor<int32_t>(s.lengths).data;
          page_size_ = key.size[1];
        },
        [](const auto&) {},
    };
    take(kind);
    first_.push_back(std::move(first));
    second_.push_back(std::move(second));
  });
  if (!packed_) {
    for (int64_t b = 0; b < query.size[0]; ++b) {
      const int64_t keys = paged() ? table_.size[1] * page_size_ : key.size[2];
      sequences_.push_back({b, query.size[2], keys, 0, 0});
    }
  }
  place_queries(problem);
}

// Where each sequence's queries stand: at the offset given, or, for a causal mask aligned to the
// bottom right, the last of them at the last key.
void Structure::place_queries(const engine::Problem& problem) {
  const auto offsets = Tensor<int32_t>(problem.query_offset.each).data;
  for (Sequence& sequence : sequences_) {
    sequence.query_offset = offsets.empty()       ? problem.query_offset.number
                            : offsets.size() == 1 ? offsets[0]
                                                  : offsets[sequence.batch];
    choice::each_kind(structure_, [&]<class Kind>(const Kind& kind) {
      if constexpr (std::is_same_v<Kind, engine::Causal>) {
        if (kind.alignment == choice::Alignment::kBottomRight)
          sequence.query_offset = length(sequence) - sequence.queries;
      }
    });
  }
}

int64_t Structure::length(const Sequence& sequence) const {
  return lengths_.empty() ? sequence.keys : lengths_[sequence.batch];
}

std::vector<int64_t> Structure::keys(const Sequence& sequence, int64_t head, int64_t i) const {
  std::vector<int64_t> seen;
  if (!row_offsets_.empty()) {
    for (int32_t edge = row_offsets_[i]; edge < row_offsets_[i + 1]; ++edge) {
      if (allows(sequence, head, i, columns_[edge])) seen.push_back(columns_[edge]);
    }
    return seen;
  }
  for (int64_t j = 0; j < sequence.keys; ++j) {
    if (allows(sequence, head, i, j)) seen.push_back(j);
  }
  return seen;
}

std::vector<int64_t> Structure::edges(const Sequence& sequence, int64_t head, int64_t i) const {
  std::vector<int64_t> seen;
  if (row_offsets_.empty()) return seen;
  for (int32_t edge = row_offsets_[i]; edge < row_offsets_[i + 1]; ++edge) {
    if (allows(sequence, head, i, columns_[edge])) seen.push_back(edge);
  }
  return seen;
}

int64_t Structure::row_in_pool(const Sequence& sequence, int64_t j) const {
  const int64_t page = table_.row(sequence.batch)[j / page_size_];
  return page * page_size_ + j % page_size_;
}

bool Structure::allows(const Sequence& sequence, int64_t head, int64_t row, int64_t j) const {
  const int64_t batch = sequence.batch, i = row + sequence.query_offset;
  if (j >= length(sequence)) return false;
  // The arrays lie in the order of the kinds, so every kind is visited, in that order.
  size_t at = 0;
  const auto one = [&](const auto& kind) {
    const size_t n = at++;
    const Tensor<int32_t>& first = first_[n];
    return Overloaded{
        [](const engine::Dense&) { return true; },
        [&](const engine::Causal&) { return j <= i; },
        [&](const engine::Window& s) {
          return (s.left < 0 || i - s.left <= j) && (s.right < 0 || j <= i + s.right);
        },
        [&](const engine::Prefix& s) {
          return j <= i || j < (first ? first.data[batch] : s.length);
        },
        [&](const engine::Documents&) {
          return id_at(first, batch, row) == id_at(second_[n], batch, j);
        },
        [&](const engine::Blocks& s) {
          return first.data[first.broadcast(batch, head, row / s.size, j / s.size)] != 0;
        },
        [&](const engine::Keep&) { return first.data[first.broadcast(batch, head, row, j)] != 0; },
        [](const engine::Ragged&) { return true; },
        [](const engine::Graph&) { return true; },
        [](const engine::Paged&) { return true; },
        [&](const engine::Strided& s) {
          return j <= i && (i - j <= s.stride || (i - j) % s.stride == 0);
        },
        [&](const engine::First& s) { return j < s.count; },
        [&](const engine::Fixed& s) {
          return j <= i && (j / s.stride == i / s.stride || j % s.stride >= s.stride - s.summary);
        },
    }(kind);
  };
  const auto all = [&](const auto& self, const engine::Structure& structure) -> bool {
    bool allowed = true;
    for (const auto& kind : structure.all_of) {
      allowed &= std::visit(
          [&]<class Kind>(const Kind& part) {
            if constexpr (choice::HasParts<Kind>) {
              bool any = false;
              for (const auto& inner : part.parts) any |= self(self, inner);
              return any != std::is_same_v<Kind, engine::Not>;
            } else {
              return one(part);
            }
          },
          kind);
    }
    return allowed;
  };
  return all(all, structure_);
}

}  // namespace fovea::reference
