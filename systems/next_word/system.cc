#include "systems/system.h"

#include "systems/next_word/task.h"
#include "systems/transformer_work.h"

namespace fovea::systems::next_word {
namespace {

std::vector<Option> options() {
  const std::vector<Use> writing = {Use::kPredict};
  std::vector<Option> all = {
      Option("sentences", 4000, "number of generated sentences").between(10, 10'000'000),
      Option("document", "line",
             "what a text is: one line, or all lines of the file, cut into contexts")
          .among({"line", "file"}),
      Option("tokens", "words", "units of the text").among({"words", "characters", "pieces"}),
      Option("vocabulary", 8000, "largest number of words, or the number of pieces; 0: all words")
          .between(0, 1'000'000),
      Option("min_count", 1, "words seen fewer times have no token").between(1, 1'000'000),
      Option("width", 32, "width of the model").between(1, 8192),
      Option("hidden", 64, "width of the feed-forward nets").between(1, 65536),
      Option("layers", 2, "number of layers").between(1, 128),
      Option("heads", 4, "number of heads of queries; must divide the width").between(1, 256),
      Option("key_heads", 2, "number of heads of keys and values; must divide `heads`; 0: as many")
          .between(0, 256),
      Option("context", 128, "largest number of tokens that the model sees").between(1, 1'048'576),
      Option("norm", "rms", "norm before each sublayer").among({"rms", "layer"}),
      Option("positions", "rotary", "rotations of queries and keys, or vectors that are learned")
          .among({"rotary", "learned"}),
      Option("tie", true, "the output layer is the embedding"),
      Option("dropout", 0.1, "dropout of embeddings and of what layers add").between(0, 0.9),
      Option("checkpoint", "",
             "a llama2.c checkpoint (version 0) to start from; --epochs 0 takes it as it is"),
      Option("tokenizer", "", "the llama2.c tokenizer of the checkpoint"),
      Option("length", 64, "largest number of tokens to write")
          .between(0, 1'000'000)
          .during(writing),
      Option("temperature", 0.0, "temperature of the draws; 0: always the likeliest token")
          .between(0, 100)
          .during(writing),
      Option("top_k", 0, "draw among this many of the likeliest tokens; 0: all")
          .between(0, 1'000'000)
          .during(writing),
      Option("top_p", 1.0, "draw among the likeliest tokens that together have this probability")
          .between(0, 1)
          .during(writing),
      Option("sample_seed", 1, "seed of the draws; each line starts from it")
          .at_least(0)
          .during(writing),
      Option("raw", false, "write line ends of an answer as they are, not as \\n").during(writing),
      Option("speed", false, "also print how many tokens were written per second").during(writing)};
  return all;
}

const Registration registered{System{
    .info =
        {.name = "next-word",
         .number = 38,
         .title = "Next word",
         .idea =
             "She waited for the ___: which earlier words decide what comes next? A causal "
             "Transformer reads a text from its beginning. Each word looks at those before it, "
             "and the last one's state says what follows. Queries and keys are turned by their "
             "positions, so that a score depends on the distance. Several heads of queries "
             "share one head of keys, and a cache keeps the keys and values of what was read: a "
             "step computes one position only.",
         .paper = "Radford et al. 2018; Su et al. 2021 (rotary positions); Zhang & Sennrich 2019 "
                  "(RMS norm); Ainslie et al. 2023 (grouped heads)",
         .equation =
             R"(o_i = \sum_{j \le i} \operatorname{softmax}_j\big((R_i q_i)^\top (R_j k_j) / \sqrt{d}\big)\, v_j, \quad (R_i q)^\top (R_j k) = q^\top R_{j-i}\, k)",
         .code = "auto o = fovea::attend(fovea::nn::rotary(query), fovea::nn::rotary(key), value,\n"
                 "                       {.structure = fovea::Causal{}});\n"
                 "auto next = fovea::attend(fovea::nn::rotary(last, 4), fovea::nn::rotary(key), "
                 "value,\n"
                 "                          {.structure = fovea::Causal{}}, {.query_offset = 4});",
         .triple = {"x_i W^Q, turned", "x_j W^K, turned", "x_j W^V", "scaled dot",
                    "softmax per head", "causal, with a cache"},
         .formats = {"generated sentences whose last word an earlier one decides",
                     "a text file: one document on each line, or one text (document=file)",
                     "a folder of train.txt, val.txt, test.txt",
                     "checkpoint=, tokenizer=: llama2.c's files"},
         .expect =
             "measured: the last word 100 %, attention on the word that decides 99 %; stories260K: "
             "the greedy text of llama2.c, letter for letter"},
    .options = options(),
    .recipe = train::Recipe{.epochs = 8,
                            .batch = 32,
                            .rate = 4e-3,
                            .schedule = "cosine",
                            .warmup = 50,
                            .clip = 1.0},
    .tour = {"epochs=12"},
    .step_work = transformer_work(9),
    .make = make_next_word,
}};

}  // namespace
}  // namespace fovea::systems::next_word
