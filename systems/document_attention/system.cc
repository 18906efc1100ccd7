#include "systems/document_attention/model.h"
#include "systems/document_attention/view.h"
#include "systems/normaliser_option.h"
#include "systems/system.h"
#include "text/generate.h"
#include "text/task.h"

namespace fovea::systems::document_attention {
namespace {

std::shared_ptr<text::Model> make(const OptionValues& o, const text::Known& known) {
  const std::string& use = o.text("aspect");
  DocumentAttentionModel::Config config{
      .embedding = known.embedding,
      .classes = known.classes,
      .aspects = known.aspects,
      .aspect_width = o.integer("aspect_width"),
      .width = o.integer("hidden"),
      .use = use == "atae" ? AspectUse::kAtae
             : use == "at" ? AspectUse::kAt
                           : AspectUse::kBlind,
      .score = o.text("score") == "sum" ? AspectScore::kSum : AspectScore::kConcat,
      .normaliser_name = o.text("normaliser"),
      .dropout = o.number("dropout"),
      .forgetting = o.number("forgetting"),
      .last_forgetting = o.number("last_forgetting")};
  config.normaliser = normaliser_named(config.normaliser_name);
  return std::make_shared<DocumentAttentionModel>(config);
}

std::vector<Option> options() {
  std::vector<Option> all = text::task_options({.width = 50});
  all.push_back(
      Option("generator", "aspects", "generated text when no --data is given").among({"aspects"}));
  all.push_back(
      Option("aspect", "atae",
             "at: the aspect is in the score; atae: beside every word too; blind: nowhere")
          .among({"atae", "at", "blind"}));
  all.push_back(
      Option("score", "concat", "concat: tanh([W h; V v]), the paper's; sum: tanh(W h + V v)")
          .among({"concat", "sum"}));
  all.push_back(Option("aspect_width", 50, "width of an aspect's vector").between(1, 4096));
  all.push_back(Option("hidden", 64, "width of the LSTM").between(1, 4096));
  all.push_back(normaliser_option());
  all.push_back(Option("forgetting", 0.15,
                       "probability that the LSTM, in training, starts again at a word: weights "
                       "then go to the word itself, not to a later state that remembers it")
                    .between(0, 0.9));
  all.push_back(Option("last_forgetting", 0.15,
                       "probability that h_n is left out in training: the weighted states must "
                       "then give the answer alone")
                    .between(0, 1));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "document-attention",
         .number = 11,
         .title = "Document attention",
         .idea = "One sentence may praise one thing and blame another: the answer depends on what "
                 "you ask about. An LSTM reads the sentence; the aspect asked about scores its "
                 "states; their weighted sum answers.\n\nIn the paper's score the aspect's half "
                 "adds the same number to every word and falls out of the softmax: it is the "
                 "aspect beside every word at the LSTM's input (ATAE) that turns the weights. "
                 "`score=sum` mixes the two inside the tanh, and then the score alone can do it.",
         .paper = "Wang, Huang, Zhu & Zhao 2016, Attention-based LSTM for Aspect-level Sentiment "
                  "Classification",
         .equation =
             R"(r = \sum_i \operatorname{softmax}_i\big(w^\top\, \tanh [W_h h_i; W_v v]\big)\, h_i, \quad h^{*} = \tanh(W_p r + W_x h_n))",
         .code = "auto r = fovea::attend(W_v(v), W_h(h), h,\n"
                 "                       {.score = fovea::Additive{w},\n"
                 "                        .structure = fovea::Ragged{one_each, offsets}});",
         .triple = {"aspect v", "LSTM state h_i", "h_i", "additive", "softmax", "sentence"},
         .formats = {"generated: two aspects, asked about one", "label<TAB>aspect<TAB>text",
                     "label<TAB>text without aspects, JSON Lines",
                     "predict: text, or aspect<TAB>text"},
         .expect = "measured: generated aspects 100.0 %, the largest weight in the clause asked "
                   "about 97.5 ± 4.0 %; blind to the aspect 52 % on mixed sentences"},
    .options = options(),
    .recipe = train::Recipe{.epochs = 16,
                            .batch = 50,
                            .rate = 1e-2,
                            .schedule = "cosine",
                            .clip = 5.0,
                            .patience = 4,
                            .monitor = "loss"},
    .tour = {},
    .step_work =
        [](const OptionValues& o, const std::string&) {
          return recurrent_step(o.integer("batch"), o.integer("hidden"), 4);
        },
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<text::TextTask>(
          run_options,
          text::Parts{.aspects = true,
                      .generators = {{"aspects", text::generate_aspects}},
                      .model = make,
                      .embedding =
                          [](text::Model& model) {
                            return dynamic_cast<DocumentAttentionModel&>(model).embedding;
                          },
                      .more = pictures});
    },
}};

}  // namespace
}  // namespace fovea::systems::document_attention
