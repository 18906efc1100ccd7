#include "systems/relative_positions/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>

#include "explain/capture.h"
#include "train/task.h"

namespace fovea::systems::relative_positions {
namespace {

constexpr int64_t kShownNotes = 24, kFarthest = 40;

explain::Explanation described(const SequenceModel& model, std::string title) {
  explain::Explanation out;
  out.system = "relative-positions";
  out.title = std::move(title);
  const int64_t width = model.config().width / model.config().heads;
  out.score = model.has_tables() ? "scaled dot + relative positions" : "scaled dot";
  out.normaliser = "softmax";
  out.structure = "causal";
  out.scale = fmt::format("1/√{}", width);
  out.layers = {"layer", {}};
  out.heads = {"head", {}};
  for (int64_t l = 0; l < model.config().layers; ++l)
    out.layers.names.push_back(std::to_string(l + 1));
  for (int64_t h = 0; h < model.config().heads; ++h)
    out.heads.names.push_back(std::to_string(h + 1));
  return out;
}

// weights [layers, heads, queries, keys]
void add_maps(explain::Explanation& out, const torch::Tensor& weights) {
  for (int64_t l = 0; l < weights.size(0); ++l)
    for (int64_t h = 0; h < weights.size(1); ++h)
      out.maps.push_back({static_cast<int>(l), static_cast<int>(h), to_floats(weights[l][h]), {}});
}

// The picture begins with the head that looks most at the places that decide.
void choose(explain::Explanation& out, const torch::Tensor& weights,
            const std::vector<int64_t>& rows, const std::vector<int64_t>& keys) {
  if (rows.empty()) return;
  const torch::Tensor mass = weights
                                 .index({torch::indexing::Slice(), torch::indexing::Slice(),
                                         torch::tensor(rows), torch::tensor(keys)})
                                 .sum(-1);
  const auto best = mass.flatten().argmax().item<int64_t>();
  out.layers.chosen = static_cast<int>(best / mass.size(1));
  out.heads.chosen = static_cast<int>(best % mass.size(1));
}

explain::Plot bias_plot(SequenceModel& model, const torch::Tensor& tokens) {
  explain::Plot out{.title =
                        "What the tables add to a score at each distance, mean over the "
                        "queries shown",
                    .x_label = "positions back",
                    .y_label = "added to the score"};
  const torch::Tensor bias = model.offset_bias(tokens).cpu();
  const int64_t clip = model.config().clip, farthest = std::min(clip, 2 * kFarthest);
  for (int64_t l = 0; l < bias.size(0); ++l)
    for (int64_t h = 0; h < bias.size(1); ++h) {
      explain::Curve& curve = out.curves.emplace_back();
      curve.label = fmt::format("layer {} head {}", l + 1, h + 1);
      for (int64_t back = 0; back <= farthest; ++back) {
        curve.x.push_back(static_cast<double>(back));
        curve.y.push_back(bias[l][h][clip - back].item<double>());
      }
    }
  return out;
}

// Column c of row i is the weight of key i - c.
torch::Tensor by_distance(const torch::Tensor& weights, int64_t farthest) {
  const int64_t n = weights.size(-1);
  const torch::Tensor key =
      torch::arange(n).unsqueeze(1) - torch::arange(farthest + 1).unsqueeze(0);  // [n, distances]
  const torch::Tensor taken =
      weights.gather(-1, key.clamp_min(0).expand({weights.size(0), weights.size(1), n, -1}));
  return taken.masked_fill(key < 0, 0);
}

}  // namespace

std::vector<explain::Explanation> pictures(SequenceModel& model, const torch::Tensor& tokens,
                                           const Shown& shown) {
  const torch::Tensor weights = model.weights(tokens).select(1, 0).cpu();
  const int64_t n = weights.size(-1), farthest = std::min(n - 1, kFarthest);
  std::vector<int64_t> rows, keys;
  for (int64_t i = 0; i < n; ++i)
    if (shown.deciding[static_cast<size_t>(i)] >= 0) {
      rows.push_back(i);
      keys.push_back(shown.deciding[static_cast<size_t>(i)]);
    }

  explain::Explanation map = described(model, shown.title);
  map.query_label = "position";
  map.key_label = "looks at";
  for (const std::string& token : shown.tokens) map.keys.push_back({.text = token});
  map.queries = map.keys;
  add_maps(map, weights);
  choose(map, weights, rows, keys);

  explain::Explanation diagonal = described(model, "The same by distance: how far back each looks");
  diagonal.query_label = "position";
  diagonal.key_label = "positions back";
  diagonal.queries = map.queries;
  for (int64_t back = 0; back <= farthest; ++back)
    diagonal.keys.push_back({.text = std::to_string(back)});
  add_maps(diagonal, by_distance(weights, farthest));
  diagonal.layers.chosen = map.layers.chosen;
  diagonal.heads.chosen = map.heads.chosen;
  if (!rows.empty()) {
    map.truth = explain::Truth{"the place that decides", {}, {}, {}};
    diagonal.truth = explain::Truth{"the distance that decides", {}, {}, {}};
    for (size_t i = 0; i < rows.size(); ++i) {
      map.truth->sure.push_back(
          {static_cast<int32_t>(rows[i]), static_cast<int32_t>(keys[i]), 1.0f});
      if (rows[i] - keys[i] <= farthest)
        diagonal.truth->sure.push_back(
            {static_cast<int32_t>(rows[i]), static_cast<int32_t>(rows[i] - keys[i]), 1.0f});
    }
  }
  if (model.has_tables()) diagonal.plots.push_back(bias_plot(model, tokens));
  diagonal.notes.push_back(
      "A head that looks by distance is a straight column here, wherever the row stands.");
  return {map, diagonal};
}

namespace {

constexpr int kCell = 6;  // pixels of a sixteenth, and of a semitone
constexpr std::array<std::array<uint8_t, 3>, data::kVoices> kColours = {
    {{214, 69, 65}, {225, 152, 32}, {46, 139, 87}, {52, 101, 164}}};
constexpr std::array<const char*, data::kVoices> kVoiceNames = {"soprano", "alto", "tenor", "bass"};

// The pitch that sounds in each cell, 0 in a rest.
std::vector<int64_t> sounding(const data::Chorale& piece) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < piece.tokens.size(); ++i) {
    const bool held = piece.tokens[i] == data::kHoldToken;
    out.push_back(!held                ? data::pitch_of_token(piece.tokens[i])
                  : i >= data::kVoices ? out[i - data::kVoices]
                                       : 0);
  }
  return out;
}

