// What does not belong to a set, and what would.
#include "systems/set_outlier/tasks.h"
#include "systems/system.h"

namespace fovea::systems::set_outlier {
namespace {

const Registration registered{{
    .info =
        {.name = "set-outlier",
         .number = 4,
         .title = "Set outlier and set expansion",
         .idea = "All but one of these belong together: which one does not? Equivariant layers "
                 "give each member a score in the light of the whole set, and a softmax over the "
                 "members points at the odd one.\n\nThe same idea turned round asks what is "
                 "missing: score the set with each candidate added, and rank. A margin loss asks "
                 "that what belongs scores higher than what does not, by one; the hardest rivals "
                 "teach, the others are already far below.",
         .paper = "Zaheer, Kottur, Ravanbakhsh, Póczos, Salakhutdinov & Smola 2017",
         .equation =
             R"(\ell(x, x' \mid X) = \max\big(0,\, s(x' \mid X) - s(x \mid X) + \Delta\big), \quad s(x \mid X) = f(\{x\} \cup X))",
         .code = "auto whole = fovea::attend(blank, x, x,  // pool(X) of an equivariant layer\n"
                 "                           {.score = fovea::Constant{},\n"
                 "                            .normaliser = fovea::Uniform{}, .structure = set});\n"
                 "auto share = fovea::weights(one, score,  // softmax over members\n"
                 "                            {.score = fovea::Dot{1.0}, .structure = set});",
         .triple = {.query = "set summary",
                    .key = "candidate x",
                    .value = "—",
                    .score = "s(x given X)",
                    .normaliser = "softmax over members, or margin",
                    .structure = "set"},
         .formats =
             {"generated: eight drawn digits, one odd (task=outlier); sets drawn from topics "
              "(task=expansion)",
              "task=outlier: MNIST's folder",
              "task=expansion: a set a line, things between '|' in the last tab-separated field"},
         .expect = "measured: odd MNIST digit out of eight 98 %; recipes: recall@10 1.7 times that "
                   "of ranking by popularity"},
    .options = {Option("task", "outlier", "find the odd member, or rank what is missing")
                    .among({"outlier", "expansion"}),
                Option("members", 8, "outlier: number of members in a set").between(3, 1000),
                Option("sets", 4000, "number of generated sets, or of sets drawn from MNIST")
                    .between(10, 10000000),
                Option("filters", 16, "outlier: filters of the first convolution").between(1, 256),
                Option("width", 32, "outlier: width of φ(x)").between(1, 1024),
                Option("pool", "mean", "outlier: pooling in the equivariant layers")
                    .among({"mean", "max"}),
                Option("topics", 20, "expansion, generated: number of topics").between(2, 10000),
                Option("embedding", 64, "expansion: width of φ(x)").between(1, 4096),
                Option("hard", 50,
                       "expansion: number of highest-scoring wrong candidates that enter the loss")
                    .between(1, 100000),
                Option("loss", "margin",
                       "expansion: hinge over the highest wrong candidates, or softmax over all")
                    .among({"margin", "softmax"}),
                Option("delta", "one",
                       "expansion: Δ(x, x') of the hinge: 1 for any wrong candidate, or less for "
                       "one that often stands with the right one (company)")
                    .among({"one", "company"})},
    .recipe =
        train::Recipe{
            .epochs = 5, .batch = 16, .optimiser = "adam", .rate = 1e-3, .monitor = "error"},
    .tour = {"epochs=6", "sets=1500", "filters=8"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return run_options.options.text("task") == "expansion" ? make_expansion(run_options)
                                                             : make_outlier(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::set_outlier
