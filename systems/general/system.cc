#include "systems/system.h"

#include "systems/general/task.h"
#include "systems/normaliser_option.h"

namespace fovea::systems::general {
namespace {

const Registration registered{{
    .info =
        {.name = "general",
         .number = 9,
         .title = "The general form f(Q, K, V)",
         .idea = "Most attention mechanisms are three steps: score each query against each key, "
                 "normalise the scores over the keys a query may see, and average the values with "
                 "those weights. Choose a score, a normaliser and a structure, and you have named "
                 "the mechanism.\n\nAny score, any normaliser and any structure can be put in; as "
                 "many values as keys are required, the number of queries is free, and nothing is "
                 "padded. Without data of yours, a memory holds pairs of key and value, and each "
                 "query asks for one of them with a noisy copy of its key.",
         .paper = "the common form",
         .equation =
             R"(o_i = \sum_{j \in N(i)} a_{ij} v_j, \quad a_i = \operatorname{normalise}_{j \in N(i)} \big(\operatorname{score}(q_i, k_j)\big))",
         .code =
             "auto o = fovea::attend(query, key, value,\n"
             "                       {.score = fovea::Additive{weight}, .normaliser = "
             "fovea::Sparsemax{},\n"
             "                        .structure = fovea::Ragged{query_offsets, key_offsets}});",
         .triple = {.query = "any",
                    .key = "any",
                    .value = "any",
                    .score = "any",
                    .normaliser = "any",
                    .structure = "any (ragged here)"},
         .formats =
             {"generated: memories of key-value pairs",
              "JSON Lines {keys, values, queries: lists of rows; asked: the pair of each query}"},
         .expect = "measured: hit rate 1.00 (dot, softmax)"},
    .options = {Option("score", "dot", "score of a query and a key")
                    .among({"dot", "additive", "bilinear", "cosine", "kernel"}),
                normaliser_option(
                    {"sigmoid", "top_k", "uniform"},
                    "how scores become weights; top_k: softmax over the four largest"),
                Option("structure", "all",
                       "which pairs a query sees: all; causal: those up to its own place; window: "
                       "those at most two places from it")
                    .among({"all", "causal", "window"}),
                Option("memories", 3000, "number of generated memories").between(20, 1000000),
                Option("noise", 0.2, "standard deviation of the noise on a query").at_least(0)},
    .recipe =
        train::Recipe{
            .epochs = 30, .batch = 64, .optimiser = "adam", .rate = 0.01, .monitor = "loss"},
    .tour = {"epochs=8"},
    .make = make_general,
}};

}  // namespace
}  // namespace fovea::systems::general
