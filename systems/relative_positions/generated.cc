#include "systems/relative_positions/generated.h"

#include <algorithm>
#include <array>
#include <string>

namespace fovea::systems::relative_positions {
namespace {

constexpr std::array<int64_t, 7> kMajor = {0, 2, 4, 5, 7, 9, 11};
constexpr int64_t kLowest = 28, kHighest = 40;  // steps of the scale: C4 to A5
const std::vector<std::string> kKinds = {"red", "green", "blue", "yellow", "brown"};
const std::vector<std::string> kLabels = {"left", "right", "above", "below"};

int64_t pitch_at(int64_t step) {
  return 12 * (step / 7 + 1) + kMajor[static_cast<size_t>(step % 7)];
}

// A melody: notes of two or four sixteenths, in small steps and now and then a leap.
std::vector<int64_t> draw_melody(data::Random& random, int64_t sixteenths) {
  std::vector<int64_t> out;
  int64_t step = 32 + static_cast<int64_t>(random.below(6));
  while (static_cast<int64_t>(out.size()) < sixteenths) {
    const int64_t length = random.below(3) == 0 ? 4 : 2;
    const int64_t move = static_cast<int64_t>(random.below(random.below(4) == 0 ? 9 : 5));
    step = std::clamp(step + move - (move > 4 ? 6 : 2), kLowest, kHighest);
    out.push_back(data::token_of_pitch(pitch_at(step)));
    for (int64_t i = 1; i < length; ++i) out.push_back(data::kHoldToken);
  }
  out.resize(static_cast<size_t>(sixteenths));
  return out;
}

}  // namespace

data::Chorale draw_canon(data::Random& random, int64_t sixteenths) {
  const std::vector<int64_t> melody = draw_melody(random, sixteenths);
  data::Chorale out;
  for (int64_t t = 0; t < sixteenths; ++t)
    for (int64_t v = 0; v < data::kVoices; ++v) {
      const int64_t at = t - kCanonDelay * v;
      const int64_t token = at < 0 ? data::kRestToken : melody[static_cast<size_t>(at)];
      // A rest before the voice enters goes on, as in the files.
      out.tokens.push_back(at < 0 && t > 0            ? data::kHoldToken
                           : token > data::kRestToken ? token - kCanonInterval * v
                                                      : token);
    }
  return out;
}

data::LabelledGraph draw_graph(data::Random& random) {
  data::LabelledGraph out;
  const int64_t nodes = 6 + static_cast<int64_t>(random.below(7));
  for (int64_t i = 0; i < nodes; ++i) out.kinds.push_back(random.choice(kKinds));
  for (int64_t i = 0; i < nodes; ++i) {
    std::vector<int64_t> others;
    for (int64_t j = 0; j < nodes; ++j)
      if (j != i) others.push_back(j);
    random.shuffle(others);
    std::vector<std::string> labels = kLabels;
    random.shuffle(labels);  // the order of the edges tells nothing
    for (size_t k = 0; k < labels.size(); ++k) out.edges.push_back({i, others[k], labels[k]});
  }
  out.asked = static_cast<int64_t>(random.below(static_cast<uint64_t>(nodes)));
  out.question = random.choice(kLabels);
  out.answer =
      out.kinds[static_cast<size_t>(out.edges[static_cast<size_t>(deciding_edge(out))].to)];
  return out;
}

int64_t deciding_edge(const data::LabelledGraph& graph) {
  const auto found = std::find_if(graph.edges.begin(), graph.edges.end(), [&](const auto& edge) {
    return edge.from == graph.asked && edge.label == graph.question;
  });
  return found == graph.edges.end() ? -1 : found - graph.edges.begin();
}

}  // namespace fovea::systems::relative_positions
