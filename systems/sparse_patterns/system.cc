#include "systems/system.h"

#include "systems/sparse_patterns/pattern.h"
#include "systems/sparse_patterns/task.h"

namespace fovea::systems::sparse_patterns {
namespace {

const Registration registered{System{
    .info =
        {.name = "sparse-patterns",
         .number = 32,
         .title = "Sparse patterns",
         .idea = "In full attention each of n positions looks at all others: n² pairs. Give each "
                 "only about √n of them instead: its neighbours, and every √n-th before it. In a "
                 "picture read row by row these are the pixels to the left and the pixels above. "
                 "Two such steps still reach everything, and the cost falls to n√n.\n\nThe task: "
                 "pictures of black and white pixels, each pixel predicted from those before it.",
         .paper = "Child, Gray, Radford & Sutskever 2019",
         .equation =
             R"(o_i = \sum_{j \in S_i} \operatorname{softmax}_{j \in S_i}\big(q_i^\top k_j / \sqrt{d}\big)\, v_j, \quad S_i = \{j \le i \;:\; i - j \le l \;\text{ or }\; (i - j) \bmod l = 0\}, \quad l \approx \sqrt{n})",
         .code =
             "auto strided = fovea::attend(query, key, value, {.structure = fovea::Strided{14}});\n"
             "auto fixed = fovea::attend(query, key, value, {.structure = fovea::Fixed{14, 2}});\n"
             "auto local = fovea::attend(query, key, value, {.structure = fovea::Window{14, 0}});",
         .triple = {"x_i W^Q", "x_j W^K", "x_j W^V", "scaled dot", "softmax per head",
                    "strided, fixed, local, block"},
         .formats = {"generated digits", "MNIST's or Fashion-MNIST's folder of IDX files",
                     "a folder CLASS/*.png, *.jpg"},
         .expect = "measured: MNIST, 14 x 14, 1,500 pictures, 3 epochs: strided 0.292 bits per "
                   "pixel, dense 0.313"},
    .options =
        {Option("pattern", "strided", "which positions a position sees").among(kKinds.names()),
         Option("combination", "merge",
                "the pattern's two parts in each head, in layers in turn, or in one half of "
                "the heads each")
             .among(kCombinations.names()),
         Option("side", 14, "number of rows, and of columns, of a picture").between(2, 256),
         Option("stride", 0, "l; 0: the side of the picture").between(0, 65536),
         Option("summary", 2, "fixed: c, number of positions of each block that all later ones see")
             .between(1, 65536),
         Option("global", 14, "block: number of positions at the beginning that all see")
             .between(0, 65536),
         Option("pictures", 4000, "largest number of training pictures").between(1, 10'000'000),
         Option("test_pictures", 500, "largest number of validation pictures, and of test pictures")
             .between(1, 10'000'000),
         Option("width", 64, "width of the model").between(1, 4096),
         Option("heads", 4, "number of heads; must divide the width").between(1, 256),
         Option("hidden", 256, "width of the feed-forward nets").between(1, 65536),
         Option("layers", 2, "number of layers").between(1, 128),
         Option("sample_seed", 1, "seed of the pixels that are drawn")
             .at_least(0)
             .during({Use::kPredict, Use::kExplain})},
    .recipe = train::Recipe{.epochs = 6,
                            .batch = 16,
                            .optimiser = "adamw",
                            .rate = 2e-3,
                            .weight_decay = 0.01,
                            .schedule = "cosine",
                            .warmup = 100,
                            .clip = 1.0},
    .tour = {"epochs=2", "pictures=1000", "test_pictures=100"},
    .make = make_sparse_patterns,
}};

}  // namespace
}  // namespace fovea::systems::sparse_patterns
