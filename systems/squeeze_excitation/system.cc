#include "systems/system.h"

#include "systems/picture_task.h"
#include "systems/squeeze_excitation/task.h"

namespace fovea::systems::squeeze_excitation {
namespace {

const Registration registered{{
    .info =
        {.name = "squeeze-excitation",
         .number = 13,
         .title = "Squeeze-and-excitation",
         .idea = "A layer of a convolutional network has channels: one answers to edges, one to "
                 "corners. Which of them matter depends on the picture. Squeeze each channel to "
                 "its mean, let a small net look at all the means, and turn every channel up or "
                 "down by a gate between 0 and 1.\n\nIt is attention over channels that bends the "
                 "common form: gates do not sum to 1 and nothing is summed, each channel reads "
                 "itself alone. Without data of yours, a picture has eight channels with a digit "
                 "in each, and only the one on a brighter ground counts: the gates must find it.",
         .paper = "Hu, Shen & Sun 2018",
         .equation =
             R"(z_c = \frac{1}{HW} \sum_{ij} u_{cij}, \quad s = \sigma(W_2 \operatorname{ReLU}(W_1 z)), \quad x_c = s_c\, u_c)",
         .code = "fovea::nn::SqueezeExcite gate(\n"
                 "    fovea::nn::SqueezeExciteOptions{.channels = 6, .reduction = 3});\n"
                 "auto gated = gate(u);  // u [pictures, 6, height, width]\n"
                 "// Each channel of each picture asks itself alone: its map is the value.\n"
                 "auto score = W2(torch::relu(W1(u.flatten(2).mean(2)))).view({-1, 1, 1});\n"
                 "auto x = fovea::attend(score, torch::ones_like(score), u.view({-1, 1, pixels}),\n"
                 "                       {.score = fovea::Dot{1.0},\n"
                 "                        .normaliser = fovea::Sigmoid{},\n"
                 "                        .structure = fovea::Graph{one_each, itself}});",
         .triple = {.query = "all channels' means z",
                    .key = "channel",
                    .value = "channel's map u_c",
                    .score = "two-layer net",
                    .normaliser = "sigmoid",
                    .structure = "each channel its own (a gate, no sum)"},
         .formats = {"generated: pictures of several channels, one of which counts (inputs=)",
                     "MNIST's or Fashion-MNIST's folder of IDX files",
                     "a folder CLASS/*.png, *.jpg"},
         .expect =
             "measured: generated: the largest gate is that of the channel that counts in all "
             "pictures; Fashion-MNIST 90.4 % with gates, 90.3 % without"},
    .options = joined(
        {Option("gate", "on", "off: the same network without gates, to compare with")
             .among({"on", "off"}),
         Option("channels", 32, "number of channels C of each layer").between(1, 1024),
         Option("layers", 4, "number of convolutions").between(1, 16),
         Option("reduction", 4, "r: a gate has C/r hidden units, at least one").between(1, 1024),
         Option("residual", false, "x + gate(f(x)) from the second layer on"),
         Option("inputs", 8, "generated: number of channels of a picture").between(2, 64)},
        picture_options()),
    .recipe = train::Recipe{.epochs = 5,
                            .batch = 64,
                            .optimiser = "adam",
                            .rate = 2e-3,
                            .schedule = "cosine",
                            .monitor = "loss"},
    .tour = {"epochs=3", "channels=16", "layers=3"},
    .make = make_squeeze_excitation,
}};

}  // namespace
}  // namespace fovea::systems::squeeze_excitation
