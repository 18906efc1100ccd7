#include "engine/call/pages.h"

#include <algorithm>
#include <cstring>

#include "engine/call/view.h"
#include "engine/loops/rows.h"
#include "engine/runtime/parallel.h"

namespace fovea::engine {
namespace {

// A page of an item: which page of the pool, and how many rows of it are keys.
struct Use {
  size_t page, batch, place, rows;
};

// Every page in use, by items, then by place.
Vector<Use> uses_of(const Geometry& g) {
  Vector<Use> all;
  for (size_t b = 0; b < g.batches; ++b) {
    for (size_t at = 0, place = 0; at < g.key_limit[b]; at += g.page_size, ++place)
      all.push_back({g.page(b, place), b, place, std::min(g.page_size, g.key_limit[b] - at)});
  }
  return all;
}

// Rows of one head of a page.
Rows rows_of_page(const View& pool, size_t page, size_t head) {
  const int64_t offset =
      static_cast<int64_t>(page) * pool.stride[0] + static_cast<int64_t>(head) * pool.stride[2];
  return {static_cast<char*>(pool.data) + offset * static_cast<int64_t>(size_of(pool.dtype)),
          pool.stride[1], static_cast<size_t>(pool.size[1])};
}

// Those rows of the copy.
Rows rows_of_copy(const View& rows, const Use& use, size_t head) {
  const int64_t first = static_cast<int64_t>(use.batch) * rows.stride[0] +
                        static_cast<int64_t>(head) * rows.stride[1];
  return {static_cast<char*>(rows.data) + first * static_cast<int64_t>(size_of(rows.dtype)),
          rows.stride[2], static_cast<size_t>(rows.size[2])};
}

}  // namespace

CopiedPages::CopiedPages(const Problem& problem, const Geometry& geometry, const Parallel& parallel)
    : g_(geometry), problem_(problem) {
  problem_.key = rows_of(problem.key, &key_);
  problem_.value = rows_of(problem.value, &value_);
  copy(problem.key, problem_.key, parallel);
  copy(problem.value, problem_.value, parallel);
  auto& parts = problem_.structure.all_of;
  std::erase_if(parts, [](const auto& part) { return std::holds_alternative<Paged>(part); });
  problem_.key_lengths = geometry.paged->lengths;
}

// Memory for the rows of every item; nothing is written past an item's keys, and nothing read.
View CopiedPages::rows_of(const View& pool, Scratch* memory) const {
  const auto batches = static_cast<int64_t>(g_.batches), keys = static_cast<int64_t>(g_.max_keys),
             heads = static_cast<int64_t>(g_.key_heads), width = pool.size[3];
  *memory = Scratch(static_cast<size_t>(batches * heads * keys * width) * size_of(pool.dtype) + 1);
  return View::of(memory->data(), pool.dtype, {batches, heads, keys, width});
}

void CopiedPages::copy(const View& pool, const View& rows, const Parallel& parallel) const {
  const size_t bytes = size_of(pool.dtype), row = static_cast<size_t>(pool.size[3]) * bytes;
  const Vector<Use> uses = uses_of(g_);
  run_tickets(parallel, uses.size(), [&](size_t, size_t ticket) {
    const Use& use = uses[ticket];
    for (size_t h = 0; h < g_.key_heads && row > 0; ++h) {
      const Rows from = rows_of_page(pool, use.page, h), to = rows_of_copy(rows, use, h);
      for (size_t r = 0; r < use.rows; ++r) {
        const auto i = static_cast<int64_t>(r), j = static_cast<int64_t>(use.place * g_.page_size);
        std::memcpy(to.data + (i + j) * to.stride * static_cast<int64_t>(bytes),
                    from.data + i * from.stride * static_cast<int64_t>(bytes), row);
      }
    }
  });
}

Gradients CopiedPages::places(const Gradients& wanted) {
  Gradients all = wanted;
  if (wanted.key) all.key = key_places_ = rows_of(wanted.key, &d_key_);
  if (wanted.value) all.value = value_places_ = rows_of(wanted.value, &d_value_);
  return all;
}

void CopiedPages::add_up(const Gradients& wanted, const Parallel& parallel) const {
  if (wanted.key) add_up(key_places_, wanted.key, parallel);
  if (wanted.value) add_up(value_places_, wanted.value, parallel);
}

// One ticket a page, so that the items that share it add in one order; in the arithmetic type, so
// that they round once.
void CopiedPages::add_up(const View& rows, const View& pool, const Parallel& parallel) const {
  const auto width = static_cast<size_t>(pool.size[3]), pages = static_cast<size_t>(pool.size[0]);
  Vector<Use> uses = uses_of(g_);
  std::stable_sort(uses.begin(), uses.end(),
                   [](const Use& a, const Use& b) { return a.page < b.page; });
  visit_arithmetic(pool.dtype, [&]<class T>() {
    Vector<Vector<T>> sums(slots(parallel, pages)), terms(slots(parallel, pages));
    run_tickets(parallel, pages, [&](size_t worker, size_t page) {
      const auto is_before = [](const Use& use, size_t n) { return use.page < n; };
      const auto first = std::lower_bound(uses.begin(), uses.end(), page, is_before),
                 last = std::lower_bound(first, uses.end(), page + 1, is_before);
      auto &sum = sums[worker], &term = terms[worker];
      for (size_t h = 0; h < g_.key_heads && width > 0; ++h) {
        sum.assign(g_.page_size * width, T(0));
        term.resize(g_.page_size * width);
        for (auto use = first; use != last; ++use) {
          load_rows(rows.dtype, rows_of_copy(rows, *use, h), use->place * g_.page_size, use->rows,
                    width, term.data(), width);
          for (size_t i = 0; i < use->rows * width; ++i) sum[i] += term[i];
        }
        store_rows(sum.data(), width, g_.page_size, width, pool.dtype, rows_of_page(pool, page, h),
                   0);
      }
    });
  });
}

}  // namespace fovea::engine
