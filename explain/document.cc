#include "explain/document.h"

#include <fmt/format.h>

#include "explain/markup.h"

namespace fovea::explain {

// web/bundle.cmake writes these.
extern const char* const kPageScript;
extern const char* const kPageStyle;

namespace {

constexpr std::string_view kMark = "Written by Fovea";
// Nothing may be fetched, whatever a file contains. A page of a server may ask that server.
constexpr const char* kAsksItsServer = "; connect-src 'self'";
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; font-src data:; "
    "img-src data: blob:";

std::string link_html(const PageLink& link, const char* way, const char* before,
                      const char* after) {
  if (link.address.empty()) return "<span></span>";
  return fmt::format("<a class=\"{0}\" rel=\"{0}\" href=\"{1}\">{2}{3}{4}</a>", way,
                     escape_html(link.address), before, escape_html(link.title), after);
}

std::string ways_html(const Document& page, const char* label) {
  if (page.previous.address.empty() && page.contents.address.empty() && page.next.address.empty())
    return {};
  return fmt::format("<nav class=\"ways\" aria-label=\"{}\">{}{}{}</nav>\n", label,
                     link_html(page.previous, "prev", "← ", ""),
                     link_html(page.contents, "contents", "", ""),
                     link_html(page.next, "next", "", " →"));
}

}  // namespace

std::string html_document(const Document& page) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<div class=\"layout\">\n",
      kPolicy, page.asks_its_server ? kAsksItsServer : "", escape_html(page.title), kPageStyle);
  out += ways_html(page, "Pages of the tour");
  out += "<header class=\"top\"><h1>" + escape_html(page.title) + "</h1>\n";
  if (!page.subtitle.empty())
    out += "<p class=\"subtitle\">" + escape_html(page.subtitle) + "</p>\n";
  out += "<button type=\"button\" id=\"theme\" hidden>◐</button></header>\n<main id=\"main\">\n";
  out +=
      "<noscript><p>The pictures on this page are drawn by its own scripts, which are switched off "
      "here.</p></noscript>\n";
  out += page.main;
  out += "</main>\n" + ways_html(page, "Pages of the tour, again");
  out += fmt::format(
      "<footer>Weights show what was mixed, not why the answer was given. {}{}</footer>\n</div>\n",
      kMark, page.asks_its_server ? "." : "; this file needs no network.");
  out += fmt::format("<script type=\"module\">{}</script>\n</body>\n</html>\n", kPageScript);
  return with_visible_directions(out);
}

bool is_document(std::string_view text) { return text.find(kMark) != std::string_view::npos; }

}  // namespace fovea::explain
