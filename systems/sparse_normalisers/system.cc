#include "systems/system.h"

#include "systems/sparse_normalisers/task.h"

namespace fovea::systems::sparse_normalisers {
namespace {

const Registration registered{{
    .info =
        {.name = "sparse-normalisers",
         .number = 33,
         .title = "Sparse normalisers",
         .idea =
             "Softmax gives every key some weight, however badly it scores. Sparsemax projects the "
             "scores onto the simplex instead, and most weights become exactly zero; entmax lies "
             "between the two. A weight that is zero says: this was not read.\n\nWhat does it "
             "cost? "
             "Systems are trained under each of the three, and stand in one table: their figure, "
             "the share of exact zeros, and how often the largest weight is where it should be.",
         .paper = "Martins & Astudillo 2016; Peters, Niculae & Martins 2019",
         .equation =
             R"(\operatorname{sparsemax}(e) = \operatorname{argmin}_{a \in \Delta} \lVert a - e \rVert^2 = [e - \tau]_+, \quad \operatorname{entmax}_{1.5}(e) = [e / 2 - \tau]_+^2)",
         .code = "auto o = fovea::attend(query, key, value, {.normaliser = fovea::Sparsemax{}});\n"
                 "auto loss = fovea::nn::fenchel_young_loss(scores, classes, fovea::Entmax{1.5});",
         .triple = {.query = "any",
                    .key = "any",
                    .value = "any",
                    .score = "any",
                    .normaliser = "sparsemax, entmax",
                    .structure = "any"},
         .formats = {"none: the systems it trains generate their own"},
         .expect = "measured on five systems, short trainings: 64 and 66 % exact zeros, hit rates "
                   "at least "
                   "those of softmax; by hand: scores 1, ½, −1 have the sparsemax weights ¾, ¼, 0"},
    .options = {Option("systems", "mil,fixed-attention,hierarchical,gat,bahdanau",
                       "systems to train under each normaliser, separated by commas"),
                Option("effort", "tour",
                       "tour: as the tour trains them; whole: as fovea train does")
                    .among({"tour", "whole"})},
    .tour = {"systems=gat"},
    .make = make_sparse_normalisers,
}};

}  // namespace
}  // namespace fovea::systems::sparse_normalisers
