#include "torch/cuda/structure_text.h"

namespace fovea::cuda {
namespace {

std::string joined(const std::string& a, const char* between, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + between + b;
}

StructureText single(const char* text, const char* type) { return {type, text, {text}}; }

template <class Kind>
StructureText text_of_kind(const Kind& kind) {
  if constexpr (std::is_same_v<Kind, Causal>) return single("causal", "Causal");
  if constexpr (std::is_same_v<Kind, Window>) return single("window", "Window");
  if constexpr (std::is_same_v<Kind, Prefix>) return single("prefix", "Prefix");
  if constexpr (std::is_same_v<Kind, Documents>) return single("documents", "Documents");
  if constexpr (std::is_same_v<Kind, Blocks>) return single("blocks", "Blocks");
  if constexpr (std::is_same_v<Kind, Keep>) return single("keep", "Keep");
  if constexpr (std::is_same_v<Kind, Strided>) return single("strided", "Strided");
  if constexpr (std::is_same_v<Kind, Fixed>) return single("fixed", "Fixed");
  if constexpr (std::is_same_v<Kind, First>) return single("first", "First");
  if constexpr (choice::HasParts<Kind>) {
    constexpr bool kNegates = std::is_same_v<Kind, Not>;
    StructureText to{"", "", {"any_of"}};
    for (const Structure& part : kind.parts) {
      const StructureText one = text_of(part);
      to.type = joined(to.type, ", ", one.type);
      to.name = joined(to.name, " | ", one.name.empty() ? "dense" : one.name);
      to.texts.insert(to.texts.end(), one.texts.begin(), one.texts.end());
    }
    to.type = (kNegates ? "Not<" : "AnyOf<") + to.type + ">";
    to.name = (kNegates ? "~(" : "(") + to.name + ")";
    return to;
  }
  return {};
}

}  // namespace

StructureText text_of(const Structure& structure) {
  StructureText to;
  for (const auto& part : structure.all_of) {
    const StructureText one = std::visit([](const auto& kind) { return text_of_kind(kind); }, part);
    to.type = joined(to.type, ", ", one.type);
    to.name = joined(to.name, " & ", one.name);
    to.texts.insert(to.texts.end(), one.texts.begin(), one.texts.end());
  }
  to.type = "All<" + to.type + ">";
  return to;
}

}  // namespace fovea::cuda
