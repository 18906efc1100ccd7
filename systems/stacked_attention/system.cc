#include "systems/system.h"

#include "systems/stacked_attention/task.h"

namespace fovea::systems::stacked_attention {
namespace {

const Registration registered{{
    .info =
        {.name = "stacked-attention",
         .number = 16,
         .title = "Stacked attention",
         .idea =
             "What colour is the thing left of the circle? One look over the picture finds the "
             "circle, and only then is it clear where to look for the answer. Each hop attends to "
             "the regions of the picture, adds what it saw to the question, and the next hop asks "
             "with both.\n\nWithout pictures of yours, grids of coloured shapes are drawn. A "
             "region shows its own pixels and knows where it is, so that one hop can only guess "
             "among the things around, and what lies beside the circle takes two.",
         .paper = "Yang, He, Gao, Deng & Smola 2016",
         .equation =
             R"(u^{k+1} = u^k + \sum_i \operatorname{softmax}_i\big(w^\top \tanh(W_I v_i + W_Q u^k + b)\big)\, v_i, \quad u^0 = v_Q)",
         .code = "auto u = v_Q;\n"
                 "for (size_t k = 0; k < 2; ++k)\n"
                 "  u = u + fovea::attend(W_Q[k](u), W_I[k](v), v,\n"
                 "                        {.score = fovea::Additive{w[k]}});",
         .triple = {.query = "question and what was seen",
                    .key = "region v_i",
                    .value = "region v_i",
                    .score = "additive",
                    .normaliser = "softmax",
                    .structure = "the picture's regions, 2 hops"},
         .formats =
             {"generated: grids of coloured shapes (pictures=)",
              "a folder of train.jsonl, test.jsonl, perhaps valid.jsonl, or questions.jsonl: "
              "{picture, question, answer or answers, cells}, and the pictures: PNG, JPEG, "
              "or pictures.idx#3"},
         .expect =
             "measured: generated grids: one hop 58 %, two hops 99.7 to 99.8 %, five seeds; all "
             "questions need two looks"},
    .options =
        {Option("hops", 2, "number of looks at the picture").between(1, 16),
         Option("width", 64, "width of the vectors of regions and question").between(3, 4096),
         Option("attention", 64, "width of the additive score: length of w").between(1, 4096),
         Option("grid", 4, "regions are grid x grid").between(1, 32),
         Option("side", 32,
                "your own pictures are scaled to side x side pixels; a multiple of 2 grid")
             .between(2, 1024),
         Option("question", "lstm",
                "how a question becomes a vector; cnn: filters over 1 to 3 words")
             .among({"lstm", "cnn"}),
         Option("answers", 1000, "number of possible answers: the most frequent ones in training")
             .between(2, 1000000),
         Option("dropout", 0.0, "dropout of the last state").between(0, 0.95),
         Option(
             "narrowness", 1.0,
             "factor on the first weights w of the scores: a new model with a larger one looks at "
             "fewer regions")
             .between(0, 1000),
         Option("pictures", 16000, "generated: number of training pictures").between(16, 1000000)},
    .recipe = train::Recipe{.epochs = 30,
                            .batch = 256,
                            .optimiser = "adam",
                            .rate = 4e-3,
                            .schedule = "cosine",
                            .clip = 5,
                            .monitor = "accuracy"},
    .tour = {"pictures=16000"},
    .step_work =
        [](const OptionValues& o, const std::string&) {
          return recurrent_step(o.integer("batch"), o.integer("width"), 4);
        },
    .make = make_stacked_attention,
}};

}  // namespace
}  // namespace fovea::systems::stacked_attention
