#include "systems/system.h"

#include "systems/nadaraya_watson/task.h"

namespace fovea::systems::nadaraya_watson {
namespace {

const Registration registered{{
    .info =
        {.name = "nadaraya-watson",
         .number = 1,
         .title = "Nadaraya–Watson regression",
         .idea = "Predict the value at a point as an average of the values seen near it. The "
                 "weight of an observation falls with its "
                 "distance, by a kernel of some bandwidth. This is attention before its name: the "
                 "query is where you ask, the keys "
                 "are where you have looked, the values are what you found there.\n\nThe bandwidth "
                 "is chosen by leaving each observation "
                 "out and predicting it from the others. Nothing is refitted for that: the "
                 "observation is left out of who may see whom.",
         .paper = "Nadaraya 1964; Watson 1964",
         .equation =
             R"(f(x) = \sum_i a_i y_i, \quad a_i = \frac{K(u_i)}{\sum_j K(u_j)}, \quad u_i = \frac{\lVert D(x - x_i) \rVert}{h})",
         .code =
             "auto f = fovea::attend(x_query, x, y,\n"
             "                       {.score = fovea::Kernel{fovea::KernelName::kGaussian, h},\n"
             "                        .normaliser = fovea::Softmax{},           // over log K\n"
             "                        .structure = fovea::Keep{not_itself}});  // leave one out",
         .triple = {.query = "test point x",
                    .key = "x_i",
                    .value = "y_i",
                    .score = "log K(|D(x - x_i)|/h)",
                    .normaliser = "kernel ratio",
                    .structure = "all, or the kernel's support"},
         .formats = {"generated: the 133 motorcycle observations (sample=motorcycle) or a noisy "
                     "sine (sample=sine)",
                     "CSV with a header: --set x=COLUMN,… --set y=COLUMN (default: last column y, "
                     "the numeric others x)"},
         .expect =
             "measured: motorcycle: leave-one-out RMSE 24.4 at h = 0.914 (the mean alone: 48.1)"},
    .options =
        {Option("kernel", "gaussian", "the kernel K(u)").among(kernel_names()),
         Option("bandwidth", "loo",
                "how the bandwidth h is chosen: leave-one-out, Silverman's rule, distance to the "
                "k-th neighbour, or fixed by h")
             .among({"loo", "silverman", "nearest", "fixed"}),
         Option("h", 0.0, "the bandwidth when it is fixed").at_least(0),
         Option("k", 0, "number of neighbours for bandwidth=nearest; 0: chosen by leave-one-out")
             .between(0, 10000000),
         Option(
             "learn", "none",
             "what is trained on the leave-one-out loss: one factor w, a diagonal or full metric D")
             .among({"none", "w", "diagonal", "full"}),
         Option("grid", 30, "number of bandwidths tried, evenly spaced in log h").between(1, 10000),
         Option("grid_low", 0.05, "the smallest bandwidth tried, as a multiple of Silverman's rule")
             .at_least(1e-6),
         Option("grid_high", 20.0, "the largest bandwidth tried, as a multiple of Silverman's rule")
             .at_least(1e-6),
         Option("refine", -1,
                "number of golden-section steps after the grid; -1: 24, or none above 5000 rows")
             .between(-1, 1000),
         Option("alone", 0.0,
                "share of rows that a bandwidth may leave without a neighbour in leave-one-out")
             .between(0, 1),
         Option("standardise", "auto",
                "scale inputs to mean 0 and deviation 1; auto: if there are several")
             .among({"auto", "yes", "no"}),
         Option("precision", "auto", "type of arithmetic; auto: float64 up to 5000 rows")
             .among({"auto", "float32", "float64"}),
         Option("x", "", "input columns, comma-separated"), Option("y", "", "target column"),
         Option("missing", "error",
                "what an empty cell means: an error, drop the row, or fill in the column's mean or "
                "median")
             .among({"error", "drop", "mean", "median"})
             .during({Use::kEvaluate, Use::kExplain}),
         Option("test", 0.0, "share of rows kept for testing; 0: evaluate by leave-one-out")
             .between(0, 0.9),
         Option("sample", "motorcycle", "what is generated without --data")
             .among({"motorcycle", "sine"}),
         Option("n", 200, "number of points of sample=sine").between(2, 1000000)},
    .recipe = train::Recipe{.epochs = 30,
                            .batch = 512,
                            .optimiser = "adam",
                            .rate = 0.03,
                            .schedule = "cosine",
                            .keep = "last"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<Regression>(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::nadaraya_watson
