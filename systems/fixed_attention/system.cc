#include "systems/fixed_attention/model.h"
#include "systems/fixed_attention/view.h"
#include "systems/normaliser_option.h"
#include "systems/system.h"
#include "text/generate.h"
#include "text/task.h"

namespace fovea::systems::fixed_attention {
namespace {

std::shared_ptr<Context> context_of(const OptionValues& o, int64_t width) {
  if (o.text("context") == "self-attention")
    return std::make_shared<SelfAttentionContext>(width, o.integer("heads"));
  if (o.text("context") == "recurrent")
    return std::make_shared<RecurrentContext>(width, o.integer("state"), o.number("dropout"));
  return nullptr;
}

std::shared_ptr<text::Model> make(const OptionValues& o, const text::Known& known) {
  FixedAttentionModel::Config config{
      .embedding = known.embedding,
      .classes = known.classes,
      .queries = o.integer("queries"),
      .score = o.text("score") == "mlp" ? FixedScore::kMlp : FixedScore::kDot,
      .hidden = o.integer("hidden"),
      .activation =
          o.text("activation") == "sigmoid" ? MlpActivation::kSigmoid : MlpActivation::kTanh,
      .normaliser_name = o.text("normaliser"),
      .context = context_of(o, known.embedding.width),
      .dropout = o.number("dropout"),
      .penalty = o.number("penalty")};
  config.normaliser = normaliser_named(config.normaliser_name);
  return std::make_shared<FixedAttentionModel>(config);
}

std::vector<Option> options() {
  std::vector<Option> all = text::task_options({.width = 50});
  all.push_back(Option("generator", "negation", "generated text when no --data is given")
                    .among({"negation", "reviews"}));
  all.push_back(Option("queries", 4, "R, the number of learned queries θ").between(1, 256));
  all.push_back(Option("score", "dot", "dot: θᵀx; mlp: θᵀg(W x + b)").among({"dot", "mlp"}));
  all.push_back(Option("hidden", 50, "score=mlp: number of rows of W").between(1, 4096));
  all.push_back(
      Option("activation", "tanh", "score=mlp: the function g").among({"tanh", "sigmoid"}));
  all.push_back(normaliser_option(
      {"none"}, "how the scores of each θ become weights; none: the scores are the weights"));
  all.push_back(Option("penalty", 0.0,
                       "weight of ‖A Aᵀ − I‖² in the loss, for different θ to look at different "
                       "words (A: the weights, a row for each θ)")
                    .between(0, 1000));
  all.push_back(Option("context", "none",
                       "a layer before the queries that lets words see their neighbours: "
                       "self-attention with relative positions, or an LSTM in both directions")
                    .among({"none", "self-attention", "recurrent"}));
  all.push_back(Option("heads", 5, "context=self-attention: number of heads").between(1, 64));
  all.push_back(
      Option("state", 100, "context=recurrent: width of each direction").between(1, 4096));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "fixed-attention",
         .number = 8,
         .title = "Fixed attention",
         .idea = "A sum treats all words alike. Let a learned vector θ score each word instead, "
                 "and take the words in those shares: the few that matter "
                 "outweigh the rest. Several θ look for several things, each normalised on its "
                 "own, and their views stand side by side.\n\nA score depends on the "
                 "word alone; the other words matter only through the normaliser. So one θ cannot "
                 "see that \"not\" turns the next adjective round; four do "
                 "better, because \"not\" can draw the weight to itself; a layer of self-attention "
                 "in front, which knows neighbours, solves it.",
         .paper = "classical; compare Lin et al. 2017 (structured self-attentive embedding)",
         .equation =
             R"(v_r = \sum_i \operatorname{softmax}_i(\theta_r^\top x_i)\, x_i, \quad o = [v_1; \ldots; v_R])",
         .code =
             "auto v = fovea::attend(theta, x, x,  // a head for each θ\n"
             "                       {.score = fovea::Dot{1.0}, .normaliser = fovea::Softmax{},\n"
             "                        .structure = fovea::Ragged{one_each, offsets}});",
         .triple = {"learned θ_r", "x_i", "x_i", "dot or MLP",
                    "softmax per θ (none, sparsemax, entmax)", "set"},
         .formats = {"generated negation",
                     "CSV or TSV: label,text, or a header with both; `label text`; JSON Lines",
                     "folder or stem of train.*, dev.*, test.*"},
         .expect = "measured: negation: R = 1 68 %, R = 4 78 %, with self-attention 100 %; MR 77.6 "
                   "%, 79.1 % with an LSTM"},
    .options = options(),
    .recipe =
        train::Recipe{
            .epochs = 40, .batch = 32, .rate = 5e-3, .patience = 15, .monitor = "accuracy"},
    .tour = {"epochs=12"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<text::TextTask>(
          run_options, text::Parts{.generators = {{"negation", text::generate_negation},
                                                  {"reviews", text::generate_reviews}},
                                   .model = make,
                                   .embedding =
                                       [](text::Model& model) {
                                         return dynamic_cast<FixedAttentionModel&>(model).embedding;
                                       },
                                   .more = pictures});
    },
}};

}  // namespace
}  // namespace fovea::systems::fixed_attention
