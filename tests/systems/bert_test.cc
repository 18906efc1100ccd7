// BERT: the encoder, masks, pairs, folders of others, and runs of its three tasks.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "data/files/file.h"
#include "io/write.h"
#include "fovea/nn/bert.h"
#include "systems/bert/documents.h"
#include "systems/bert/folder.h"
#include "systems/bert/masking.h"
#include "systems/bert/model.h"
#include "systems/bert/pairs.h"
#include "systems/bert/sequences.h"
#include "systems/generate.h"
#include "systems/run/export.h"
#include "tests/systems/run/runs.h"
#include "text/wordpiece/learn.h"
#include "text/wordpiece/read.h"
#include "train/run/tensor_file.h"

namespace fovea::systems::bert {
namespace {

text::WordPiece small_pieces() {
  return text::parse_vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\ng\nh\n",
                                "vocab.txt");
}
nn::BertOptions small_sizes() {
  return {.vocabulary = 13, .width = 8, .hidden = 12, .layers = 2, .heads = 2, .context = 16};
}

TEST(Bert, ASequenceOfABatchIsAsIfAlone) {
  torch::manual_seed(3);
  nn::Bert model(small_sizes());
  model->eval();
  const text::WordPiece pieces = small_pieces();
  const Sequences sequences(pieces, 16);
  const Sequence a = sequences.line("a b c"), b = sequences.line("d\te f g h");
  const torch::Tensor both = model(packed({&a, &b}, torch::kCPU)),
                      alone = model(packed(b, torch::kCPU));
  EXPECT_TRUE(torch::allclose(both.slice(0, 5), alone, 1e-5, 1e-6));
  const torch::Tensor weights = model->weights(packed(b, torch::kCPU));
  EXPECT_EQ(weights.sizes(), (std::vector<int64_t>{2, 2, 8, 8}));
  EXPECT_TRUE(torch::allclose(weights.sum(-1), torch::ones({2, 2, 8})));
  const torch::Tensor mean = nn::mean_states(both, torch::tensor({0, 5, 13}, torch::kInt));
  EXPECT_TRUE(torch::allclose(mean[1], alone.mean(0), 1e-5, 1e-6));
}

TEST(Bert, ASequenceLongerThanTheContextIsRefused) {
  nn::Bert model(small_sizes());
  EXPECT_THROW(model(nn::BertInput{
                   torch::zeros({17}, torch::kLong), {}, torch::tensor({0, 17}, torch::kInt)}),
               InvalidArgument);
}

TEST(Bert, SegmentsAndCuts) {
  const text::WordPiece pieces = small_pieces();
  const Sequence pair = Sequences(pieces, 16).line("a b\tc");
  EXPECT_EQ(pair.ids, (std::vector<int64_t>{2, 5, 6, 3, 7, 3}));
  EXPECT_EQ(pair.segments, (std::vector<int64_t>{0, 0, 0, 0, 1, 1}));
  const Sequence cut = Sequences(pieces, 8).line("a a a a a a a\tb b");
  EXPECT_EQ(cut.ids.size(), 8u);
  EXPECT_EQ(cut.cut, 4);
  EXPECT_EQ(Sequences(pieces, 5).line("a b c d e").ids, (std::vector<int64_t>{2, 5, 6, 7, 3}));
}

TEST(Bert, MasksAreChosenAmongWordsAndLabelsAreTheOriginals) {
  const text::WordPiece pieces = small_pieces();
  std::vector<int64_t> ids = {2};
  for (int i = 0; i < 4000; ++i) ids.push_back(5 + i % 8);
  ids.push_back(3);
  data::Random random(1);
  const Masked out = masked(ids, pieces, 0.15, random);
  EXPECT_EQ(out.places.size(), 600u);
  double masks = 0, kept = 0;
  for (size_t i = 0; i < out.places.size(); ++i) {
    const auto at = static_cast<size_t>(out.places[i]);
    EXPECT_EQ(out.labels[i], ids[at]);
    EXPECT_NE(ids[at], 2);
    EXPECT_NE(ids[at], 3);
    masks += out.ids[at] == 4;
    kept += out.ids[at] == ids[at];
  }
  EXPECT_NEAR(masks / 600, 0.8, 0.06);
  EXPECT_NEAR(kept / 600, 0.1 + 0.1 / 8, 0.05);
  EXPECT_EQ(masked({2, 5, 3}, pieces, 0.15, random).places, (std::vector<int64_t>{1}))
      << "at least one";
  EXPECT_TRUE(masked({2, 3}, pieces, 0.15, random).places.empty());
}

TEST(Bert, AFalseNextPartComesFromAnotherDocument) {
  const text::WordPiece pieces = small_pieces();
  const Sentences one = {"a a", "a"}, two = {"b b b"};
  const Pairs pairs({&one, &two}, pieces, 8);
  EXPECT_EQ(pairs.size(), 2);
  data::Random random(5);
  int follows = 0;
  for (int i = 0; i < 400; ++i) {
    const Pairs::Drawn drawn = pairs.draw(0, random);
    follows += drawn.follows;
    EXPECT_EQ(drawn.second[0], drawn.follows ? 5 : 6);
  }
  EXPECT_NEAR(follows, 200, 50);
  EXPECT_THROW(Pairs({&one}, pieces, 8), InvalidArgument);
}

TEST(Bert, SentencesEndAtMarksAndBreaks) {
  EXPECT_EQ(sentences_of("It cost 3.5 dollars. \"Why?\" he said!<br /><br />No end"),
            (Sentences{"It cost 3.5 dollars.", "\"Why?\"", "he said!", "No end"}));
}

class BertRun : public test::Runs {
 protected:
  static std::vector<std::string> small(std::vector<std::string> more = {}) {
    std::vector<std::string> set = {"width=8",  "hidden=8", "layers=1",     "heads=2",
                                    "epochs=1", "batch=16", "documents=60", "judged=40"};
    set.insert(set.end(), more.begin(), more.end());
    return set;
  }
  std::string answer(const std::string& name, const std::string& input,
                     const std::vector<std::string>& set = {}) const {
    systems::Run run = open(base_ / name, "cpu", 0, set);
    std::istringstream lines(input);
    std::ostringstream out;
    predict(run, {lines, "input"}, out);
    return out.str();
  }
  // The files of a folder of others.
  std::string folder(const Written& written) const {
    const auto path = base_ / "folder";
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    for (const auto& [name, bytes] : written.files) io::write_file(path / name, bytes);
    return path.string();
  }
  static Written good() {
    torch::manual_seed(7);
    const BertModel model(small_sizes(), HeadsWanted{.pooler = true, .fill = true, .next = true});
    return folder_files(*model, small_pieces(), {});
  }
};

TEST_F(BertRun, EveryVerbOfEveryTask) {
  train("pretrain", {.system = "bert", .set = small()});
  check_every_verb("pretrain", "she works in the [MASK] .\n");
  check_blank_line("pretrain", "a [MASK]\n");
  train("classify", {.system = "bert", .set = small({"task=classify"})});
  check_every_verb("classify", "she works in the bakery .\n");
  train("span", {.system = "bert", .set = small({"task=span"})});
  check_every_verb("span", "where is she ?\tshe is in the bakery .\n");
  EXPECT_NE(said([&] { answer("span", "one column\n"); }).find("expected question and context"),
            std::string::npos);
  EXPECT_NE(said([&] { answer("pretrain", "no place\n"); }).find("no [MASK]"), std::string::npos);
}

TEST_F(BertRun, LearnsWordsAndNeverAnswersASpecialPiece) {
  const Json report = train("run", {.system = "bert",
                                    .set = {"epochs=6", "documents=1500", "layers=1", "dropout=0",
                                            "rate=0.005", "warmup=20"}});
  EXPECT_GE(report["metrics"]["mlm_accuracy"].get<double>(), 0.4);
  const std::string all =
      answer("run", "anna is a baker .\t[MASK] works in the [MASK] .\n", {"guesses=1000"});
  EXPECT_NE(all.find(" | "), std::string::npos);
  EXPECT_EQ(all.find('['), std::string::npos) << "no [MASK] among the answers";
}

TEST_F(BertRun, WeightsLeaveAsAFolderAndComeBack) {
  train("run", {.system = "bert", .set = small()});
  const systems::Run run = open(base_ / "run");
  export_run(run, base_ / "folder", false);
  EXPECT_THROW(export_run(run, base_ / "folder", false), UsageError) << "it is there already";
  const std::string from = "folder=" + (base_ / "folder").string();
  train("again", {.system = "bert", .set = {from, "epochs=0", "documents=60"}});
  const std::string line = "anna is a [MASK] .\n";
  EXPECT_EQ(answer("again", line), answer("run", line));
  EXPECT_EQ(answer("again", line, {"answer=embed"}), answer("run", line, {"answer=embed"}));
  // Fine-tuned from it, and with the same sizes from nothing.
  for (const char* more : {"fresh=false", "fresh=true"}) {
    train("tuned", {.system = "bert",
                    .set = {from, "task=classify", "epochs=1", "documents=60", more},
                    .overwrite = true});
    EXPECT_NE(answer("tuned", "she works in the bakery .\n").find('\t'), std::string::npos);
  }
  EXPECT_NE(said([&] {
              train("x", {.system = "bert", .set = {from, "width=8"}});
            }).find("width: given with a folder"),
            std::string::npos);
}

TEST_F(BertRun, WhatIsWrongWithAFolderIsNamed) {
  const auto refused = [&](const std::function<void(Written&)>& change) {
    Written written = good();
    change(written);
    const std::string path = folder(written);
    return said([&] { read_folder(path); });
  };
  const auto config = [&](const std::string& name, const Json& value) {
    return refused([&](Written& w) {
      Json all = Json::parse(w.files["config.json"]);
      all[name] = value;
      w.files["config.json"] = all.dump();
    });
  };
  const auto tensors = [&](const std::function<void(fovea::train::TensorFile&)>& change) {
    return refused([&](Written& w) {
      auto file = fovea::train::parse_tensors(w.files["model.safetensors"], "m");
      change(file);
      w.files["model.safetensors"] = fovea::train::tensor_bytes(file);
    });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_NO_THROW(read_folder(folder(good())));
  has(config("model_type", "distilbert"), "config.json: model_type: 'distilbert', expected bert");
  has(config("hidden_act", "swish"), "hidden_act: 'swish', expected gelu");
  has(config("position_embedding_type", "relative_key"), "expected absolute");
  has(config("is_decoder", true), "is_decoder: true");
  has(config("num_attention_heads", 3), "num_attention_heads: 3, expected a divisor");
  for (const double epsilon : {-3.0, 0.0, 1e300})
    has(config("layer_norm_eps", epsilon), "expected above 0 to 1");
  has(config("vocab_size", 12), "vocab_size: 12, expected at least 13");
  has(config("hidden_size", 1 << 20), "shape [13, 8], expected [13, 1048576]");
  has(config("num_hidden_layers", 3), "no tensor 'bert.encoder.layer.2.");
  has(tensors([](auto& f) { f.tensors.erase("bert.encoder.layer.1.output.dense.bias"); }),
      "model.safetensors: no tensor 'bert.encoder.layer.1.output.dense.bias'");
  has(tensors([](auto& f) {
        f.tensors["bert.encoder.layer.0.attention.self.key.weight"] = torch::zeros({8, 4});
      }),
      "'bert.encoder.layer.0.attention.self.key.weight': shape [8, 4], expected [8, 8]");
  has(tensors([](auto& f) { f.tensors["bert.pooler.dense.bias"].fill_(NAN); }), "not finite");
  has(refused([](Written& w) {
        std::string& text = w.files["tokenizer.json"];
        text.replace(text.find("BertPreTokenizer"), 16, "ByteLevel");
      }),
      "pre_tokenizer: 'ByteLevel'");
  has(refused([](Written& w) { w.files.erase("model.safetensors"); }), "model.safetensors");
  for (const auto& [name, what] : {std::pair("pytorch_model.bin", "a pickle, which may run code"),
                                   {"model.safetensors.index.json", "weights in several files"}})
    has(refused([name = name](Written& w) {
          w.files[name] = "{}";
          w.files.erase("model.safetensors");
        }),
        std::string(name) + ": " + what + ", expected model.safetensors");
  has(refused([](Written& w) { w.files.erase("tokenizer.json"), w.files.erase("vocab.txt"); }),
      "neither tokenizer.json nor vocab.txt");
}

TEST_F(BertRun, AFolderWithoutAHeadDoesWhatItCan) {
  const BertModel model(small_sizes(), HeadsWanted{});
  const std::string path = folder(folder_files(*model, small_pieces(), {}));
  train("run", {.system = "bert", .set = {"folder=" + path, "epochs=0", "documents=60"}});
  EXPECT_EQ(std::ranges::count(answer("run", "a b\n"), ' '), 7) << "eight numbers";
  EXPECT_NE(said([&] { answer("run", "a [MASK]\n", {"answer=fill"}); }).find("no head that fills"),
            std::string::npos);
  check_every_verb("run", "a b\n");
}

TEST_F(BertRun, OldNamesOfNormsAreRead) {
  Written written = good();
  auto file = fovea::train::parse_tensors(written.files["model.safetensors"], "m");
  fovea::train::TensorFile old;
  for (auto& [name, tensor] : file.tensors) {
    std::string was = name;
    if (was.ends_with("LayerNorm.weight")) was.replace(was.size() - 6, 6, "gamma");
    if (was.ends_with("LayerNorm.bias")) was.replace(was.size() - 4, 4, "beta");
    old.tensors[was] = tensor;
  }
  written.files["model.safetensors"] = fovea::train::tensor_bytes(old);
  EXPECT_EQ(read_folder(folder(written)).weights.size(),
            read_folder(folder(good())).weights.size());
}

TEST_F(BertRun, OneDocumentCannotGiveFalsePairs) {
  std::ofstream(base_ / "one.txt") << "Only one. Document here.\n";
  EXPECT_NE(said([&] {
              train("run", {.system = "bert", .data = (base_ / "one.txt").string()});
            }).find("1 document, expected at least 2"),
            std::string::npos);
}

TEST_F(BertRun, DocumentsAreLinesOrStandBetweenBlankLines) {
  std::ofstream(base_ / "lines.tsv") << "7\tid\tOne. Two.\n3\tid\tThree. Four.\n";
  std::ofstream(base_ / "parted.txt") << "One.\nTwo.\n\nThree.\n";
  const Documents lines =
      read_documents({.path = (base_ / "lines.tsv").string(), .all_test = true}, {});
  EXPECT_EQ(lines.texts, (std::vector<Sentences>{{"One.", "Two."}, {"Three.", "Four."}}));
  const Documents first =
      read_documents({.path = (base_ / "lines.tsv").string(), .all_test = true}, {.column = 1});
  EXPECT_EQ(first.texts, (std::vector<Sentences>{{"7"}, {"3"}}));
  const Documents parted =
      read_documents({.path = (base_ / "parted.txt").string(), .all_test = true}, {});
  EXPECT_EQ(parted.texts, (std::vector<Sentences>{{"One.", "Two."}, {"Three."}}));
}

TEST_F(BertRun, AFactOutOfRangeIsNamed) {
  const Json facts = facts_of(small_sizes(), {});
  EXPECT_NO_THROW(sizes_from(facts));
  for (const auto& [name, value] :
       {std::pair("dropout", -3.0), {"attention_dropout", 1e300}, {"epsilon", -3.0}}) {
    Json other = facts;
    other[name] = value;
    EXPECT_NE(said([&] { sizes_from(other); }).find(std::string("config.json: facts.") + name),
              std::string::npos);
  }
}

}  // namespace
}  // namespace fovea::systems::bert
