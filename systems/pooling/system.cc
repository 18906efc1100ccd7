#include "systems/system.h"

#include "systems/pooling/task.h"

namespace fovea::systems::pooling {
namespace {

const Registration registered{{
    .info =
        {.name = "pooling",
         .number = 2,
         .title = "Sum, mean and max pooling",
         .idea = "The oldest way to turn a bag of things into one vector: add them, average "
                 "them, or take the largest of each coordinate. "
                 "It is attention with the looking left out: every item gets the same weight, "
                 "or the winner gets all.\n\nSum grows with the "
                 "number of items and can count them; mean forgets the number; max sees only "
                 "the extremes. An empty bag gives zero, never 0/0.",
         .paper = "classical",
         .equation =
             R"(o = \sum_i \varphi(x_i), \quad o = \frac{1}{n} \sum_i \varphi(x_i), \quad o_c = \max_i \varphi(x_i)_c)",
         .code =
             "auto sum  = fovea::attend(blank, x, x,\n"
             "                          {.score = fovea::Constant{},\n"
             "                           .normaliser = fovea::Unnormalised{}, .structure = bag});\n"
             "auto mean = fovea::attend(blank, x, x,\n"
             "                          {.score = fovea::Constant{},\n"
             "                           .normaliser = fovea::Uniform{}, .structure = bag});\n"
             "auto max  = fovea::attend(one, x_c, x_c,\n"
             "                          {.score = fovea::Dot{1.0},\n"
             "                           .normaliser = fovea::Hard{}, .structure = bag});",
         .triple = {.query = "none",
                    .key = "none",
                    .value = "φ(x)",
                    .score = "constant",
                    .normaliser = "none, uniform or argmax",
                    .structure = "all"},
         .formats = {"generated: bags of points and a question (question=many, right or far)",
                     "CSV bag,label,f0,f1,… with labels 0 and 1, or no and yes"},
         .expect = "measured: the pooling that fits the question 98 to 100 %: sum for many, mean "
                   "for right, max for far"},
    .options =
        {Option("pool", "sum",
                "how a bag becomes one vector; context: attention whose query is made from the "
                "bag's mean")
             .among({"sum", "mean", "max", "attention", "context"}),
         Option("question", "many",
                "generated bags: are there many points, do they lie to the right, is one far out?")
             .among({"many", "right", "far"}),
         Option("bags", 3000, "number of generated bags").between(20, 1000000),
         Option("width", 16, "width of φ(x)").between(1, 1024)},
    .recipe =
        train::Recipe{
            .epochs = 30, .batch = 64, .optimiser = "adam", .rate = 0.01, .monitor = "loss"},
    .tour = {"epochs=15"},
    .make = make_pooling,
}};

}  // namespace
}  // namespace fovea::systems::pooling
