#include "systems/bert/pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/error.h"

namespace fovea::systems::bert {
namespace {

std::vector<Part> parts_of(const Sentences& sentences, const text::WordPiece& pieces, size_t room) {
  std::vector<Part> out;
  for (const std::string& sentence : sentences) {
    std::vector<int64_t> ids = pieces.encode(sentence);
    if (ids.size() > room) ids.resize(room);
    if (ids.empty()) continue;
    if (out.empty() || out.back().size() + ids.size() > room) out.emplace_back();
    out.back().insert(out.back().end(), ids.begin(), ids.end());
  }
  if (out.size() == 1 && out[0].size() > 1) {
    const auto middle = out[0].begin() + static_cast<std::ptrdiff_t>(out[0].size() / 2);
    Part second(middle, out[0].end());
    out[0].erase(middle, out[0].end());
    out.push_back(std::move(second));
  }
  return out;
}

std::vector<int64_t> wide(const Part& part) { return {part.begin(), part.end()}; }

}  // namespace

Pairs::Pairs(const std::vector<const Sentences*>& documents, const text::WordPiece& pieces,
             int64_t context) {
  const auto room = static_cast<size_t>(std::max<int64_t>(1, (context - 3) / 2));
  for (const Sentences* sentences : documents) {
    auto parts = parts_of(*sentences, pieces, room);
    if (parts.empty()) continue;
    for (size_t i = 0; i + 1 < parts.size(); ++i) pairs_.push_back({documents_.size(), i});
    documents_.push_back(std::move(parts));
  }
  if (documents_.size() < 2)
    throw InvalidArgument(fmt::format(
        "documents: {}, expected at least 2: a false next part comes from another document",
        documents_.size()));
}

int64_t Pairs::length(int64_t pair) const {
  const auto& [document, part] = pairs_[static_cast<size_t>(pair)];
  return static_cast<int64_t>(documents_[document][part].size() +
                              documents_[document][part + 1].size());
}

Pairs::Drawn Pairs::draw(int64_t pair, data::Random& random) const {
  const auto& [document, part] = pairs_[static_cast<size_t>(pair)];
  Drawn out{.first = wide(documents_[document][part]), .second = {}, .follows = true};
  if (random.below(2) == 0) {
    out.second = wide(documents_[document][part + 1]);
    return out;
  }
  size_t other = random.below(documents_.size() - 1);
  if (other >= document) ++other;
  out.second = wide(documents_[other][random.below(documents_[other].size())]);
  out.follows = false;
  return out;
}

}  // namespace fovea::systems::bert
