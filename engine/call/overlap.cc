#include "engine/call/overlap.h"

#include <array>
#include <cstdlib>
#include <type_traits>

#include "engine/call/check.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// A view as steps through bytes, from its lowest address on.
struct Lattice {
  uintptr_t low = 0;
  int64_t element = 0, extent = 0;  // bytes of one; from the first byte to the one after the last
  int dimensions = 0;
  std::array<int64_t, 4> step{}, count{};  // of the dimensions of more than one element

  explicit Lattice(const View& view) : element(static_cast<int64_t>(size_of(view.dtype))) {
    low = reinterpret_cast<uintptr_t>(view.data);
    extent = element;
    for (int d = 0; d < view.rank; ++d) {
      if (view.size[d] == 0) extent = 0;
      if (view.size[d] <= 1) continue;
      const int64_t bytes = view.stride[d] * element, reach = bytes * (view.size[d] - 1);
      if (bytes < 0) low -= static_cast<uintptr_t>(-reach);
      if (extent > 0) extent += std::abs(reach);
      step[dimensions] = std::abs(bytes);
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

bool may_share(const Lattice& a, const Lattice& b) {
  if (a.extent == 0 || b.extent == 0) return false;
  if (a.low + static_cast<uintptr_t>(a.extent) <= b.low ||
      b.low + static_cast<uintptr_t>(b.extent) <= a.low)
    return false;
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

// Every array of a choice.
template <class Choice, class Visit>
void each_field(const char* owner, Choice choice, const Visit& visit) {
  choice.fields([&](const char* field, auto& value) {
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
  for (const auto& part : problem.structure.all_of)
    std::visit([&](const auto& kind) { each_field("structure", kind, visit); }, part);
}

// Each element its own: every step goes past all that the smaller ones reach.
void check_own(const Name& name, const View& place, const Lattice& lattice) {
  for (int d = 0; d < place.rank; ++d) {
    FOVEA_CHECK(place.size[d] <= 1 || place.stride[d] != 0,
                name.text() + ": stride 0 in dimension " + std::to_string(d) + " of size " +
                    std::to_string(place.size[d]) + ", expected elements of their own");
  }
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
    const Lattice lattice(place);
    if (lattice.extent == 0) return;
    check_own(name, place, lattice);
    const auto apart = [&](const Name& other, const View& view) {
      FOVEA_CHECK(
          !view || !may_share(lattice, Lattice(view)),
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

bool may_share(const View& a, const View& b) { return may_share(Lattice(a), Lattice(b)); }

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
