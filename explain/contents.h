// The table of contents of several pages: a card for each, with a small picture.
#pragma once

#include <string>
#include <vector>

namespace fovea::explain {

struct Card {
  std::string id{};       // anchor, [a-z0-9-]+
  std::string address{};  // of the page, relative to this one
  std::string title{}, byline{};
  std::string picture{};  // SVG, as thumbnail_svg makes it; or empty
  std::string group{};    // a heading over the cards that follow each other with the same one
};

std::string cards_html(const std::vector<Card>& cards);

}  // namespace fovea::explain
