#include "systems/system.h"

#include "systems/relative_positions/model.h"
#include "systems/relative_positions/tasks.h"

namespace fovea::systems::relative_positions {
namespace {

std::vector<Option> options() {
  const std::vector<Use> writing = {Use::kPredict, Use::kExplain};
  return {
      Option("task", "copy",
             "copy: the symbol so many positions back; music: the next token of four voices; "
             "graphs: a node found by the label of an edge")
          .among({"copy", "music", "graphs"}),
      Option("positions", "relative",
             "what says where a token stands: vectors of offsets in each layer, sines added to the "
             "embeddings, both, or nothing")
          .among(kPositionNames.names()),
      Option("farthest", 0, "K: distances beyond it count as K; 0: 16 for copies, 128 for music")
          .between(0, 65536),
      Option("width", 64, "width of the model").between(1, 4096),
      Option("heads", 4, "number of heads; must divide the width").between(1, 256),
      Option("hidden", 128, "width of the feed-forward nets").between(1, 65536),
      Option("layers", 2, "number of layers (graphs: always one)").between(1, 64),
      Option("dropout", 0.0, "dropout of embeddings and of what layers add").between(0, 0.9),
      Option("rows", 4000, "copy, graphs: number of generated training rows or graphs")
          .between(8, 10'000'000),
      Option("symbols", 10, "copy: number of different symbols").between(2, 26),
      Option("distance", 5, "copy: number of positions from a symbol back to the one to copy")
          .between(0, 1000),
      Option("length", 20, "copy: number of symbols in a training row").between(1, 10000),
      Option("test_length", 60, "copy: number of symbols in a test row").between(1, 10000),
      Option("canons", 500, "music: number of generated pieces").between(5, 1'000'000),
      Option("context", 256, "music: number of tokens in a training window").between(4, 65536),
      Option("sixteenths", 64, "music: number of sixteenths to write")
          .between(1, 100'000)
          .during(writing),
      Option("temperature", 0.9, "music: temperature of the draws; 0: always the likeliest token")
          .between(0, 100)
          .during(writing),
      Option("sample_seed", 1, "music: seed of the draws").at_least(0).during(writing),
      Option("form", "grid", "music: four voices as text, or the bytes of a MIDI file")
          .among({"grid", "midi"})
          .during({Use::kPredict}),
      Option("tempo", 80, "music: number of quarter notes per minute in a MIDI file")
          .between(4, 1000)
          .during({Use::kPredict}),
      Option("edge_labels", true, "graphs: false: all edges share one vector, to compare with")};
}

const Registration registered{System{
    .info =
        {.name = "relative-positions",
         .number = 29,
         .title = "Relative positions",
         .idea =
             "What matters is often not where a token stands but how far away: the note before, "
             "the bar before. Here each distance has a vector. Added to the keys it says how much "
             "to look so far back; added to the values it says from where a thing came. Shift the "
             "input and the output shifts with it. On a graph the vector belongs to the label of "
             "an edge instead.\n\nWithout data of yours, rows of symbols are copied (task=copy), "
             "canons are continued (task=music) and nodes are found by the labels of edges "
             "(task=graphs).",
         .paper = "Shaw, Uszkoreit & Vaswani 2018; Huang et al. 2019 (music)",
         .equation =
             R"(e_{ij} = \frac{q_i^\top (k_j + r^K_c)}{\sqrt{d}}, \quad o_i = \sum_j \operatorname{softmax}_j(e_{ij})\, (v_j + r^V_c), \quad c = \operatorname{clip}(j - i, -K, K))",
         .code = "fovea::nn::RelativeTables tables(\n"
                 "    fovea::nn::RelativeTablesOptions{.width = 16, .clip = 64});\n"
                 "auto o = fovea::attend(query, key, value, {.score = tables->score(),\n"
                 "                                           .structure = fovea::Causal{}});\n"
                 "auto next = fovea::attend(last, key, value, {.score = tables->score()},\n"
                 "                          {.query_offset = 4});  // with a cache",
         .triple = {"x_i W^Q", "x_j W^K + r_{j−i}", "x_j W^V + r'_{j−i}", "scaled dot",
                    "softmax per head", "causal; a graph's edges"},
         .formats = {"generated rows (task=copy), canons (task=music), graphs (task=graphs)",
                     "task=copy: split<TAB>letters",
                     "task=music: split<TAB>name<TAB>soprano<TAB>alto<TAB>tenor<TAB>bass, a token "
                     "for each sixteenth (pitch, - or 0)",
                     "task=graphs: answer<TAB>node question<TAB>kinds<TAB>from:label:to …"},
         .expect = "measured: copies at three times the length 100 %, with sines 40 %; graphs 100 "
                   "% with the labels of edges, 49 % without"},
    .options = options(),
    .recipe = train::Recipe{.epochs = 8,
                            .batch = 32,
                            .rate = 3e-3,
                            .schedule = "cosine",
                            .warmup = 50,
                            .clip = 1.0},
    .tour = {"epochs=3", "layers=1"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      const std::string& task = run_options.options.text("task");
      return task == "music"    ? make_music(run_options)
             : task == "graphs" ? make_graphs(run_options)
                                : make_copy(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::relative_positions
