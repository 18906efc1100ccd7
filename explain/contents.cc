#include "explain/contents.h"

#include <fmt/format.h>

#include "explain/markup.h"

namespace fovea::explain {

std::string cards_html(const std::vector<Card>& cards) {
  std::string items;
  for (size_t i = 0; i < cards.size(); ++i) {
    const Card& card = cards[i];
    items += fmt::format(
        "<li id=\"{}\"><a href=\"{}\"><span class=\"thumbnail\">{}</span><span "
        "class=\"card-title\"><span class=\"count\">{}</span> {}</span></a><span "
        "class=\"card-byline\">{}</span></li>\n",
        anchor(card.id), escape_html(card.address), card.picture, i + 1, escape_html(card.title),
        escape_html(card.byline));
  }
  return "<nav class=\"cards\" id=\"contents\" aria-labelledby=\"contents-title\"><h2 "
         "id=\"contents-title\">Contents</h2><ol>\n" +
         items + "</ol></nav>\n";
}

}  // namespace fovea::explain
