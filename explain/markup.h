// Text as HTML: escaped; prose in paragraphs; MathML unchanged, if it contains nothing but
// MathML.
#pragma once

#include <string>
#include <string_view>

namespace fovea::explain {

std::string escape_html(std::string_view text);

// Paragraphs separated by blank lines, `code` in backquotes.
std::string prose_html(std::string_view text);

// C++, escaped, with comments, strings and keywords marked.
std::string code_html(std::string_view code);

// The equation unchanged; InvalidArgument if it has an element or attribute that is not MathML.
std::string checked_mathml(std::string_view equation);

// JSON for a <script> element: no "<" is left in it, so nothing inside can end the element.
std::string embed_json(std::string_view json);

// A name for an anchor: lower case, digits and hyphens.
std::string anchor(std::string_view title);

// Writes characters that change the direction of the text after them (U+202A to U+202E, U+2066 to
// U+2069) as [U+202E]: with them a label could make a line read as something else.
std::string with_visible_directions(std::string_view text);

}  // namespace fovea::explain
