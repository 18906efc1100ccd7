// Pieces of a still picture in SVG: what the drawings of all views share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/explanation.h"

namespace fovea::explain::drawing {

// Something drawn, with its upper left corner at 0, 0.
struct Piece {
  double width = 0, height = 0;
  std::string svg{};
};

inline constexpr double kWidest = 720;  // of a picture, where its contents can be broken
inline constexpr double kLine = 17;     // from one line of text to the next

// An estimate on the safe side: the font is the reader's.
double text_width(std::string_view text);
// At most this many letters; if some are left out, the last one is "…".
std::string shortened(std::string_view text, size_t letters);

enum class Anchor { kStart, kMiddle, kEnd };
// `kind` is a class of the style sheet: "", title, label, number.
std::string text_at(double x, double y, std::string_view text, Anchor anchor = Anchor::kStart,
                    std::string_view kind = "");
std::string upwards(double x, double y, std::string_view text);
std::string rectangle(double x, double y, double width, double height, std::string_view fill,
                      std::string_view more = "");
std::string moved(double x, double y, std::string_view svg);

// Lines of text, broken between words.
Piece paragraph(std::string_view text, double width, std::string_view kind = "");
// One under another; side by side. A piece that is empty takes no room.
Piece stacked(const std::vector<Piece>& pieces, double gap = 14);
Piece beside(const std::vector<Piece>& pieces, double gap = 36);

// From white to deep blue as a weight goes from 0 to 1; below 0, to brown. `ink` is what reads on it.
std::string colour(double weight);
std::string ink(double weight);
// Of a curve, a head, a group.
std::string category(size_t which);

// A whole number of four digits, or three digits that count: "0.074", "1240", "2.5e-5".
std::string number(double value);

// What a picture shows of an Explanation: the map the pickers stand on, [queries x keys], zeros where
// it has links; the largest entry's size is `most`.
struct Weights {
  std::vector<double> at{};
  size_t keys = 0;
  double most = 0;
  double of(size_t query, size_t key) const { return at[query * keys + key]; }
};
Weights chosen_weights(const Explanation& explanation);
// Whether there is room for all of its weights; otherwise heat_map alone can draw it.
bool can_be_held(const Explanation& explanation);
// The same weights one by one, those that are not zero.
void each_weight(const Explanation& explanation,
                 const std::function<void(size_t query, size_t key, double weight)>& visit);
// Whether the truth asks a query to look at a key.
bool wanted(const Explanation& explanation, size_t query, size_t key);

// A piece as a document.
std::string document(const Piece& piece);

}  // namespace fovea::explain::drawing
