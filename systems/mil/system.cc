#include "systems/system.h"

#include "systems/mil/slides.h"
#include "systems/mil/task.h"
#include "systems/normaliser_option.h"
#include "train/task.h"

namespace fovea::systems::mil {
namespace {

const Registration registered{{
    .info =
        {.name = "mil",
         .number = 5,
         .title = "Attention-based multiple-instance learning",
         .idea = "Somebody tells you that a bag of keys opens the door, not which key does. A "
                 "network that must say which bags open it has to find the key on its own: "
                 "attention weighs the instances of a bag, the label comes from their weighted "
                 "mean, and the weights show where it came from. No instance has a label.\n\n"
                 "Without data of yours, bags hold handwritten digits, and a bag is positive "
                 "when a nine is among them: the weights find the nines.",
         .paper = "Ilse, Tomczak & Welling 2018",
         .equation =
             R"(z = \sum_k a_k h_k, \quad a_k = \operatorname{softmax}_k\big(w^\top (\tanh(V h_k) \odot \sigma(U h_k))\big), \quad p = \sigma(c^\top z + b))",
         .code = "// One query a bag; the key is [V h; U h]. Plain: V h, and Additive{w}.\n"
                 "auto z = fovea::attend(zero, key, h,\n"
                 "                       {.score = fovea::GatedAdditive{w},\n"
                 "                        .structure = fovea::Ragged{one_each, offsets}});",
         .triple = {.query = "learned w",
                    .key = "instance V h_k (and U h_k)",
                    .value = "h_k",
                    .score = "(gated) additive",
                    .normaliser = "softmax",
                    .structure = "bag"},
         .formats = {"generated: bags of drawn digits, positive where a nine is among them "
                     "(bags=, mean_size=, target=)",
                     "MNIST's folder: bags of its digits, as in the paper",
                     "CSV bag,label,f0,f1,… with labels 0 and 1, or no and yes",
                     "a folder LABEL/BAG/*.png, *.jpg with labels 0 and 1",
                     "windows=32: a folder LABEL/*.png, *.jpg, each picture the bag of its "
                     "windows; generated: slices of tissue"},
         .expect =
             "measured: MNIST bags of mean size 10, AUC with 50 bags 0.844, with 200 bags 0.964"},
    .options =
        {Option("pool", "attention", "how a bag becomes one vector")
             .among({"attention", "gated", "embedding_max", "embedding_mean", "instance_max",
                     "instance_mean"}),
         Option("query", "learned",
                "attention, gated: the same query for every bag, or (context) one that also "
                "depends on the bag's mean")
             .among({"learned", "context"}),
         normaliser_option(), Option("attention", 128, "L, the width of V and U").between(1, 4096),
         Option("filters", 20,
                "pictures: filters of LeNet's first layer; the second has 5/2 as many")
             .between(2, 512),
         Option("hidden", 500, "pictures: M, the width of an embedding").between(1, 4096),
         Option("dropout", 0.5, "rows of numbers: dropout after each layer").between(0, 0.95),
         Option("validation", 0.0,
                "tables and pictures: share of the training bags for choosing the epoch")
             .between(0, 0.5),
         Option("side", 28, "your own pictures are scaled to side x side pixels").between(16, 512),
         Option("windows", 0,
                "a picture is a bag of windows of so many pixels each way; 0: it is an instance")
             .between(0, 512),
         Option("stride", 16, "windows: pixels from one to the next").between(1, 4096),
         Option("positions", false, "windows: whether an instance knows where it is"),
         Option("bags", 200, "digits: number of training bags").between(2, 1000000),
         Option("validation_bags", 0,
                "digits: number of bags for choosing the epoch; 0: the last epoch is kept")
             .between(0, 100000),
         Option("test_bags", 1000, "digits: number of test bags")
             .between(2, 100000)
             .during({Use::kEvaluate, Use::kExplain}),
         Option("mean_size", 10.0, "digits: mean size of a bag")
             .between(1, 100000)
             .during({Use::kEvaluate, Use::kExplain}),
         Option("size_deviation", 2.0, "digits: standard deviation of the size")
             .between(0, 10000)
             .during({Use::kEvaluate, Use::kExplain}),
         Option("target", 9, "digits: the digit that makes a bag positive").between(0, 9)},
    .recipe = train::Recipe{.epochs = 20,
                            .batch = 1,
                            .optimiser = "adam",
                            .rate = 5e-4,
                            .weight_decay = 1e-4,
                            .monitor = "loss"},
    .tour = {"epochs=6", "bags=150", "validation_bags=50", "test_bags=200", "filters=8",
             "hidden=64", "rate=0.002", "batch=4"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return run_options.options.integer("windows") > 0 ? make_slides(run_options)
                                                        : make_multiple_instance(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::mil
