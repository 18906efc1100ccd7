#include "systems/system.h"

#include "systems/show_attend_tell/task.h"

namespace fovea::systems::show_attend_tell {
namespace {

const Registration registered{{
    .info =
        {.name = "show-attend-tell",
         .number = 35,
         .title = "Show, attend and tell",
         .idea = "A picture is told in words, and each word has its own look at the picture. The "
                 "decoder's "
                 "state asks which regions matter for the next word. Soft attention reads their "
                 "weighted "
                 "mean; hard attention draws one region and reads nothing else, so that it must be "
                 "trained "
                 "by reward: a draw that made the caption likelier than usual is made likelier "
                 "itself.\n\n"
                 "Without pictures of yours, digits are put on canvases, and a caption says which "
                 "and how "
                 "they stand: \"a seven above a two\". Each digit's place is known, so that one "
                 "can check "
                 "where the model looks when it says its name.",
         .paper = "Xu, Ba, Kiros, Cho, Courville, Salakhutdinov, Zemel & Bengio 2015",
         .equation =
             R"(z_t = \beta_t \sum_i \operatorname{softmax}_i\big(w^\top \tanh(W_a a_i + W_h h_{t-1})\big)\, a_i, \quad h_t = \operatorname{LSTM}([E y_{t-1}; z_t], h_{t-1}), \quad p(y_t) = \operatorname{softmax}(L_o(E y_{t-1} + L_h h_t + L_z z_t)))",
         .code =
             "// beta: the gate. The LSTM reads the word before and what was seen.\n"
             "auto z = beta * fovea::attend(W_h(h), W_a(a), a, {.score = fovea::Additive{w}});\n"
             "h = lstm(torch::cat({E(y), z}, -1), h);",
         .triple = {.query = "decoder state h_{t-1}",
                    .key = "region a_i",
                    .value = "region a_i",
                    .score = "additive",
                    .normaliser = "softmax, or one region drawn from it",
                    .structure = "the picture's regions"},
         .formats =
             {"generated: digits on canvases (pictures=), or MNIST's folder of digits",
              "a folder of PNG or JPEG with captions.tsv, .csv, .json or .jsonl: image and "
              "captions, "
              "Flickr8k's token file, Karpathy's or COCO's JSON",
              "the same with arrays of regions in the place of pictures: regions.npy, "
              "regions.safetensors, regions/IMAGE.npy, or regions.i8 with regions.scale.txt"},
         .expect = "measured: canvases 93.0 % exact, hard attention 92.1 %; Flickr8k, seven "
                   "epochs, three seeds: BLEU-4 19.4; with the mean of the regions 19.2, with the "
                   "picture seen once 18.1"},
    .options =
        {Option(
             "looks", "soft",
             "soft: a weighted mean of the regions; hard: one region; none: the plain mean of all; "
             "start: nothing, the first state alone knows the picture")
             .among({"soft", "hard", "none", "start"}),
         Option("embedding", 128, "width of a word vector").between(1, 8192),
         Option("width", 256, "width of the decoder's state").between(1, 8192),
         Option("attention", 128, "width of the additive score: length of w").between(1, 8192),
         Option("dropout", 0.1, "dropout of word vectors, first state and output").between(0, 0.95),
         Option("coverage", 0.0, "weight of the doubly stochastic penalty; the paper has 1")
             .between(0, 1000),
         Option("target", "one", "sum of a region's weights in the penalty; share: words / regions")
             .among({"one", "share"}),
         Option("reward", 0.03, "hard: weight of the reward").between(0, 1000),
         Option("entropy", 0.002, "hard: weight of the entropy").between(0, 1000),
         Option("side", 42, "pictures are scaled to side x side pixels for the convolutions")
             .between(28, 1024),
         Option("grid", 7, "convolutions: there are grid x grid regions").between(2, 64),
         Option("channels", 64, "convolutions: width of a region's vector").between(1, 4096),
         Option("backbone", "", "folder of MobileNetV2, used instead of the convolutions"),
         Option("pca", "", "file of a projection of the backbone's features"),
         Option("rare", 1, "least count of a word; rarer ones are unknown").between(1, 1000000),
         Option("longest", 40, "largest number of words of a caption").between(1, 1000),
         Option("beam", 4, "width of the beam").between(1, 100),
         Option("alpha", 0.6, "exponent of the beam's length penalty").between(0, 10),
         Option("no_repeat", 0, "length of word sequences that may not repeat; 0: all may")
             .between(0, 100),
         Option("pictures", 4000, "generated: number of training pictures").between(16, 1000000)},
    .recipe = train::Recipe{.epochs = 30,
                            .batch = 32,
                            .optimiser = "adam",
                            .rate = 2e-3,
                            .schedule = "cosine",
                            .clip = 5,
                            .monitor = "bleu"},
    .tour = {"epochs=10", "pictures=1200", "channels=32"},
    .step_work =
        [](const OptionValues& o, const std::string& data) {
          return data.empty() ? recurrent_step(o.integer("batch"), o.integer("width"), 4)
                              : kLargeStep;
        },
    .make = make_show_attend_tell,
}};

}  // namespace
}  // namespace fovea::systems::show_attend_tell