struct Roll {
  std::vector<int64_t> pitches;  // of each token
  int64_t low = 60, high = 60;   // drawn pitches; rests lie one below
  int64_t columns = 1;           // the first is where nothing was read yet

  explicit Roll(const data::Chorale& piece)
      : pitches(sounding(piece)), columns(piece.sixteenths() + 1) {
    bool any = false;
    for (const int64_t pitch : pitches)
      if (pitch > 0) {
        low = any ? std::min(low, pitch) : pitch;
        high = any ? std::max(high, pitch) : pitch;
        any = true;
      }
  }
  int64_t rows() const { return high - low + 2; }
  int64_t row_of(int64_t pitch) const { return pitch > 0 ? high - pitch : rows() - 1; }
  std::vector<double> place(int64_t column, int64_t row) const {
    const double width = 1.0 / static_cast<double>(columns),
                 height = 1.0 / static_cast<double>(rows());
    return {static_cast<double>(column) * width, static_cast<double>(row) * height, width, height};
  }
  explain::Picture picture() const {
    explain::Picture out{
        static_cast<int>(columns) * kCell, static_cast<int>(rows()) * kCell, 3, {}};
    out.pixels.assign(static_cast<size_t>(out.width) * static_cast<size_t>(out.height) * 3, 250);
    for (size_t i = 0; i < pitches.size(); ++i) {
      if (pitches[i] == 0) continue;
      const auto& colour = kColours[i % data::kVoices];
      const auto left = static_cast<size_t>((static_cast<int64_t>(i / data::kVoices) + 1) * kCell),
                 top = static_cast<size_t>(row_of(pitches[i]) * kCell);
      for (size_t y = top; y < top + kCell - 1; ++y)
        for (size_t x = left; x < left + kCell; ++x)
          std::copy(colour.begin(), colour.end(),
                    out.pixels.begin() +
                        static_cast<int64_t>((y * static_cast<size_t>(out.width) + x) * 3));
    }
    return out;
  }
};

std::string note_name(int64_t pitch) {
  static constexpr std::array<const char*, 12> names = {"C",  "C♯", "D",  "E♭", "E",  "F",
                                                        "F♯", "G",  "A♭", "A",  "B♭", "B"};
  return pitch == 0 ? "rest"
                    : fmt::format("{}{}", names[static_cast<size_t>(pitch % 12)], pitch / 12 - 1);
}

}  // namespace

explain::Explanation piano_roll(SequenceModel& model, const data::Chorale& piece, int64_t from) {
  const Roll roll(piece);
  explain::Explanation out = described(model, "A piece that goes on, and what each note looked at");
  out.view = explain::View::kImage;
  out.query_label = "note written";
  out.key_label = "token before it";
  out.picture = roll.picture();
  std::vector<int64_t> inputs = {data::kStartToken}, rows;
  inputs.insert(inputs.end(), piece.tokens.begin(), piece.tokens.end() - 1);
  out.keys.push_back({.text = "start", .position = roll.place(0, roll.rows() - 1)});
  for (int64_t i = 0; i < static_cast<int64_t>(piece.tokens.size()); ++i) {
    const int64_t pitch = roll.pitches[static_cast<size_t>(i)], time = i / data::kVoices;
    const std::string name =
        fmt::format("{} {}", kVoiceNames[static_cast<size_t>(i % data::kVoices)], note_name(pitch));
    if (i + 1 < static_cast<int64_t>(piece.tokens.size()))
      out.keys.push_back({.text = name, .position = roll.place(time + 1, roll.row_of(pitch))});
    if (time < from || data::pitch_of_token(piece.tokens[static_cast<size_t>(i)]) == 0 ||
        static_cast<int64_t>(rows.size()) == kShownNotes)
      continue;
    rows.push_back(i);  // the token is chosen where the one before it was read
    out.queries.push_back({.text = fmt::format("{}, sixteenth {}", name, time + 1)});
  }
  if (rows.empty()) {  // nothing was begun: the last position
    rows.push_back(static_cast<int64_t>(inputs.size()) - 1);
    out.queries.push_back({.text = "the last token"});
  }
  const torch::Tensor tokens = torch::tensor(inputs, torch::kLong).unsqueeze(0);
  const auto device = model.parameters().front().device();
  add_maps(out, model.weights(tokens.to(device), torch::tensor(rows, torch::kInt).to(device))
                    .select(1, 0)
                    .cpu());
  out.notes.push_back(fmt::format(
      "The first {} sixteenths were given, the rest is the model's. Soprano red, alto orange, "
      "tenor "
      "green, bass blue; a column is a sixteenth, a row a semitone, rests lie at the bottom.",
      from));
  return out;
}

}  // namespace fovea::systems::relative_positions
