#include "systems/system.h"

#include "systems/gradient_masking/task.h"

namespace fovea::systems::gradient_masking {
namespace {

const Registration registered{{
    .info =
        {.name = "gradient-masking",
         .number = 10,
         .title = "What attention does to gradients",
         .idea = "An input receives its gradient multiplied by its weight: what is not "
                 "attended to does not change. And the scores' own gradient is "
                 "a(1 − a) times the difference between the inputs: where the choice is made, "
                 "it can no longer be unmade. Attention shields unused "
                 "parts from change, and dead experts stay dead.\n\nThe run here learns with "
                 "two inputs of which the second is never attended to. It "
                 "must not move at all, and does not.",
         .paper = "Ylipää 2020 (lecture)",
         .equation =
             R"(\frac{\partial L}{\partial x_i} = a_i \frac{\partial L}{\partial o}, \quad \frac{\partial L}{\partial e_i} = a_i\, (x_i - o)^\top \frac{\partial L}{\partial o})",
         .code = "auto o = fovea::attend(scores, keys, x, {.score = "
                 "fovea::Location{}});\no.backward(gradient_at_o);\nx.grad();       // a_i * "
                 "gradient_at_o\nscores.grad();  // a_i (x_i - o)·gradient_at_o",
         .triple = {.query = "the scores themselves",
                    .key = "none",
                    .value = "x_1, x_2",
                    .score = "location",
                    .normaliser = "softmax",
                    .structure = "all"},
         .formats = {"none: an exact toy"},
         .expect =
             "measured: largest identity error 6e-16; the unattended input moves by exactly 0"},
    .options = {Option("gap", 800.0,
                       "e_1 - e_2 during training; 800 makes a_2 exactly 0 in double precision")
                    .between(-1e6, 1e6)},
    .recipe =
        train::Recipe{.epochs = 200, .batch = 1, .optimiser = "sgd", .rate = 0.1, .keep = "last"},
    .make = make_gradient_masking,
}};

}  // namespace
}  // namespace fovea::systems::gradient_masking
