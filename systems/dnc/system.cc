#include "systems/system.h"

#include "systems/machines/task.h"
#include "systems/dnc/model.h"
#include "systems/dnc/stories.h"
#include "systems/story_task.h"

namespace fovea::systems::dnc {
namespace {

std::unique_ptr<Task> make(const RunOptions& run_options) {
  const OptionValues& o = run_options.options;
  const nn::DncOptions options{
      .rows = o.integer("rows"),
      .width = o.integer("width"),
      .read_heads = o.integer("read_heads"),
      .hidden = o.integer("hidden"),
      .controller = o.text("controller") == "lstm" ? nn::ControllerKind::kLstm
                                                   : nn::ControllerKind::kFeedForward,
      .usage_gradient = o.text("usage_gradient") == "stopped" ? nn::UsageGradient::kStopped
                                                              : nn::UsageGradient::kWhole};
  if (o.text("task") == "stories") return make_stories_task(run_options, options);
  // A run from before `output` was an option has the paper's.
  const bool reads = o.text("output") == "reads", chosen = o.is_set("output");
  return machines::make_copy_task(
      run_options, [=](int64_t input, int64_t output, machines::Origin origin) {
        nn::DncOptions sized = options;
        sized.input = input;
        sized.output = output;
        sized.output_of = reads && (chosen || origin == machines::Origin::kNew)
                              ? nn::DncOutput::kReads
                              : nn::DncOutput::kControllerAndReads;
        return std::make_shared<Model>(sized);
      });
}

std::vector<std::string> formats() {
  std::vector<std::string> out = machines::formats();
  out.push_back("task=stories: generated (stories=), or the stories that memory-network reads");
  return out;
}

const Registration registered{{
    .info =
        {.name = "dnc",
         .number = 17,
         .title = "Differentiable neural computer",
         .idea = "A memory that is read and written by attention, and keeps its own books. It "
                 "knows which rows are in use, so that a new word finds a free one, and it knows "
                 "in which order rows were written, so that a head can go on from the row it read "
                 "to the next one, or back. Content, order and freedom are mixed by gates that are "
                 "learned. Without data of yours, the task is to repeat a sequence a given "
                 "number of times, and then to stop.",
         .paper = "Graves et al. 2016",
         .equation =
             R"(w^w = g_w \big(g_a\, a + (1 - g_a)\, c^w\big), \quad L_{ij} \leftarrow (1 - w^w_i - w^w_j) L_{ij} + w^w_i p_j, \quad w^r = \pi_1 L^\top w^r_{t-1} + \pi_2\, c^r + \pi_3 L\, w^r_{t-1}, \quad r = \sum_i w^r_i M_i)",
         .code =
             "fovea::nn::DncCell cell(\n"
             "    fovea::nn::DncOptions{.input = 8, .output = 7, .rows = 16, .width = 12});\n"
             "fovea::nn::DncState state = cell->start(/*batch=*/2);\n"
             "for (const at::Tensor& x : words) state = cell(x, state).state;\n"
             "// Content: unit rows, the key's times its strength; with the identity for values "
             "the\n// output is the weights.\n"
             "auto c = fovea::attend(beta * unit_key, unit_rows, identity, {.score = "
             "fovea::Dot{1.0}});",
         .triple = {.query = "read keys, write key",
                    .key = "memory row M_i",
                    .value = "memory row M_i",
                    .score = "β·cosine, allocation, links",
                    .normaliser = "softmax, mixed by gates",
                    .structure = "all rows"},
         .formats = formats(),
         .expect =
             "measured: repeat-copy of 1 to 8 words: ten of ten seeds below 0.1 wrong bits per "
             "sequence; bAbI 10k, tasks 1, 6 and 15 jointly: test errors 2.3, 3.0 and 0.4 % (one "
             "seed)"},
    .options = machines::options_with(
        Option("task", "repeat-copy",
               "repeat a sequence, once or several times, or answer questions about stories")
            .among({"copy", "repeat-copy", "stories"}),
        /*curriculum=*/6,
        joined({Option("rows", 16, "number of rows N of the memory").between(1, 4096),
                Option("width", 12, "width W of a row").between(1, 1024),
                Option("read_heads", 2, "number R of heads that read the memory").between(1, 64),
                Option("hidden", 64, "width of the controller").between(1, 4096),
                Option("controller", "lstm", "network that controls the heads")
                    .among({"lstm", "feed-forward"}),
                Option("output", "reads",
                       "copy, repeat-copy: what the answer is computed from: the controller's "
                       "state and what was read, as in the paper, or what was read alone")
                    .among({"controller+reads", "reads"}),
                Option("usage_gradient", "stopped",
                       "gradient of usage with respect to the write weights; the authors stop it")
                    .among({"stopped", "whole"}),
                Option("line_width", 64, "stories: width of a line's vector").between(1, 4096),
                Option("think", 2, "stories: number of steps between a question and its answer")
                    .between(0, 100)},
               story_options(), "stories: ")),
    .recipe = train::Recipe{.epochs = 10,
                            .batch = 16,
                            .optimiser = "adam",
                            .rate = 5e-3,
                            .schedule = "cosine",
                            .clip = 1},
    .tour = {"bits=4", "longest=4", "repeats=2", "rows=10", "width=8", "hidden=32", "rate=0.01",
             "sequences=12000", "epochs=12", "batch=32", "read_heads=1", "output=controller+reads",
             "curriculum=0"},
    .step_work =
        [](const OptionValues& o, const std::string&) {
          return recurrent_step(o.integer("batch"), o.integer("hidden"), 4);
        },
    .make = make,
}};

}  // namespace
}  // namespace fovea::systems::dnc
