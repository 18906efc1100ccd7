#include "explain/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "data/files/file.h"
#include "fovea/error.h"

namespace fovea::explain {
namespace {

constexpr std::array<std::string_view, 24> kElements = {
    "math",   "mfrac",   "mi",     "mmultiscripts", "mn",       "mo",
    "mover",  "mpadded", "mrow",   "mroot",         "mphantom", "ms",
    "mspace", "msqrt",   "mstyle", "msub",          "msup",     "msubsup",
    "mtable", "mtd",     "mtext",  "mtr",           "munder",   "munderover"};

constexpr std::array<std::string_view, 20> kAttributes = {
    "display",       "mathvariant",   "stretchy",     "fence",         "separator",
    "lspace",        "rspace",        "accent",       "accentunder",   "minsize",
    "maxsize",       "linethickness", "form",         "columnalign",   "rowspacing",
    "columnspacing", "width",         "displaystyle", "movablelimits", "xmlns"};

constexpr std::array<std::string_view, 20> kKeywords = {
    "auto",   "bool", "const", "constexpr", "double",    "else",    "false",
    "float",  "for",  "if",    "int",       "namespace", "return",  "static",
    "struct", "true", "using", "void",      "while",     "template"};

template <class List>
bool among(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

[[noreturn]] void refuse(std::string_view what, std::string_view got) {
  throw InvalidArgument(fmt::format("equation: {} {}, expected MathML", what, data::shown(got)));
}

// The attributes of one tag: name="value" and spaces.
void check_attributes(std::string_view text) {
  while (true) {
    const size_t start = text.find_first_not_of(" \n\t");
    if (start == std::string_view::npos) return;
    text.remove_prefix(start);
    const size_t equals = text.find("=\"");
    if (equals == std::string_view::npos || !among(kAttributes, text.substr(0, equals)))
      refuse("attribute", text);
    const size_t end = text.find('"', equals + 2);
    if (end == std::string_view::npos) refuse("attribute", text);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string prose_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    const std::string paragraph = escape_html(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 2));
    if (paragraph.find_first_not_of(" \n\t") == std::string::npos) continue;
    out += "<p>";
    bool code = false;
    for (const char c : paragraph) {
      if (c != '`') {
        out += c;
        continue;
      }
      out += code ? "</code>" : "<code>";
      code = !code;
    }
    if (code) out += "</code>";
    out += "</p>\n";
  }
  return out;
}

std::string code_html(std::string_view code) {
  std::string out;
  const auto mark = [&](const char* kind, size_t length) {
    out += fmt::format("<span class=\"{}\">{}</span>", kind, escape_html(code.substr(0, length)));
    code.remove_prefix(length);
  };
  const auto part_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  while (!code.empty()) {
    if (code.starts_with("//")) {
      mark("comment", std::min(code.find('\n'), code.size()));
    } else if (code.front() == '"') {
      const size_t end = code.find('"', 1);
      mark("string", end == std::string_view::npos ? code.size() : end + 1);
    } else if (part_of_word(code.front())) {
      const size_t end = std::find_if_not(code.begin(), code.end(), part_of_word) - code.begin();
      if (among(kKeywords, code.substr(0, end))) {
        mark("keyword", end);
      } else {
        out += code.substr(0, end);
        code.remove_prefix(end);
      }
    } else {
      out += escape_html(code.substr(0, 1));
      code.remove_prefix(1);
    }
  }
  return out;
}

std::string checked_mathml(std::string_view equation) {
  for (size_t at = equation.find('<'); at != std::string_view::npos;
       at = equation.find('<', at + 1)) {
    const size_t end = equation.find('>', at);
    if (end == std::string_view::npos) refuse("tag", equation.substr(at));
    std::string_view tag = equation.substr(at + 1, end - at - 1);
    if (tag.starts_with('/')) tag.remove_prefix(1);
    if (tag.ends_with('/')) tag.remove_suffix(1);
    const size_t name_end = std::min(tag.find_first_of(" \n\t"), tag.size());
    if (!among(kElements, tag.substr(0, name_end))) refuse("element", tag);
    check_attributes(tag.substr(name_end));
  }
  return std::string(equation);
}

std::string embed_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string anchor(std::string_view title) {
  std::string out;
  for (const char c : title) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool capital = c >= 'A' && c <= 'Z';
    if (letter || capital)
      out += capital ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (out.ends_with('-')) out.pop_back();
  return out.empty() ? "part" : out;
}

std::string with_visible_directions(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::string_view three = text.substr(at, 3);
    const auto last = three.size() == 3 ? static_cast<unsigned char>(three[2]) : 0u;
    const bool embeds = three.starts_with("\xE2\x80") && last >= 0xAA && last <= 0xAE,
               isolates = three.starts_with("\xE2\x81") && last >= 0xA6 && last <= 0xA9;
    if (embeds || isolates) {
      out += fmt::format("[U+{:04X}]", (embeds ? 0x2000u : 0x2040u) + (last & 0x3F));
      at += 3;
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace fovea::explain
