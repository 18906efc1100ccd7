#include "torch/choice_text.h"

namespace fovea {
namespace choice_text {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

}  // namespace choice_text

UnknownName::UnknownName(std::string kind_, std::string typed_, std::vector<std::string> names_)
    : InvalidArgument([&] {
        std::string message = kind_ + ": unknown '" + typed_ + "', expected one of";
        for (const auto& name : names_) message += (&name == names_.data() ? " " : ", ") + name;
        return names_.empty() ? kind_ + ": unknown '" + typed_ + "', expected none" : message;
      }()),
      kind(std::move(kind_)),
      typed(std::move(typed_)),
      names(std::move(names_)) {}

}  // namespace fovea
