#include "systems/system.h"

#include <algorithm>

#include "systems/mixture_of_experts/tasks.h"
#include "systems/picture_task.h"

namespace fovea::systems::mixture_of_experts {
namespace {

const Registration registered{{
    .info =
        {.name = "mixture-of-experts",
         .number = 18,
         .title = "Mixture of experts",
         .idea = "Many small networks instead of one, and a gate that selects some of them for "
                 "each item: attention whose keys are experts. Only the selected experts compute, "
                 "so that a large model answers at the cost of a small one.\n\nA second reason: "
                 "experts isolate parts of the network from change. An expert that was "
                 "not selected has a gradient of exactly zero, and a mixture that learns one piece "
                 "after another forgets less of the first. Without data of yours, a curve has "
                 "four straight pieces, and each expert learns one of them.",
         .paper = "Jacobs, Jordan, Nowlan & Hinton 1991; Shazeer et al. 2017",
         .equation =
             R"(y = \sum_i g_i E_i(x), \quad g = \operatorname{softmax}(\operatorname{KeepTopK}(H, k)), \quad H_i = (x W_g)_i + \varepsilon_i \operatorname{softplus}((x W_n)_i))",
         .code = "fovea::nn::MixtureOfExperts mixture(\n"
                 "    fovea::nn::MixtureOfExpertsOptions{.width = 8, .experts = 4, .k = 2});\n"
                 "fovea::nn::Mixed mixed = mixture->mix(x);  // mixed.output [..., 8], as x\n"
                 "auto balance = mixed.importance_loss + mixed.load_loss;  // part of the loss\n"
                 "// Outputs of the selected experts; a row lists those of a token.\n"
                 "auto y = fovea::attend(one, score, answers,\n"
                 "                       {.score = fovea::Dot{1.0},\n"
                 "                        .structure = fovea::Graph{row_offsets, columns}});",
         .triple = {.query = "item x",
                    .key = "expert's column of W_g",
                    .value = "E_i(x)",
                    .score = "x·W_g, with noise",
                    .normaliser = "top-k softmax",
                    .structure = "all experts"},
         .formats =
             {"generated: a curve of four straight pieces; task=pictures: drawn digits",
              "task=curve: CSV with numeric columns, inputs and target (x=, y=)",
              "task=pictures: MNIST's or Fashion-MNIST's folder of IDX files, or CLASS/*.png, "
              "*.jpg"},
         .expect = "measured: each of the four pieces owned by one expert, 99.2 % of the rows; "
                   "Fashion-MNIST with 8 experts, k = 2: 88.8 %, five seeds"},
    .options = joined(
        {Option("task", "curve", "a number from numbers, or the class of a picture")
             .among({"curve", "pictures"}),
         Option("experts", 4, "number of experts").between(1, 4096),
         Option("k", 4, "number of experts for each item; all of them: the dense mixture")
             .between(1, 4096),
         Option("hidden", 0, "number of hidden units of an expert; 0: a linear expert")
             .between(0, 65536),
         Option("noise", true,
                "noise on the gate's scores in training, unless every item selects all experts"),
         Option("capacity", -1.0,
                "c: an expert takes at most ⌈c k items / experts⌉ of a batch; it skips the others; "
                "below 0: no limit")
             .between(-1, 1e6),
         Option("balance", 2.0, "weight w of both balance losses").between(0, 1e6),
         Option(
             "loss", "mixture",
             "curve: −log Σ g exp(−½ error²) of the experts, or the squared error of the mixture")
             .among({"mixture", "mean"}),
         Option(
             "deviation", 0.1,
             "curve: standard deviation of the errors in loss=mixture, as a share of the target's")
             .between(1e-3, 1),
         Option("bumps", 0,
                "curve: number of bumps along each input that the gate sees; 0: the input itself")
             .between(0, 1000),
         Option("order", "together",
                "curve: in_turn trains on the lower half of the first input's range, then on the "
                "upper half")
             .among({"together", "in_turn"}),
         Option("x", "",
                "curve: input columns, separated by commas; empty: every other numeric column"),
         Option("y", "", "curve: target column; empty: the last"),
         Option("width", 64, "pictures: width of the experts' input").between(1, 4096),
         Option("filters", 16,
                "pictures: filters of the first convolution; the second has twice as many")
             .between(1, 512)},
        picture_options(), "pictures: "),
    .recipe = train::Recipe{.epochs = 100,
                            .batch = 64,
                            .optimiser = "adam",
                            .rate = 0.02,
                            .schedule = "cosine",
                            .monitor = "loss"},
    .tour = {"epochs=40", "rate=0.1"},
    .step_work =
        [](const OptionValues& o, const std::string&) {
          return o.text("task") == "pictures"
                     ? kLargeStep
                     : static_cast<double>(o.integer("batch") * o.integer("experts") *
                                           std::max<int64_t>(1, o.integer("hidden")));
        },
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return run_options.options.text("task") == "pictures" ? make_pictures(run_options)
                                                            : make_curve(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::mixture_of_experts
