#include "systems/hierarchical/model.h"
#include "systems/normaliser_option.h"
#include "systems/system.h"
#include "text/generate.h"
#include "text/task.h"

namespace fovea::systems::hierarchical {
namespace {

std::shared_ptr<text::Model> make(const OptionValues& o, const text::Known& known) {
  HierarchicalModel::Config config{.embedding = known.embedding,
                                   .classes = known.classes,
                                   .width = o.integer("hidden"),
                                   .context = o.integer("context"),
                                   .normaliser_name = o.text("normaliser"),
                                   .dropout = o.number("dropout")};
  config.normaliser = normaliser_named(config.normaliser_name);
  return std::make_shared<HierarchicalModel>(config);
}

std::vector<Option> options() {
  std::vector<Option> all = text::task_options(
      {.level = text::Level::kSentences, .width = 50, .min_count = 2, .dropout = 0.3});
  all.push_back(
      Option("generator", "hidden", "generated text when no --data is given").among({"hidden"}));
  all.push_back(
      Option("hidden", 50, "width of each direction of the two encoders").between(1, 4096));
  all.push_back(
      Option("context", 100, "width of the learned vectors u_w and u_s").between(1, 4096));
  all.push_back(normaliser_option({"uniform"},
                                  "how scores become weights, at both levels; uniform: the mean"));
  return all;
}

const Registration registered{System{
    .info =
        {.name = "hierarchical",
         .number = 12,
         .title = "Hierarchical attention",
         .idea = "A document is sentences and a sentence is words, and not all of either matter. "
                 "One encoder reads the words of a sentence and a learned vector picks "
                 "among them; a second reads the sentences so made and another vector picks among "
                 "those. What comes out says not only the class but which sentence "
                 "decided, and which word in it.\n\nDocuments are ragged twice over. They are "
                 "packed end to end and nothing is padded: no step of the encoders and no "
                 "score is spent on words that are not there.",
         .paper = "Yang, Yang, Dyer, He, Smola & Hovy 2016, Hierarchical Attention Networks for "
                  "Document Classification",
         .equation =
             R"(s_i = \sum_t \operatorname{softmax}_t\big(u_w^\top\, \tanh(W h_{it} + b)\big)\, h_{it}, \quad v = \sum_i \operatorname{softmax}_i\big(u_s^\top\, \tanh(W' h_i + b')\big)\, h_i)",
         .code = "auto s = fovea::attend(u_w, tanh(W(h)), h,\n"
                 "                       {.score = fovea::Dot{1.0},\n"
                 "                        .structure = fovea::Ragged{one_each, sentences}});\n"
                 "auto v = fovea::attend(u_s, tanh(V(g)), g,\n"
                 "                       {.score = fovea::Dot{1.0},\n"
                 "                        .structure = fovea::Ragged{one_each, documents}});",
         .triple = {"learned u_w, u_s", "tanh(W h)", "h", "dot", "softmax, twice",
                    "words in a sentence, sentences in a document"},
         .formats = {"generated: polar sentences hidden among facts",
                     "label<TAB>id<TAB>sentence<TAB>sentence…",
                     "label<TAB>text (split into sentences), JSON Lines",
                     "folder of train.*, test.* (IMDB: positive_above=5)",
                     "hide=true: the folder of MR and SUBJ, mixed"},
         .expect = "measured: generated 99 %, polar-sentence hit rate 72 % (sparsemax 98 %); MR "
                   "hidden in SUBJ 78 %, hit rate 88 %; IMDB 91 %"},
    .options = options(),
    .recipe = train::Recipe{.epochs = 8,
                            .batch = 64,
                            .rate = 2e-3,
                            .clip = 5.0,
                            .patience = 3,
                            .monitor = "accuracy"},
    .tour = {"epochs=1", "rate=0.005", "normaliser=sparsemax"},
    .step_work =
        [](const OptionValues& o, const std::string&) {
          constexpr int64_t kSentences = 10;  // of a document, about
          return recurrent_step(kSentences * o.integer("batch"), o.integer("hidden"), 3);
        },
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<text::TextTask>(
          run_options, text::Parts{.level = text::Level::kSentences,
                                   .generators = {{"hidden", text::generate_hidden}},
                                   .model = make,
                                   .embedding = [](text::Model& model) {
                                     return dynamic_cast<HierarchicalModel&>(model).embedding;
                                   }});
    },
}};

}  // namespace
}  // namespace fovea::systems::hierarchical
