#include "explain/contents.h"

#include <fmt/format.h>

#include "explain/markup.h"

namespace fovea::explain {

std::string cards_html(const std::vector<Card>& cards) {
  std::string items, group;
  const bool grouped = !cards.empty() && !cards.front().group.empty();
  for (size_t i = 0; i < cards.size(); ++i) {
    const Card& card = cards[i];
    if (card.group != group) {
      items += fmt::format("{}<h3>{}</h3><ol>\n", i > 0 ? "</ol>" : "", escape_html(card.group));
      group = card.group;
    }
    items += fmt::format(
        "<li id=\"{}\"><a href=\"{}\"><span class=\"thumbnail\">{}</span><span "
        "class=\"card-title\"><span class=\"count\">{}</span> {}</span></a><span "
        "class=\"card-byline\">{}</span></li>\n",
        anchor(card.id), escape_html(card.address), card.picture, i + 1, escape_html(card.title),
        escape_html(card.byline));
  }
  return fmt::format(
      "<nav class=\"cards{}\" id=\"contents\" aria-labelledby=\"contents-title\"><h2 "
      "id=\"contents-title\">Contents</h2>{}\n{}</ol></nav>\n",
      grouped ? " grouped" : "", grouped ? "" : "<ol>", items);
}

}  // namespace fovea::explain
