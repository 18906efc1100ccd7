#include "systems/luong/model.h"
#include "systems/system.h"
#include "translate/task.h"

namespace fovea::systems::luong {
namespace {

LuongScore score_named(const std::string& name) {
  if (name == "dot") return LuongScore::kDot;
  if (name == "concat") return LuongScore::kConcat;
  if (name == "location") return LuongScore::kLocation;
  return LuongScore::kGeneral;
}

LuongWindow window_named(const std::string& name) {
  if (name == "local-m") return LuongWindow::kMonotonic;
  if (name == "local-p") return LuongWindow::kPredictive;
  return LuongWindow::kGlobal;
}

std::shared_ptr<translate::Model> make(const OptionValues& o,
                                       const translate::Vocabularies& vocabularies) {
  const LuongConfig config{
      .embedding = o.integer("embedding"),
      .width = o.integer("width"),
      .source_width =
          o.integer("source_width") > 0 ? o.integer("source_width") : o.integer("width"),
      .attention = o.integer("attention") > 0 ? o.integer("attention") : o.integer("width"),
      .layers = o.integer("layers"),
      .dropout = o.number("dropout"),
      .score = score_named(o.text("score")),
      .window = window_named(o.text("window")),
      .join = o.text("join") == "concatenation" ? LuongJoin::kConcatenation : LuongJoin::kTanh,
      .half_window = o.integer("half_window"),
      .longest_source = o.integer("longest_source"),
      .input_feeding = o.flag("input_feeding"),
      .reverse = o.flag("reverse"),
      .bidirectional = o.flag("bidirectional")};
  return std::make_shared<LuongModel>(config, vocabularies);
}

std::vector<Option> options() {
  std::vector<Option> all = translate::task_options({.generator = "dates"});
  all.push_back(Option("embedding", 64, "width of a word vector").between(1, 8192));
  all.push_back(
      Option("width", 128, "width of the decoder and of the encoder's states").between(2, 8192));
  all.push_back(
      Option("source_width", 0,
             "width of the encoder's states; 0: as the decoder's. Where they differ, W of "
             "score=general is rectangular")
          .between(0, 8192));
  all.push_back(Option("attention", 0, "score=concat: length of v; 0: as the decoder's width")
                    .between(0, 8192));
  all.push_back(Option("join", "tanh",
                       "what the output reads: tanh(W_c [c; s]), or [c; s] itself (concatenation)")
                    .among({"tanh", "concatenation"}));
  all.push_back(
      Option("layers", 1, "number of layers of the encoder and of the decoder").between(1, 128));
  all.push_back(
      Option("dropout", 0.1, "dropout of word vectors, between layers and before the output")
          .between(0, 0.9));
  all.push_back(Option("score", "general", "score of a decoder state and a source state")
                    .among({"dot", "general", "concat", "location"}));
  all.push_back(
      Option("window", "global",
             "all of the source, or a window around position t, or around a predicted position")
          .among({"global", "local-m", "local-p"}));
  all.push_back(
      Option("half_window", 10, "D: the window has 2 D + 1 positions").between(1, 100000));
  all.push_back(Option("longest_source", 100, "longest source of a location score, in tokens")
                    .between(1, 100000));
  all.push_back(
      Option("input_feeding", false,
             "feed the attended state into the next step (steps then run one after another)"));
  all.push_back(Option("reverse", false, "read the source backwards"));
  all.push_back(Option("bidirectional", true, "read the source in both directions"));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "luong",
         .number = 21,
         .title = "Luong attention",
         .idea = "The decoder looks with its new state, and the score may be as simple as a "
                 "dot product. A local window, placed by "
                 "position or predicted, reads only part of the source; feeding the attended "
                 "state on tells the next step what has been read.",
         .paper = "Luong, Pham & Manning 2015, Effective Approaches to Attention-based Neural "
                  "Machine Translation",
         .equation =
             R"(e_{tj} = s_t^\top W h_j, \quad c_t = \sum_j \operatorname{softmax}_j(e_{tj})\, h_j, \quad \tilde{s}_t = \tanh(W_c [c_t; s_t]))",
         .code = "auto context = fovea::attend(state.matmul(W), states, states, {.score = "
                 "fovea::Dot{1.0}},\n"
                 "                             {.key_lengths = lengths});",
         .triple = {"decoder state s_t", "encoder state h_j", "encoder state h_j",
                    "dot, bilinear, additive or location", "softmax", "source or a window"},
         .formats = translate::formats(
             "generated dates (default), a reordered language or copy-and-reverse"),
         .expect =
             "measured: dates 100 % exact, alignment hit rate 99 %; Multi30k en-de 38.8 BLEU"},
    .options = options(),
    .recipe =
        train::Recipe{.epochs = 22, .batch = 64, .rate = 0.01, .schedule = "cosine", .clip = 5.0},
    .tour = {"epochs=7", "width=64", "rate=0.008"},
    .step_work = recurrent_work(4),
    .make = translate::task_of("luong", make),
}};

}  // namespace
}  // namespace fovea::systems::luong
