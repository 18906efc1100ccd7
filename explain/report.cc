#include "explain/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "explain/markup.h"
#include "fovea/error.h"

namespace fovea::explain {

namespace {

// Of a user's own data nothing is to be expected.
bool expects(const std::vector<Figure>& figures) {
  return std::any_of(figures.begin(), figures.end(),
                     [](const Figure& f) { return !f.expected.empty(); });
}

// The expected figure is often one sentence for all figures. Its cell then spans their rows.
std::string figures_html(const std::vector<Figure>& figures) {
  if (figures.empty()) return {};
  const auto nothing_expected = [](const Figure& f) { return f.expected.empty(); };
  const bool any = expects(figures);
  const bool shared = std::all_of(figures.begin() + 1, figures.end(), nothing_expected);
  std::string rows;
  for (const Figure& figure : figures) {
    const char* verdict = !figure.met ? "" : *figure.met ? " met" : " unmet";
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"reached{}\">{}</td>",
                        escape_html(figure.name), verdict, escape_html(figure.reached));
    if (any && (!shared || &figure == &figures.front()))
      rows += fmt::format("<td rowspan=\"{}\">{}</td>", shared ? figures.size() : 1,
                          escape_html(figure.expected));
    rows += "</tr>\n";
  }
  return fmt::format(
      "<table class=\"figures\"><thead><tr><th scope=\"col\">figure</th><th "
      "scope=\"col\">reached here</th>{}</tr></thead><tbody>\n{}</tbody></table>\n",
      any ? "<th scope=\"col\">to expect</th>" : "", rows);
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

// Without scripts, a picture is replaced by its tables.
std::string still_html(const Explanation& explanation) {
  if (explanation.view != View::kShuffle || explanation.tables.empty()) return {};
  std::string out = "<noscript>\n";
  for (const Table& table : explanation.tables) out += table_html(table);
  return out + "</noscript>\n";
}

std::string explanation_html(const Explanation& explanation, const std::string& id) {
  return fmt::format(
      "<script type=\"application/json\" class=\"explanation\" id=\"{}\">{}</script>\n{}", id,
      embed_json(to_json(explanation)), still_html(explanation));
}

std::string equation_html(const Section& section) {
  if (section.equation.empty()) return {};
  return "<div class=\"equation\" tabindex=\"0\" role=\"group\" aria-label=\"Equation\">" +
         checked_mathml(section.equation) + "</div>\n";
}

std::string code_block(const Section& section) {
  if (section.code.empty()) return {};
  return "<pre tabindex=\"0\" aria-label=\"Code\"><code>" + code_html(section.code) +
         "</code></pre>\n";
}

std::string command_block(const Section& section) {
  if (section.command.empty()) return {};
  return "<pre class=\"command\" tabindex=\"0\" aria-label=\"Command\"><code>" +
         escape_html(section.command) + "</code></pre>\n";
}

std::string opening_html(const Section& section) {
  return "<div class=\"opening\"><div class=\"prose\">" + prose_html(section.prose) + "</div>\n" +
         equation_html(section) + "</div>\n";
}

// A part that is closed until the reader opens it.
std::string fold(const char* title, const std::string& inside) {
  if (inside.empty()) return {};
  return fmt::format("<details class=\"fold\"><summary>{}</summary>\n{}</details>\n", title,
                     inside);
}

std::string live_html(const Live& live) {
  return fmt::format(
      "<form id=\"live\" data-address=\"{0}\" data-example=\"{1}\"><label for=\"live-input\">Type "
      "here, and see where it looks</label>\n<textarea id=\"live-input\" rows=\"2\" "
      "spellcheck=\"false\" autocomplete=\"off\" placeholder=\"{1}\"></textarea>\n<div "
      "class=\"live-tools\"></div><div id=\"live-answer\" aria-live=\"polite\"></div></form>\n",
      escape_html(live.address), escape_html(live.example));
}

std::string idea_html(const Section& section) {
  std::string out;
  if (!section.byline.empty())
    out += "<p class=\"byline\">" + escape_html(section.byline) + "</p>\n";
  out += opening_html(section);
  if (!section.look.empty())
    out += "<p class=\"look\"><b>Look at this</b> " + escape_html(section.look) + "</p>\n";
  return out;
}

std::string pictures_html(const Section& section, const std::string& id) {
  if (section.explanations.empty()) return {};
  std::string out = "<div class=\"pictures\">\n";
  for (size_t i = 0; i < section.explanations.size(); ++i)
    out += explanation_html(section.explanations[i], fmt::format("{}-picture-{}", id, i + 1));
  return out + "</div>\n";
}

// Idea, equation, what to look at, the pictures; everything else is folded. Where one types, the field
// and the pictures come first.
std::string section_html(const Section& section, const std::string& id, const std::string& heading,
                         const std::optional<Live>& live) {
  std::string out = fmt::format("<section class=\"part\" id=\"{}\" aria-label=\"{}\">\n", id,
                                escape_html(section.title));
  out += heading;
  const std::string idea = idea_html(section), pictures = pictures_html(section, id);
  out += live ? live_html(*live) + pictures + idea : idea + pictures;
  out += fold(expects(section.figures) ? "Figures reached, and what to expect" : "Figures reached",
              figures_html(section.figures));
  out += fold(section.command.empty() ? "The code" : "The code and the command",
              code_block(section) + command_block(section));
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

// Anchors: the id of a section, or one made of its title. Each is unique.
std::vector<std::string> anchors(const std::vector<Section>& sections) {
  std::vector<std::string> ids;
  std::set<std::string> taken = {"theme", "demo", "live", "main", "contents"};
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
  std::string body = opening_html(options.introduction);
  if (options.demonstration) body += "<div id=\"demo\"></div>\n";
  body += fold("The same in C++", code_block(options.introduction));
  body += options.cards.empty() ? contents_html(sections, ids) : cards_html(options.cards);
  // The title of the page names its only section, alone or with the data: it is printed once.
  const bool alone = sections.size() == 1 && options.title.starts_with(sections[0].title);
  for (size_t i = 0; i < sections.size(); ++i)
    body += section_html(sections[i], ids[i],
                         alone ? ""
                               : fmt::format("<h2><span class=\"count\">{}</span>{}</h2>\n", i + 1,
                                             escape_html(sections[i].title)),
                         i == 0 ? options.live : std::nullopt);
  return html_document({.title = options.title,
                        .subtitle = options.subtitle,
                        .previous = options.previous,
                        .contents = options.contents,
                        .next = options.next,
                        .main = body,
                        .asks_its_server = options.live.has_value()});
}

}  // namespace fovea::explain
