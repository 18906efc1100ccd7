// Text of others inside our pages: nothing of it may become markup.
#include "explain/markup.h"

#include <set>

#include "explain/base64.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

// The elements a fragment opens or closes.
std::set<std::string> elements(std::string_view html) {
  std::set<std::string> found;
  for (size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    const size_t start = at + (html.substr(at + 1).starts_with('/') ? 2 : 1);
    const size_t end = html.find_first_of(" >", start);
    found.emplace(html.substr(start, end - start));
  }
  return found;
}

void fuzz_markup(std::string_view bytes) {
  require(elements(explain::escape_html(bytes)).empty(), "escaped text has no element");
  for (const std::string& element : elements(explain::prose_html(bytes)))
    require(element == "p" || element == "code", "prose is paragraphs and code: " + element);
  for (const std::string& element : elements(explain::code_html(bytes)))
    require(element == "span", "code has marks alone: " + element);
  require(elements(explain::embed_json(bytes)).empty(), "embedded JSON ends no script");
  require(explain::anchor(bytes).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
              std::string::npos,
          "an anchor is lower case, digits and hyphens");
  std::string equation;
  if (accepts([&] { equation = explain::checked_mathml(bytes); }))
    for (const std::string& element : elements(equation))
      require(element.starts_with('m'), "an equation is MathML: " + element);
  const std::string coded = explain::to_base64(bytes.data(), bytes.size());
  const auto decoded = explain::from_base64(coded);
  require(decoded && std::string(decoded->begin(), decoded->end()) == bytes,
          "base64 reads back what it wrote");
  explain::from_base64(bytes);
}
const Registration markup{"markup", fuzz_markup};

}  // namespace
}  // namespace fovea::fuzz
