#include "systems/system.h"

#include "systems/multi_head/task.h"

namespace fovea::systems::multi_head {
namespace {

const Registration registered{System{
    .info =
        {.name = "multi-head",
         .number = 26,
         .title = "Multi-head attention",
         .idea = "A weighted mean blends what it looks at: mix the doer with the one it was done "
                 "to, and little says which was which. "
                 "Several heads look at several things at once, each with projections of its "
                 "own, and their answers are laid side by side.",
         .paper = "Vaswani et al. 2017, Attention Is All You Need",
         .equation =
             R"(Z_h = \operatorname{attend}(X W_h^Q, X W_h^K, X W_h^V), \quad O = [Z_1; \ldots; Z_H]\, W^O)",
         .code = "fovea::nn::MultiHead attention(fovea::nn::MultiHeadOptions{.width = 24, .heads = "
                 "3});\n"
                 "auto answer = attention->forward(query, words, words, {.key_lengths = lengths});",
         .triple = {"H projections of one query", "H projections", "H projections", "scaled dot",
                    "softmax per head", "the sentence"},
         .formats =
             {"generated sentences with free word order and case suffixes",
              "a folder of train.txt, val.txt, test.txt: one sentence on each line, of its words"},
         .expect = "measured: three heads 99.9 % of the answers, one head 96.6 %"},
    .options = {Option("width", 24, "width of the model").between(1, 8192),
                Option("heads", 3, "number of heads; must divide the width").between(1, 256),
                Option("mix", "heads",
                       "what reads the sentence: heads; or a control: the average of the words, or "
                       "of a convolution over three of them")
                    .among({"heads", "average", "convolution"})},
    .recipe = train::Recipe{.epochs = 22, .batch = 64, .rate = 6e-3, .schedule = "cosine"},
    .tour = {"heads=8", "width=32"},
    .make = make_multi_head,
}};

}  // namespace
}  // namespace fovea::systems::multi_head
