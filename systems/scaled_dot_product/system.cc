#include "systems/system.h"

#include "systems/scaled_dot_product/task.h"

namespace fovea::systems::scaled_dot_product {
namespace {

const Registration registered{{
    .info = {.name = "scaled-dot-product",
             .number = 25,
             .title = "Scaled dot-product attention in six steps",
             .idea = "Every word makes a query, a key and a value. A query meets every key in a "
                     "dot product; the products are divided by the root of the "
                     "key's width, made to sum to one, and used to mix the values.\n\nWhy divide: "
                     "with vectors of 64 numbers, two scores like 112 and 96 would go to "
                     "weights 0.9999999 and 0.0000001, and nothing could be learned from the "
                     "loser. Divided by 8 they are 14 and 12, and the weights 0.88 and 0.12.",
             .paper = "Vaswani et al. 2017",
             .equation = R"(o = \operatorname{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V)",
             .code = "// Scaled dot and softmax are the defaults.\n"
                     "auto o = fovea::attend(x.matmul(w_q), x.matmul(w_k), x.matmul(w_v));",
             .triple = {.query = "x_i W^Q",
                        .key = "x_j W^K",
                        .value = "x_j W^V",
                        .score = "q·k/√d_k",
                        .normaliser = "softmax",
                        .structure = "all or causal"},
             .formats = {"generated: sentences in which “it” means the living thing, or "
                         "(meaning=context) what the word after “too” fits",
                         "whom<TAB>sentence with “it”, whom one of its animals (or places) or "
                         "nobody"},
             .expect =
                 "112, 96 → 0.88, 0.12 (by the formula); measured: accuracy and hit rate 1.00"},
    .options = {Option("sentences", 2000, "number of generated sentences").between(50, 1000000),
                Option(
                    "meaning", "living",
                    "what “it” means: the living thing; or what the word after “too” fits, tired "
                    "or wide, which a layer before the six steps has to tell it")
                    .among({"living", "context"}),
                Option("positions", true, "meaning=context: words know where they stand"),
                Option("width", 64, "width of a word vector").between(1, 4096),
                Option("key_width", 64, "d_k, the width of a key").between(1, 4096)},
    .recipe =
        train::Recipe{
            .epochs = 12, .batch = 32, .optimiser = "adam", .rate = 0.002, .monitor = "loss"},
    .tour = {"meaning=context", "epochs=30"},
    .make = make_scaled_dot_product,
}};

}  // namespace
}  // namespace fovea::systems::scaled_dot_product
