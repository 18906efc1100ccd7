#include "systems/system.h"

#include "systems/machines/task.h"
#include "systems/ntm/model.h"

namespace fovea::systems::ntm {
namespace {

std::unique_ptr<Task> make(const RunOptions& run_options) {
  const OptionValues& o = run_options.options;
  const nn::NtmOptions options{.rows = o.integer("rows"),
                               .width = o.integer("width"),
                               .read_heads = o.integer("read_heads"),
                               .write_heads = o.integer("write_heads"),
                               .shift = o.integer("shift"),
                               .hidden = o.integer("hidden"),
                               .controller = o.text("controller") == "lstm"
                                                 ? nn::ControllerKind::kLstm
                                                 : nn::ControllerKind::kFeedForward};
  return machines::make_copy_task(run_options,
                                  [options](int64_t input, int64_t output, machines::Origin) {
                                    nn::NtmOptions sized = options;
                                    sized.input = input;
                                    sized.output = output;
                                    return std::make_shared<Model>(sized);
                                  });
}

const Registration registered{{
    .info =
        {.name = "ntm",
         .number = 17,
         .title = "Neural Turing machine",
         .idea =
             "Attention that writes. A network has a memory of rows, and heads that say, by what a "
             "row holds and by where it lies, how much of each row to read, and how much of it to "
             "overwrite. All of it has gradients. So it learns from examples alone to copy: to "
             "put each word into the next row, to go back to the first, and to read the rows in "
             "order. Sequences up to twice as long as any it has seen it copies with few wrong "
             "bits, though seldom with none.",
         .paper = "Graves, Wayne & Danihelka 2014",
         .equation =
             R"(c_i = \operatorname{softmax}_i\big(\beta \cos(k, M_i)\big), \quad w \propto \big(s * (g\, c + (1 - g)\, w_{t-1})\big)^\gamma, \quad r = \sum_i w_i M_i, \quad M \leftarrow M \odot (1 - w e^\top) + w a^\top)",
         .code = "fovea::nn::NtmCell cell(\n"
                 "    fovea::nn::NtmOptions{.input = 7, .output = 6, .rows = 16, .width = 12});\n"
                 "fovea::nn::NtmState state = cell->start(/*batch=*/2);\n"
                 "for (const at::Tensor& x : words) state = cell(x, state).state;\n"
                 "// A read is attention with the weights given, over rows of the memory:\n"
                 "auto r = fovea::attend(w, M, M,\n"
                 "                       {.score = fovea::Location{}, .normaliser = "
                 "fovea::Unnormalised{}});",
         .triple = {.query = "key of each head, k",
                    .key = "memory row M_i",
                    .value = "memory row M_i",
                    .score = "β·cosine, then shifted",
                    .normaliser = "softmax, sharpened",
                    .structure = "all rows"},
         .formats = machines::formats(),
         .expect = "measured: copy of 1 to 8 words of 6 bits: at most 0.19 wrong bits on 8 words, "
                   "ten seeds, none in nine of them; 0 to 4.8 on 9 to 16 words"},
    .options = machines::options_with(
        Option("task", "copy", "repeat a sequence, once or several times")
            .among({"copy", "repeat-copy"}),
        /*curriculum=*/0,
        {Option("rows", 16, "number of rows N of the memory").between(1, 4096),
         Option("width", 12, "width W of a row").between(1, 1024),
         Option("read_heads", 1, "number of heads that read the memory").between(1, 64),
         Option("write_heads", 1, "number of heads that write the memory").between(1, 64),
         Option("shift", 1, "largest number of rows that a head moves in a step").between(0, 64),
         Option("hidden", 64, "width of the controller").between(1, 4096),
         Option("controller", "lstm", "network that controls the heads")
             .among({"lstm", "feed-forward"})}),
    .recipe = train::Recipe{.epochs = 8,
                            .batch = 32,
                            .optimiser = "adam",
                            .rate = 3e-3,
                            .schedule = "cosine",
                            .clip = 1},
    .tour = {"bits=4", "longest=4", "rows=8", "hidden=32", "rate=0.01", "sequences=8000",
             "epochs=14"},
    .step_work =
        [](const OptionValues& o, const std::string&) {
          return recurrent_step(o.integer("batch"), o.integer("hidden"), 4);
        },
    .make = make,
}};

}  // namespace
}  // namespace fovea::systems::ntm
