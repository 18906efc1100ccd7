#include "explain/report.h"

#include <gtest/gtest.h>

#include "explain/markup.h"
#include "fovea/error.h"
#include "tests/explain/count.h"

namespace fovea::explain {
namespace {

Explanation small() {
  Explanation e;
  e.title = "</script><script>alert(1)</script>";
  e.normaliser = "softmax";
  e.queries = {{.text = "q"}};
  e.keys = {{.text = "k"}};
  e.maps = {{.dense = {1}}};
  return e;
}

TEST(Report, HoldsEverySectionAndNothingFromOutside) {
  Section section{
      .title = "Nadaraya & Watson", .byline = "1964", .prose = "One.\n\nTwo with `x < y`."};
  section.equation = "<math display=\"block\"><mi>o</mi></math>";
  section.code = "a < b && c;";
  section.figures = {{"error", "1 < 2", "≤ 3", true}};
  section.explanations = {small()};
  const std::string html = html_report({section, section}, {.title = "Fovea <tour>"});
  EXPECT_EQ(count(html, "<section class=\"part\""), 2u);
  EXPECT_NE(html.find("<title>Fovea &lt;tour&gt;</title>"), std::string::npos);
  EXPECT_NE(html.find("id=\"nadaraya-watson\""), std::string::npos);
  EXPECT_NE(html.find("id=\"nadaraya-watson-2\""), std::string::npos);
  EXPECT_NE(html.find("<p>Two with <code>x &lt; y</code>.</p>"), std::string::npos);
  EXPECT_NE(html.find("a &lt; b &amp;&amp; c;"), std::string::npos);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(count(html, "</script>"), 3u) << "two explanations and the page's own script";
  for (const char* outside : {"src=\"http", "href=\"http", "@import", "url(http"})
    EXPECT_EQ(count(html, outside), 0u) << outside;
}

TEST(Report, APageLeadsToItsNeighboursAndSaysItsTitleOnce) {
  Section section{.title = "Pooling"};
  ReportOptions options{.title = "Pooling"};
  options.contents = {.title = "Contents", .address = "index.html#pooling"};
  options.next = {.title = "Deep & wide", .address = "deep.html"};
  const std::string html = html_report({section}, options);
  EXPECT_EQ(count(html, "<h2"), 0u);
  EXPECT_EQ(count(html, "href=\"index.html#pooling\""), 2u) << "above and below";
  EXPECT_NE(html.find("href=\"deep.html\">Deep &amp; wide →</a>"), std::string::npos);
  EXPECT_EQ(count(html, "class=\"prev\""), 0u);
  EXPECT_EQ(count(html_report({section}), "class=\"ways\""), 0u);
}

TEST(Report, ATitleWithTheDataNamesItsSectionOnce) {
  const std::string page =
      html_report({{.title = "Graph attention"}}, {.title = "Graph attention: members"});
  EXPECT_EQ(count(page, "<h2"), 0u);
  EXPECT_EQ(count(html_report({{.title = "Graph attention"}}, {.title = "Members"}), "<h2"), 1u);
}

TEST(Report, CardsLeadToOtherPages) {
  ReportOptions options;
  options.cards = {{.id = "a", .address = "a.html", .title = "A < B", .picture = "<svg></svg>"}};
  const std::string html = html_report({}, options);
  EXPECT_NE(html.find("<li id=\"a\"><a href=\"a.html\">"), std::string::npos);
  EXPECT_NE(html.find("A &lt; B"), std::string::npos);
}

TEST(Report, WithoutScriptsTheTablesStandInForAShuffle) {
  Section section{.title = "x"};
  Explanation e = small();
  e.view = View::kShuffle;
  e.shuffle = Shuffle{.answer = "sum", .width = 1, .vectors = {1}, .readers = {{.label = "sum"}}};
  e.tables = {{.title = "five orders", .columns = {"order"}, .rows = {{"1 < 2"}}}};
  section.explanations = {e};
  EXPECT_NE(
      html_report({section}).find("<noscript>\n<table class=\"figures\"><caption>five orders"),
      std::string::npos);
  EXPECT_NE(html_report({section}).find("<td>1 &lt; 2</td>"), std::string::npos);
}

TEST(Report, RefusesAnExplanationThatIsWrong) {
  Section section{.title = "x"};
  section.explanations = {small()};
  section.explanations[0].maps[0].dense = {1, 2};
  EXPECT_THROW(html_report({section}), InvalidArgument);
}

TEST(Markup, LetsOnlyMathMLThrough) {
  const std::string equation =
      "<math display=\"block\"><mrow><mi>a</mi><mo stretchy=\"false\">(</mo></mrow><mspace "
      "width=\"1em\"/></math>";
  EXPECT_EQ(checked_mathml(equation), equation);
  for (const char* bad :
       {"<script>x</script>", "<math onclick=\"x\"></math>", "<math href=\"x\"></math>", "<mi",
        "<math style=\"x\"></math>", "<annotation-xml></annotation-xml>",
        "<math display=block></math>", "<!-- x -->"})
    EXPECT_THROW(checked_mathml(bad), InvalidArgument) << bad;
}

TEST(Markup, CodeIsEscapedAndMarked) {
  EXPECT_EQ(code_html("auto x = \"<a>\"; // y < z\nautomatic"),
            "<span class=\"keyword\">auto</span> x = <span "
            "class=\"string\">&quot;&lt;a&gt;&quot;</span>; "
            "<span class=\"comment\">// y &lt; z</span>\nautomatic");
  EXPECT_EQ(code_html("\"open"), "<span class=\"string\">&quot;open</span>");
}

TEST(Report, WithoutAnExpectationNothingIsSaidOfOne) {
  Section section{.title = "a"};
  section.figures = {{"a", "1"}, {"b", "2"}};
  const std::string page = html_report({section});
  EXPECT_NE(page.find("<summary>Figures reached</summary>"), std::string::npos);
  EXPECT_EQ(page.find("to expect"), std::string::npos);
  section.figures[1].expected = "≥ 2";
  EXPECT_NE(html_report({section}).find("<summary>Figures reached, and what to expect</summary>"),
            std::string::npos);
}

TEST(Report, OneExpectationForAllFiguresSpansThem) {
  Section section{.title = "x"};
  section.figures = {{"a", "1", "≥ 1"}, {"b", "2"}};
  EXPECT_NE(html_report({section}).find("<td rowspan=\"2\">≥ 1</td>"), std::string::npos);
  section.figures[1].expected = "≥ 2";
  EXPECT_NE(html_report({section}).find("<td rowspan=\"1\">≥ 2</td>"), std::string::npos);
}

TEST(Report, TurnsNoLineRoundForALabel) {
  Section section;
  section.title =
      "safe \xE2\x80\xAE"
      "gnp.exe";
  const std::string html =
      html_report({section}, {.title = "\xE2\x81\xA7 t", .subtitle = {}, .introduction = {}});
  EXPECT_NE(html.find("safe [U+202E]gnp.exe"), std::string::npos);
  EXPECT_NE(html.find("[U+2067] t"), std::string::npos);
  for (const char* mark : {"\xE2\x80\xAA", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x81\xA9"})
    EXPECT_EQ(html.find(mark), std::string::npos);
  EXPECT_NE(html.find("unicode-bidi: isolate"), std::string::npos);
  EXPECT_EQ(with_visible_directions("עברית, ½ – x"), "עברית, ½ – x");
}

TEST(Markup, EmbeddedJsonCannotEndItsElement) {
  EXPECT_EQ(embed_json("{\"a\":\"</script><!--\"}"), "{\"a\":\"\\u003c/script>\\u003c!--\"}");
}

TEST(Markup, AnchorsAreLettersDigitsAndHyphens) {
  EXPECT_EQ(anchor("S1 Nadaraya–Watson!"), "s1-nadaraya-watson");
  EXPECT_EQ(anchor("—"), "part");
}

}  // namespace
}  // namespace fovea::explain
