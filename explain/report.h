// The HTML report: one file with text and pictures, which needs no network.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/contents.h"
#include "explain/document.h"
#include "explain/explanation.h"

namespace fovea::explain {

// A number the run reached beside the number to expect.
struct Figure {
  std::string name{};      // "leave-one-out RMSE"
  std::string reached{};   // "24.41"
  std::string expected{};  // "24.4 (motorcycle set)"
  std::optional<bool> met{};
};

// One part of the report, read from top to bottom: idea, equation, what to look at, the pictures (the
// first is shown, the others behind tabs); figures, code and command are folded. Empty parts are
// left out.
struct Section {
  std::string id{};  // anchor, [a-z0-9-]+; made from the title where empty
  std::string title{};
  std::string byline{};    // paper, year
  std::string prose{};     // plain text: a blank line parts paragraphs, `backquotes` set code
  std::string look{};      // what the first picture shows to one who knows where to look
  std::string equation{};  // MathML in <math> tags; anything that is not MathML is refused
  std::string code{};      // shown as it is
  std::string command{};   // the command line that runs it
  std::vector<Figure> figures{};
  std::vector<Explanation> explanations{};
};

// A field to type into: what is typed is posted to `address` as {"input": text}, and the pictures of the
// first part are drawn anew from {"answers", "notes", "explanations"}.
struct Live {
  std::string address{};
  std::string example{};  // shown while the field is empty, and taken by a button
};

struct ReportOptions {
  std::string title = "Fovea";
  std::string subtitle{};
  Section introduction{};      // what stands before the first part: prose, equation, code
  bool demonstration = false;  // the live demo of the three steps, under the introduction
  std::optional<Live> live{};  // of a page that a server gives
  std::vector<Card> cards{};   // other pages; without any, the sections are the contents
  PageLink previous{}, contents{}, next{};
};

// A complete HTML document.
std::string html_report(const std::vector<Section>& sections, const ReportOptions& options = {});

}  // namespace fovea::explain
