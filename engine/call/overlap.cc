#include "engine/call/overlap.h"

#include <array>
#include <cstdlib>
#include <type_traits>

#include "engine/call/check.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// The bytes from the lowest of a view to the one after its highest.
struct Range {
  uintptr_t low = 0, high = 0;

  explicit Range(const View& view) {
    const auto element = static_cast<int64_t>(size_of(view.dtype));
    low = reinterpret_cast<uintptr_t>(view.data);
    high = low + static_cast<uintptr_t>(element);
    for (int d = 0; d < view.rank; ++d) {
      if (view.size[d] == 0) {
        low = high = 0;  // meets nothing
        return;
      }
      if (view.size[d] == 1) continue;  // its stride is not used, and may be anything
      // Modulo the size of an address space, where every array lies.
      const uintptr_t reach = static_cast<uintptr_t>(view.stride[d]) *
                              static_cast<uintptr_t>(element) *
                              static_cast<uintptr_t>(view.size[d] - 1);
      (view.stride[d] < 0 ? low : high) += reach;
    }
  }

  bool empty() const { return low == high; }
  bool meets(const Range& other) const { return low < other.high && other.low < high; }
};

// A view as steps through bytes, from its lowest address on.
struct Lattice {
  uintptr_t low = 0;
  int64_t element = 0;  // bytes of one
  int dimensions = 0;
  std::array<int64_t, 4> step{}, count{};  // of the dimensions of more than one element

  explicit Lattice(const View& view)
      : low(Range(view).low), element(static_cast<int64_t>(size_of(view.dtype))) {
    for (int d = 0; d < view.rank; ++d) {
      if (view.size[d] <= 1) continue;
      step[dimensions] = std::abs(view.stride[d] * element);
      count[dimensions++] = view.size[d];
    }
  }

  // Bytes reached by the dimensions whose step is no multiple of `period`: modulo the period, all
  // elements lie within that many bytes from the first.
  int64_t within(int64_t period) const {
    int64_t bytes = element;
    for (int d = 0; d < dimensions; ++d) {
      if (step[d] % period != 0) bytes += step[d] * (count[d] - 1);
    }
    return bytes;
  }
};

// Slices of one array repeat with the same period and lie side by side within it.
bool apart_within(const Lattice& a, const Lattice& b, int64_t period) {
  const auto p = static_cast<uintptr_t>(period);
  const auto from_a = static_cast<int64_t>((b.low % p + p - a.low % p) % p);
  return from_a >= a.within(period) && from_a + b.within(period) <= period;
}

// Of views whose ranges meet: whether no step keeps them apart.
bool may_mesh(const Lattice& a, const Lattice& b) {
  for (const Lattice* x : {&a, &b}) {
    for (int d = 0; d < x->dimensions; ++d) {
      if (x->step[d] > 0 && apart_within(a, b, x->step[d])) return false;
    }
  }
  return true;
}

// An argument, "query" or "score" with its field "weight".
struct Name {
  const char* owner;
  const char* field = nullptr;
  std::string text() const { return field ? std::string(owner) + "." + field : owner; }
};

// Every array of a choice. The choice is not copied: for a call with one key that would be a large
// part of the time.
template <class Choice, class Visit>
void each_field(const char* owner, const Choice& choice, const Visit& visit) {
  // `fields` is for writers too; nothing is written here.
  const_cast<Choice&>(choice).fields([&](const char* field, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, View>)
      visit(Name{owner, field}, value);
  });
}
template <class Visit>
void each_score_field(const char* owner, const Score& score, const Visit& visit) {
  const auto fields = [&](const auto& kind) { each_field(owner, kind, visit); };
  std::visit(fields, score.kind);
  for (const Modifier& modifier : score.modifiers) std::visit(fields, modifier);
}

template <class Visit>
void each_input(const Problem& problem, const Visit& visit) {
  visit(Name{"query"}, problem.query);
  visit(Name{"key"}, problem.key);
  visit(Name{"value"}, problem.value);
  visit(Name{"key_lengths"}, problem.key_lengths);
  visit(Name{"query_offset"}, problem.query_offset.each);
  each_score_field("score", problem.score, visit);
  std::visit([&](const auto& kind) { each_field("normaliser", kind, visit); }, problem.normaliser);
  choice::each_kind(problem.structure,
                    [&](const auto& kind) { each_field("structure", kind, visit); });
}

