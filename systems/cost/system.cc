// Cost: self-attention O(n²d) with paths of length 1, recurrence O(nd²) with paths of length n,
// convolution O(knd²) with n/k. Nothing is learned: `train` measures all three on this machine, and
// the picture puts the measured crossing beside the predicted one.
#include "systems/system.h"

#include "systems/cost/task.h"

namespace fovea::systems::cost {
namespace {

const Registration registered{{
    .info =
        {.name = "cost",
         .number = 34,
         .title = "What attention costs",
         .idea =
             "Attention compares every item with every other: 4n²d operations, and any two "
             "items are one step apart. A recurrent layer takes 16nd² and "
             "passes a message along n steps. Counting these operations, without "
             "projections, attention is the cheaper while n is below 4d.\n\nOn a machine "
             "the crossing lies elsewhere, "
             "because the steps of a recurrence must wait for one another while attention "
             "is two large products. This system measures both.\n\nCost is not all: in attention "
             "any two items are one step apart however long the text is, nothing has to be "
             "kept in a state of fixed size (the memory is the sequence itself, without "
             "bound), and items are compared with each other, so that what repeats is "
             "found (self-similarity).",
         .paper = "Vaswani et al. 2017, Table 1",
         .equation = R"(4 n^2 d < 16 n d^2 \iff n < 4d)",
         .code = "auto o = fovea::attend(x, x, x);  // [1, 1, n, d]; the n × n weights are "
                 "never stored",
         .triple = {.query = "x",
                    .key = "x",
                    .value = "x",
                    .score = "scaled dot",
                    .normaliser = "softmax",
                    .structure = "all"},
         .formats = {"none: it measures this machine"},
         .expect = "by the formulas, n = d = 1000: 4·10⁹ operations for attention, 16·10⁹ for "
                   "an LSTM; crossing at n = 4d"},
    .options = {Option("sweep", "n", "what grows from point to point: the length n or the width d")
                    .among({"n", "d"}),
                Option("d", "64", "sweep=n: width of an item, or several by commas: 64,512,1024"),
                Option("n", 512, "sweep=d: length of the sequence").between(1, 65536),
                Option("k", 3, "width of the convolution's kernel, odd").between(1, 31),
                Option("smallest", 32, "what n or d starts from").between(1, 65536),
                Option("largest", 4096, "what n or d ends with, by doubling").between(2, 65536),
                Option("seconds", 0.2, "seconds for each measurement").between(0, 60)},
    .tour = {"d=64,512,1024", "largest=1024", "seconds=0.03"},
    .make = make_cost,
}};

}  // namespace
}  // namespace fovea::systems::cost
