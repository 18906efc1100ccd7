// The frame of every page: one HTML file with its styles and scripts, which fetches nothing (but a
// page of a server, which asks that server), and the way to the pages beside it.
#pragma once

#include <string>
#include <string_view>

namespace fovea::explain {

// Another page, by its name relative to this one. Without an address there is none.
struct PageLink {
  std::string title{}, address{};
};

struct Document {
  std::string title{}, subtitle{};
  PageLink previous{}, contents{}, next{};
  std::string main{};            // HTML
  bool asks_its_server = false;  // a page that a server gives, and that asks it for more
};

std::string html_document(const Document&);
// Whether a file's text is such a page.
bool is_document(std::string_view text);

}  // namespace fovea::explain
