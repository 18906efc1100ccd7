#include "systems/system.h"

#include "systems/memory_network/task.h"
#include "systems/story_task.h"

namespace fovea::systems::memory_network {
namespace {

const Registration registered{{
    .info =
        {.name = "memory-network",
         .number = 15,
         .title = "Memory networks",
         .idea = "A question about a story is answered in hops. Each hop scores every line of the "
                 "story against what is known so far, reads the lines in that share, and adds what "
                 "it read to the question. So one hop can find who took a thing, and the next one "
                 "where that person went. Only answers are taught; which lines matter is "
                 "found.\n\nWithout stories of yours, some are made up, of persons who move and "
                 "take things: half of the questions rest on one line, half on two.",
         .paper = "Sukhbaatar, Szlam, Weston & Fergus 2015; Weston, Chopra & Bordes 2015",
         .equation =
             R"(u^{k+1} = u^k + \sum_i \operatorname{softmax}_i\big((u^k)^\top m_i\big)\, c_i, \quad m_i = \sum_j l_j \odot A x_{ij} + T_A(i), \quad \hat a = \operatorname{softmax}(W u^{K+1}))",
         .code =
             "fovea::nn::Memory memory(fovea::nn::MemoryOptions{.words = 40, .width = 20, .hops = "
             "3});\n"
             "auto stories = fovea::nn::pack_stories(asked, {.slots = 50}).stories;\n"
             "auto answers = memory->forward(stories);  // scores of each word\n"
             "// Each hop is attention with one query a story:\n"
             "auto o = fovea::attend(u, m, c,\n"
             "                       {.score = fovea::Dot{1.0},\n"
             "                        .structure = fovea::Ragged{one_each, offsets}});",
         .triple = {.query = "question and what was read",
                    .key = "line m_i",
                    .value = "line c_i",
                    .score = "dot",
                    .normaliser = "softmax",
                    .structure = "the story's lines, K hops"},
         .formats = {"generated: questions that rest on one line or two (stories=)",
                     "a folder of bAbI's files NAME_train.txt, NAME_test.txt (tasks=qa1,qa2: some "
                     "of them)",
                     "a file in bAbI's form: `number statement`, `number question<TAB>answer<TAB>"
                     "supporting numbers`",
                     "JSON Lines {story, question, answer, supporting_lines}"},
         .expect = "measured: generated stories 0 % error; bAbI 1k jointly, best of ten by "
                   "validation, 12.3 % mean error"},
    .options = joined(
        {Option("hops", 3, "number of times the story is read").between(1, 32),
         Option("width", 20, "width of a line's vector; the authors use 50 for all tasks together")
             .between(1, 4096),
         Option("slots", 50, "number of lines in the memory; the newest are kept")
             .between(1, 100000),
         Option("tying", "adjacent", "which weights hops share").among({"adjacent", "layer_wise"}),
         Option("encoding", "position",
                "weights of a line's words by position; centred: around 1; fixed: the same, "
                "whatever the line's length; bag: all 1, so the order is lost")
             .among({"position", "centred", "fixed", "bag"}),
         Option("longest", 12, "encoding=fixed: number of words of the longest line")
             .between(1, 10000),
         Option("empty_slots", "masked",
                "whether slots without a line take their share of the weights, as in the authors' "
                "program")
             .among({"masked", "weighed"}),
         Option("training", "end_to_end",
                "supervised: each hop is trained on a supporting line, and reads one line")
             .among({"end_to_end", "supervised"}),
         Option("linear_start", true, "no softmax in the hops until validation no longer improves"),
         Option("linear_epochs", 0,
                "number of epochs of the linear start; 0: until validation no longer improves")
             .between(0, 100000),
         Option("linear_rate", 0.5, "factor on the rate during the linear start").between(0, 1),
         Option("noise", 0.1, "probability of an empty line before each line, in training")
             .between(0, 0.9),
         Option("noise_kind", "lines",
                "lines: noise inserts empty lines; gaps: it skips ages between lines, at most that "
                "share of them, as in the authors' program")
             .among({"lines", "gaps"})},
        story_options()),
    // The authors sum the loss of a batch of 32 where we take its mean: their rate of 0.01 is 0.32
    // here, their clipping at 40 is 1.25.
    .recipe = train::Recipe{.epochs = 100,
                            .batch = 32,
                            .optimiser = "sgd",
                            .rate = 0.32,
                            .schedule = "step",
                            .decay = 0.5,
                            .decay_every = 25,
                            .clip = 1.25,
                            .monitor = "error"},
    .tour = {"epochs=30", "stories=2000"},
    .step_work =
        [](const OptionValues& o, const std::string&) {
          return static_cast<double>(o.integer("batch") * o.integer("slots") * o.integer("width"));
        },
    .make = make_memory_network,
}};

}  // namespace
}  // namespace fovea::systems::memory_network
