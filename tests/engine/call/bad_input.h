// A case that is right, what spoils it, and what the refusal must say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/engine/run.h"

namespace fovea::bad_input {

using cases::Built;
using cases::Case;
using engine::DType;
using engine::View;

struct Bad {
  std::string name;
  Case good;  // the case before it is spoiled
  std::function<void(Built&)> spoil;
  std::vector<std::string> says;  // argument, got, expected: all in the message
};

inline const Case kDot{.shape = {2, 4, 2, 5, 7, 4, 3}};
inline const Case kRagged{.structure = {"ragged"}, .shape = {2, 2, 2, 5, 7, 4, 3}};
inline const Case kGraph{.structure = {"graph"}, .shape = {1, 2, 2, 5, 7, 4, 3}};

inline Case with_score(const char* score) {
  Case c = kDot;
  c.score = score;
  return c;
}
inline Case with_normaliser(const char* normaliser) {
  Case c = kDot;
  c.normaliser = normaliser;
  return c;
}
inline Case with_structure(const char* structure) {
  Case c = kDot;
  c.structure = {structure};
  return c;
}
inline Case with_modifier(const char* modifier) {
  Case c = kDot;
  c.modifiers = {modifier};
  return c;
}

template <class Choice>
Choice& structure_of(Built& b) {
  return std::get<Choice>(b.problem.structure.all_of.at(0));
}
inline void set(const View& view, int64_t at, double value) {
  cases::Storage::set(view, at, value);
}

// Wrong fields of scores, modifiers, normalisers and structures: bad_choices.cc.
std::vector<Bad> bad_choices();

}  // namespace fovea::bad_input