// Whether each step goes past all that the dimensions after it reach, as in most arrays.
bool in_order(const View& place) {
  int64_t reached = 1;
  for (int d = place.rank - 1; d >= 0; --d) {
    if (place.size[d] <= 1) continue;
    if (place.stride[d] < reached) return false;
    reached += place.stride[d] * (place.size[d] - 1);
  }
  return true;
}

// Each element its own: every step goes past all that the smaller ones reach.
void check_own(const Name& name, const View& place) {
  if (in_order(place)) return;
  for (int d = 0; d < place.rank; ++d) {
    FOVEA_CHECK(place.size[d] <= 1 || place.stride[d] != 0,
                name.text() + ": stride 0 in dimension " + std::to_string(d) + " of size " +
                    std::to_string(place.size[d]) + ", expected elements of their own");
  }
  const Lattice lattice(place);
  for (int d = 0; d < lattice.dimensions; ++d) {
    int64_t reached = lattice.element;
    for (int e = 0; e < lattice.dimensions; ++e) {
      const bool smaller =
          lattice.step[e] < lattice.step[d] || (lattice.step[e] == lattice.step[d] && e < d);
      if (smaller) reached += lattice.step[e] * (lattice.count[e] - 1);
    }
    FOVEA_CHECK(
        lattice.step[d] >= reached,
        name.text() + ": strides under which elements overlap, expected elements of their own");
  }
}

// Each place against all that is read and the places after it.
template <class EachRead, class EachPlace>
void check_each(const EachRead& each_read, const EachPlace& each_place) {
  int number = 0;
  each_place([&](const Name& name, const View& place) {
    ++number;
    if (!place) return;
    const Range range(place);
    if (range.empty()) return;
    check_own(name, place);
    const auto apart = [&](const Name& other, const View& view) {
      FOVEA_CHECK(
          !view || !range.meets(Range(view)) || !may_mesh(Lattice(place), Lattice(view)),
          name.text() + ": shares memory with " + other.text() + ", expected memory of its own");
    };
    each_read(apart);
    int other_number = 0;
    each_place([&](const Name& other, const View& view) {
      if (++other_number > number) apart(other, view);
    });
  });
}

}  // namespace

bool may_share(const View& a, const View& b) {
  return Range(a).meets(Range(b)) && may_mesh(Lattice(a), Lattice(b));
}

void check_places(const Problem& problem, const Result& result) {
  check_each([&](const auto& visit) { each_input(problem, visit); },
             [&](const auto& visit) {
               visit(Name{"output"}, result.output);
               visit(Name{"lse"}, result.lse);
               visit(Name{"statistics"}, result.statistics);
             });
}

void check_places(const Problem& problem, const Result& saved, const Gradients& gradients) {
  check_each(
      [&](const auto& visit) {
        each_input(problem, visit);
        visit(Name{"output"}, saved.output);
        visit(Name{"statistics"}, saved.statistics);
        visit(Name{"gradients.output"}, gradients.output);
        visit(Name{"gradients.lse"}, gradients.lse);
      },
      [&](const auto& visit) {
        visit(Name{"gradients.query"}, gradients.query);
        visit(Name{"gradients.key"}, gradients.key);
        visit(Name{"gradients.value"}, gradients.value);
        each_score_field("gradients.score", gradients.score, visit);
        std::visit([&](const auto& kind) { each_field("gradients.normaliser", kind, visit); },
                   gradients.normaliser);
      });
}

void check_places(const Problem& problem, const Selection& selection, const SelectedWeights& out) {
  check_each(
      [&](const auto& visit) {
        each_input(problem, visit);
        visit(Name{"rows"}, selection.rows);
        visit(Name{"heads"}, selection.heads);
      },
      [&](const auto& visit) {
        visit(Name{"weights"}, out.weights);
        visit(Name{"indices"}, out.indices);
      });
}

}  // namespace fovea::engine
