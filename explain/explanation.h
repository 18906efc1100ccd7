// What an attention system shows: one small versioned value that the HTML report, the web page and
// the tests read.
//
// It has the queries, the keys, the weights between them (one map for each layer and head), the true
// weights if they are known, and the labels that every picture must have. docs/explanation.md
// describes the JSON, docs/explanation.schema.json is its schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::explain {

inline constexpr int kVersion = 1;

// How the explanation is drawn. Plots and tables are drawn under any view.
enum class View : uint8_t {
  kBipartite,  // lines from queries to keys
  kMatrix,     // queries x keys, any size
  kText,    // keys as running text, shaded; with groups that have weights, a document with sentence
            // bars
  kImage,   // regions over `picture`, one overlay for each query
  kGraph,   // nodes and edges: the neighbourhood of one query, edge width by weight, colour by head
  kBag,     // a strip of instances with their weights beneath, one strip for each query
  kCurve,   // the plots alone
  kMemory,  // items x hops: queries are the hops
  kTree,    // the beam tree
  kShuffle,  // the keys in an order that the reader shuffles, then `shuffle`
};

// Raw 8-bit pixels, row by row; channels 1 (grey) or 3 (red, green, blue).
struct Picture {
  int width = 0, height = 0, channels = 1;
  std::vector<uint8_t> pixels{};
};

struct Item {
  std::string text{};
  int group = -1;                  // index into Explanation::groups
  std::vector<double> position{};  // empty; x, y (a node); or x, y, width, height as fractions of
                                   // `picture` (a region)
  std::optional<double> value{};   // a number of the item's own: polarity, y_i, class score
  std::optional<Picture> picture{};
};

// A sentence, a bag, a clause: items belong to it by index.
struct Group {
  std::string name{};
  std::optional<double> weight{};  // sentence-level attention
  std::optional<bool> truth{};     // should this group have been looked at?
};

struct Link {
  int32_t query = 0, key = 0;
  float weight = 0;
};

// Weights of one layer and head: `dense` [queries x keys] row by row, or `links` where few are not
// zero; never both.
struct Map {
  int layer = 0, head = 0;
  std::vector<float> dense{};
  std::vector<Link> links{};
};

// Where attention should look: `dense` [queries x keys], or links. A sure link also counts as
// possible and is not repeated there.
struct Truth {
  std::string label{};  // what the truth is, for example "gold alignment"
  std::vector<float> dense{};
  std::vector<Link> sure{}, possible{};  // weights are ignored
};

// What the maps run over: {"layer", {"encoder 1", "encoder 2"}}, {"head", {"1", "2", ...}}; also
// "hop", "e₁ − e₂", ...
struct Axis {
  std::string label{};
  std::vector<std::string> names{};
  int chosen = 0;  // where the picker begins
};

struct Curve {
  enum class Kind : uint8_t { kLine, kPoints, kBand, kBars };
  Kind kind = Kind::kLine;
  std::string label{};
  std::vector<double> x{}, y{};      // a NaN in y is a gap
  std::vector<double> upper{};       // of a band: from y to upper
  std::vector<std::string> names{};  // of points: a name for each, or none
  int step = -1;                     // shown at this position of the slider only; -1: always
};

// A vertical line with a name: the bandwidth chosen, the predicted crossing.
struct Marker {
  std::string label{};
  double x = 0;
  int step = -1;
};

struct Slider {
  std::string label{};
  std::vector<double> values{};
  int chosen = 0;
};

struct Plot {
  std::string title{}, x_label{}, y_label{};
  bool log_x = false, log_y = false;
  std::vector<Curve> curves{};
  std::vector<Marker> markers{};
  std::optional<Slider> slider{};
};

// A table of text; shown for one query only where `query` names it (the six steps for a chosen
// word).
struct Table {
  std::string title{};
  int query = -1;
  std::vector<std::string> columns{};
  std::vector<std::vector<std::string>> rows{};
};

// A hypothesis of a beam search; parents come before children, the root's parent is -1.
struct TreeNode {
  int parent = -1;
  std::string text{};
  double score = 0;
  enum class State : uint8_t {
    kLive,
    kPruned,
    kFinished,
    kBest,
    kGreedy,  // what greedy search takes, where it leaves the way to the best
  };
  State state = State::kLive;
};

// y = activation(W x + b); weight [outputs x inputs] row by row, as many outputs as biases.
struct Layer {
  enum class Activation : uint8_t { kNone, kTanh, kRelu };
  std::vector<float> weight{}, bias{};
  Activation activation = Activation::kNone;
};

// torch.nn.GRU's cell, gates in its order (reset, update, new): weights [3 width x inputs] and
// [3 width x width].
struct Gru {
  std::vector<float> input_weight{}, hidden_weight{}, input_bias{}, hidden_bias{};
};

// A function of the members in the order shown: brings their vectors together, then takes layers.
struct Reader {
  enum class Kind : uint8_t {
    kSum,    // of what `shift` was added to
    kMax,    // the largest of each coordinate
    kGru,    // the last state of `gru`
    kDrawn,  // nothing to evaluate: `answers`, one for each of Shuffle::orders
  };
  std::string label{};
  Kind kind = Kind::kSum;
  double shift = 0;
  std::optional<Gru> gru{};
  std::vector<Layer> layers{};
  std::vector<double> answers{};
  double given = 0;  // the model's own answer to the members as given: what the page must repeat
};

// What the page needs to answer for the keys in any order.
struct Shuffle {
  std::string answer{};          // what the number is: "sum"
  int width = 0;                 // of a member's vector
  std::vector<float> vectors{};  // [keys x width]
  int chosen = -1;  // the layers end in logits: the number is the probability of this one
  std::vector<std::vector<int>> orders{};  // where there are any, the page shows these in turn; the
                                           // first is as given
  std::vector<Reader> readers{};
};

// The shapes in the four boxes: query, key, value -> weights -> output. Text, for example "2 × 4 ×
// 8".
struct Shapes {
  std::string query{}, key{}, value{}, weights{}, output{};
};

struct Explanation {
  std::string system{};  // its name on the command line
  std::string title{};
  View view = View::kMatrix;
  // The labels of a picture. `scale` is the factor of the scores, in words or numbers.
  std::string score{}, normaliser{}, structure{}, scale{};
  std::string outcome{};  // what the model said: "positive, p = 0.93"; a line for each answer
  std::vector<std::string> notes{};

  std::string query_label = "query",
              key_label = "key";  // what the items are: "output word", "source word"
  std::vector<Item> queries{}, keys{};
  std::vector<Group> groups{};
  Axis layers{"layer", {"1"}};
  Axis heads{"head", {"1"}};
  std::vector<Map> maps{};  // at most one for each layer and head
  std::optional<Truth> truth{};

  std::optional<Picture> picture{};
  std::vector<Plot> plots{};
  std::vector<Table> tables{};
  std::vector<TreeNode> tree{};
  std::optional<Shapes> shapes{};
  std::optional<Shuffle> shuffle{};
};

// Sizes, indices and finite numbers; InvalidArgument names the first field that is wrong.
void check(const Explanation&);

// One line of JSON; checks first.
std::string to_json(const Explanation&);
// Strict: unknown fields, other versions, wrong shapes and sizes are refused in one line that
// begins with `name`.
Explanation from_json(std::string_view json, std::string_view name = "explanation");
// Reads a file of at most 256 MiB.
Explanation read_explanation(const std::filesystem::path&);

}  // namespace fovea::explain
