#include "explain/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "explain/markup.h"
#include "fovea/error.h"

namespace fovea::explain {

// web/bundle.cmake writes these.
extern const char* const kPageScript;
extern const char* const kPageStyle;

namespace {

// Nothing may be fetched, whatever a file contains.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
    "blob:";

// What to expect is often one sentence for all figures: then its cell spans them.
std::string figures_html(const std::vector<Figure>& figures) {
  if (figures.empty()) return {};
  const bool shared = std::all_of(figures.begin() + 1, figures.end(),
                                  [](const Figure& f) { return f.expected.empty(); });
  std::string rows;
  for (const Figure& figure : figures) {
    const char* verdict = !figure.met ? "" : *figure.met ? " met" : " unmet";
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"reached{}\">{}</td>",
                        escape_html(figure.name), verdict, escape_html(figure.reached));
    if (!shared || &figure == &figures.front())
      rows += fmt::format("<td rowspan=\"{}\">{}</td>", shared ? figures.size() : 1,
                          escape_html(figure.expected));
    rows += "</tr>\n";
  }
  return "<table class=\"figures\"><thead><tr><th scope=\"col\">figure</th><th "
         "scope=\"col\">reached here</th>"
         "<th scope=\"col\">to expect</th></tr></thead><tbody>\n" +
         rows + "</tbody></table>\n";
}

std::string table_html(const Table& table) {
  std::string out =
      "<table class=\"figures\"><caption>" + escape_html(table.title) + "</caption>\n<thead><tr>";
  for (const std::string& column : table.columns)
    out += "<th scope=\"col\">" + escape_html(column) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + escape_html(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

// What stands in for a picture that only a script can make live: its tables.
std::string still_html(const Explanation& explanation) {
  if (explanation.view != View::kShuffle || explanation.tables.empty()) return {};
  std::string out = "<noscript>\n";
  for (const Table& table : explanation.tables) out += table_html(table);
  return out + "</noscript>\n";
}

std::string explanation_html(const Explanation& explanation) {
  return fmt::format("<script type=\"application/json\" class=\"explanation\">{}</script>\n{}",
                     embed_json(to_json(explanation)), still_html(explanation));
}

// Idea, equation, code.
std::string body_html(const Section& section) {
  std::string out = "<div class=\"prose\">" + prose_html(section.prose) + "</div>\n";
  if (!section.equation.empty())
    out += "<div class=\"equation\" tabindex=\"0\" role=\"group\" aria-label=\"Equation\">" +
           checked_mathml(section.equation) + "</div>\n";
  if (!section.code.empty())
    out += "<pre tabindex=\"0\" aria-label=\"Code\"><code>" + code_html(section.code) +
           "</code></pre>\n";
  return out;
}

std::string section_html(const Section& section, const std::string& id, size_t number) {
  std::string out =
      fmt::format("<section class=\"part\" id=\"{0}\" aria-labelledby=\"{0}-title\">\n", id);
  out += fmt::format("<h2 id=\"{}-title\"><span class=\"count\">{}</span>{}</h2>\n", id, number,
                     escape_html(section.title));
  if (!section.byline.empty())
    out += "<p class=\"byline\">" + escape_html(section.byline) + "</p>\n";
  out += body_html(section);
  for (const Explanation& explanation : section.explanations) out += explanation_html(explanation);
  out += figures_html(section.figures);
  if (!section.command.empty())
    out += "<pre class=\"command\" tabindex=\"0\" aria-label=\"Command\"><code>" +
           escape_html(section.command) + "</code></pre>\n";
  return out + "</section>\n";
}

std::string contents_html(const std::vector<Section>& sections,
                          const std::vector<std::string>& ids) {
  if (sections.size() < 2) return {};
  std::string items;
  for (size_t i = 0; i < sections.size(); ++i)
    items += fmt::format("<li><span>{}</span><a href=\"#{}\">{}</a></li>\n", i + 1, ids[i],
                         escape_html(sections[i].title));
  return "<nav class=\"contents\" aria-label=\"Contents\"><h2>Contents</h2><ol>\n" + items +
         "</ol></nav>\n";
}

// Anchors: a section's own id, or its title's, each once.
std::vector<std::string> anchors(const std::vector<Section>& sections) {
  std::vector<std::string> ids;
  std::set<std::string> taken = {"theme", "demo", "main"};
  for (const Section& section : sections) {
    const std::string wanted = anchor(section.id.empty() ? section.title : section.id);
    std::string id = wanted;
    for (int i = 2; !taken.insert(id).second; ++i) id = fmt::format("{}-{}", wanted, i);
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::string html_report(const std::vector<Section>& sections, const ReportOptions& options) {
  const std::vector<std::string> ids = anchors(sections);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<div class=\"layout\">\n",
      kPolicy, escape_html(options.title), kPageStyle);
  out += "<header class=\"top\"><h1>" + escape_html(options.title) + "</h1>\n";
  if (!options.subtitle.empty())
    out += "<p class=\"subtitle\">" + escape_html(options.subtitle) + "</p>\n";
  out += "<button type=\"button\" id=\"theme\" hidden>◐</button></header>\n<main id=\"main\">\n";
  out +=
      "<noscript><p>The pictures on this page are drawn by its own scripts, which are switched off "
      "here.</p></noscript>\n";
  out += body_html(options.introduction);
  if (options.demonstration) out += "<div id=\"demo\"></div>\n";
  out += contents_html(sections, ids);
  for (size_t i = 0; i < sections.size(); ++i) out += section_html(sections[i], ids[i], i + 1);
  out +=
      "</main>\n<footer>Weights show what was mixed, not why the answer was given. Written by "
      "Fovea; this file needs no "
      "network.</footer>\n</div>\n";
  out += fmt::format("<script type=\"module\">{}</script>\n</body>\n</html>\n", kPageScript);
  return with_visible_directions(out);
}

}  // namespace fovea::explain
