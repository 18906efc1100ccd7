// Deep Sets: what a function of a set looks like when the order must not matter.
#include "systems/deep_sets/tasks.h"
#include "systems/system.h"

namespace fovea::systems::deep_sets {
namespace {

const Registration registered{{
    .info =
        {.name = "deep-sets",
         .number = 3,
         .title = "Deep Sets",
         .idea = "A function of a set must not care in which order the elements come. One form is "
                 "enough for all of them, if elements come from a countable set, or if sets have a "
                 "fixed size and the function is continuous: give each element features of its "
                 "own, add them up, and work on the sum. It is attention with a constant score and "
                 "no normaliser.\n\nWithout data of yours, it learns to add up to ten handwritten "
                 "digits, and goes on adding when there are fifty; a recurrent network that reads "
                 "the same features one after another does not. Equivariant layers, which answer "
                 "for each element while seeing the whole set, tell solids apart by their points. "
                 "A condition z stands beside the sum: of a photograph that has some tags, it says "
                 "which others are missing (task=tags).",
         .paper = "Zaheer, Kottur, Ravanbakhsh, Póczos, Salakhutdinov & Smola 2017",
         .equation =
             R"(f(X) = \rho\Big(\sum_{x \in X} \varphi(x)\Big), \quad g\big(X \Lambda - \mathbf{1} \operatorname{pool}(X)\, \Gamma\big))",
         .code = "auto sum = fovea::attend(blank, phi, phi,\n"
                 "                         {.score = fovea::Constant{}, .normaliser = "
                 "fovea::Unnormalised{},\n"
                 "                          .structure = fovea::Ragged{one_each, offsets}});\n"
                 "auto answer = rho(sum);",
         .triple = {.query = "none",
                    .key = "none",
                    .value = "φ(x)",
                    .score = "constant",
                    .normaliser = "none (sum); argmax in equivariant layers",
                    .structure = "set"},
         .formats = {"generated: sums of drawn digits (task=digits), clouds of eight solids "
                     "(task=solids), tags "
                     "of photographs (task=tags)",
                     "task=digits: MNIST's folder",
                     "task=solids: CSV bag,label,x,y,z, a cloud for each bag",
                     "task=tags: JSON Lines {\"tags\": [\"sand\", \"sea\"], \"z\": [0.8, 0.9, "
                     "0.1]}; z, numbers that "
                     "say more, may be left out of all"},
         .expect = "measured: MNIST sums learned on up to 10 digits: 89 % exact at 10 and 51 % at "
                   "50 (GRU 74 and 0 %); solids 99.8 %"},
    .options =
        {Option("task", "digits",
                "sums of digits, clouds of points on solids, or the tags that a set lacks")
             .among({"digits", "solids", "tags"}),
         Option("given", 2,
                "tags: number of tags that are given; the others of a set are to be found")
             .between(0, 1000)
             .during({Use::kEvaluate, Use::kExplain}),
         Option("sets", 20000, "digits: number of training sets").between(10, 10000000),
         Option("largest", 10, "digits: size of the largest training set").between(1, 1000),
         Option("filters", 16, "digits: filters of the first convolution").between(1, 256),
         Option("shift", 0,
                "digits: largest number of pixels by which a picture is moved at random")
             .between(0, 15),
         Option("width", 32, "digits, tags: width of φ(x)").between(1, 1024),
         Option("rho", "linear",
                "digits: form of ρ; a linear one also works for sets larger than those of the "
                "training")
             .among({"linear", "mlp"}),
         Option("points", 100, "solids: number of points in a cloud")
             .between(1, 100000)
             .during({Use::kEvaluate, Use::kExplain}),
         Option("cloud_width", 64, "solids: width of the equivariant layers").between(1, 1024),
         Option("pool", "max", "solids: pooling in the equivariant layers").among({"max", "mean"}),
         Option("dropout", 0.2, "solids: dropout before the last two layers").between(0, 0.95)},
    .recipe = train::Recipe{.epochs = 8,
                            .batch = 16,
                            .optimiser = "adam",
                            .rate = 1e-3,
                            .schedule = "cosine",
                            .warmup = 500,  // without it φ saturates before it has learned
                            .monitor = "loss"},
    .tour = {"epochs=6", "sets=3500", "filters=8", "batch=8", "rate=0.002"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      const std::string& task = run_options.options.text("task");
      if (task == "tags") return make_tags(run_options);
      return task == "solids" ? make_solids(run_options) : make_digit_sums(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::deep_sets
