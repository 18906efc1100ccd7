// Next word: foreign checkpoints, prompts of any length, documents of any number, every verb.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>

#include "data/formats/llama2c.h"
#include "systems/generate.h"
#include "systems/next_word/documents.h"
#include "systems/next_word/sampling.h"
#include "systems/next_word/sentences.h"
#include "systems/next_word/tokens.h"
#include "systems/run/export.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::next_word {
namespace {

data::Array numbers(std::vector<int64_t> shape, data::Random& random) {
  data::Array out{data::ElementType::kFloat32, std::move(shape), {}};
  for (size_t i = 0; i < *data::byte_count(out.type, out.shape) / sizeof(float); ++i) {
    const auto value = static_cast<float>(random.normal() * 0.3);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out.bytes.append(raw, sizeof raw);
  }
  return out;
}

data::Llama2cTokens small_tokens() {
  data::Llama2cTokens out{{"<unk>", "\n<s>\n", "\n</s>\n"}, {0, 0, 0}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    out.pieces.emplace_back(name);
    out.scores.push_back(0);
  }
  float score = 0;
  for (const char* piece : {"ab", "bc", " a", "abc", " abc", " ", "a", "b", "c", "é", "\n"}) {
    out.pieces.emplace_back(piece);
    out.scores.push_back(score -= 1);
  }
  return out;
}

data::Llama2c small_checkpoint(bool own_output = false) {
  data::Random random(1);
  data::Llama2c c{.width = 8,
                  .hidden = 6,
                  .layers = 2,
                  .heads = 4,
                  .key_heads = 2,
                  .vocabulary = 270,
                  .context = 12,
                  .own_output = own_output};
  const int64_t w = 8, h = 6, l = 2, s = 4;
  for (const auto& [name, shape] :
       std::map<std::string, std::vector<int64_t>>{{"tok_embeddings", {270, w}},
                                                   {"attention_norm", {l, w}},
                                                   {"wq", {l, w, w}},
                                                   {"wk", {l, s, w}},
                                                   {"wv", {l, s, w}},
                                                   {"wo", {l, w, w}},
                                                   {"ffn_norm", {l, w}},
                                                   {"w1", {l, h, w}},
                                                   {"w2", {l, w, h}},
                                                   {"w3", {l, h, w}},
                                                   {"norm", {w}}})
    c.arrays[name] = numbers(shape, random);
  if (own_output) c.arrays["output"] = numbers({270, w}, random);
  return c;
}

std::string said(const std::string& bytes) {
  try {
    data::parse_llama2c(bytes, "model.bin");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Llama2c, SurvivesBeingWritten) {
  for (const bool own : {false, true}) {
    const data::Llama2c c = small_checkpoint(own);
    const data::Llama2c again = data::parse_llama2c(data::llama2c_bytes(c), "model.bin");
    EXPECT_EQ(again.own_output, own);
    ASSERT_EQ(again.arrays.size(), c.arrays.size());
    for (const auto& [name, array] : c.arrays)
      EXPECT_EQ(again.arrays.at(name).bytes, array.bytes) << name;
  }
}

TEST(Llama2c, ADamagedCheckpointIsNamed) {
  const std::string good = data::llama2c_bytes(small_checkpoint());
  const auto with = [&](size_t field, int32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + 4 * field, &value, sizeof value);
    return said(bytes);
  };
  EXPECT_NE(said("").find("header"), std::string::npos);
  EXPECT_NE(said(good.substr(0, 20)).find("header"), std::string::npos);
  EXPECT_NE(said(good.substr(0, good.size() - 4)).find("too few"), std::string::npos);
  EXPECT_NE(said(good + "1234").find("expected"), std::string::npos);
  const char* names[] = {"width",     "hidden width", "layers", "heads",
                         "key heads", "vocabulary",   "context"};
  for (size_t field = 0; field < 7; ++field) {
    EXPECT_NE(with(field, 0).find(names[field]), std::string::npos) << with(field, 0);
    if (field != 5) {
      EXPECT_NE(with(field, -3).find(names[field]), std::string::npos) << with(field, -3);
    }
    EXPECT_NE(with(field, 2147483647).find("model.bin"), std::string::npos) << names[field];
  }
  EXPECT_NE(with(3, 3).find("heads: 3"), std::string::npos);
  EXPECT_NE(with(4, 3).find("key heads: 3"), std::string::npos);
  EXPECT_NE(with(0, 16).find("too few"), std::string::npos);
  EXPECT_NE(with(0, 0x616b3432).find("version"), std::string::npos);
  std::string broken = good;
  const float nan = std::nanf("");
  std::memcpy(broken.data() + 28 + 4 * 5, &nan, sizeof nan);
  EXPECT_NE(said(broken).find("'tok_embeddings': entry 5"), std::string::npos) << said(broken);
}

TEST(LlamaTokens, JoinTheBestPairFirst) {
  const auto tokens = tokens_of(small_tokens());
  const auto pieces = [&](std::string_view text) {
    std::string out;
    for (const int64_t id : tokens->encode(text)) out += "[" + tokens->piece(id) + "]";
    return out;
  };
  EXPECT_EQ(pieces("abc"), "[ abc]") << "blank a b c, then ab, abc, and the blank before it";
  EXPECT_EQ(pieces("bc"), "[ ][bc]");
  EXPECT_EQ(pieces(""), "");
  EXPECT_EQ(tokens->encode("z").back(), 3 + 'z') << "no piece: its byte";
  EXPECT_EQ(tokens->encode("ü").size(), 3u) << "blank and two bytes";
  EXPECT_EQ(tokens->encode("é").size(), 2u);
  for (const std::string text : {"abc", "ab c", "zü\né", "a <0x0A> b", "\n<s>\n"})
    EXPECT_EQ(tokens->decode(tokens->encode(text)), text);
  EXPECT_EQ(tokens->decode(tokens->encode(std::string(10000, 'a'))).size(), 10000u);
  const auto again = tokens_from_bytes(tokens->bytes(), "tokens");
  EXPECT_EQ(again->encode("abc ab"), tokens->encode("abc ab"));
}

TEST(LlamaTokens, ADamagedTokenizerIsNamed) {
  const std::string good = data::llama2c_token_bytes(small_tokens());
  const auto thrown = [](const std::string& bytes) {
    EXPECT_THROW(data::parse_llama2c_tokens(bytes, "tok.bin"), InvalidArgument);
  };
  thrown("");
  thrown("abc");
  thrown(good.substr(0, good.size() - 1));
  thrown(good.substr(0, 200));
  std::string negative = good;
  negative[8] = negative[9] = negative[10] = negative[11] = '\xFF';
  thrown(negative);
}

TEST(Sampling, FollowsItsLimits) {
  const std::vector<float> scores = {1, 3, 2, 3, -50};
  data::Random random(1);
  EXPECT_EQ(chosen(scores, {}, random), 1) << "the first of equals";
  std::map<int64_t, int> seen;
  for (int i = 0; i < 500; ++i) ++seen[chosen(scores, {.temperature = 1, .top_k = 3}, random)];
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_FALSE(seen.contains(0));
  seen.clear();
  for (int i = 0; i < 500; ++i) ++seen[chosen(scores, {.temperature = 1, .top_p = 0.5}, random)];
  EXPECT_EQ(seen.size(), 2u) << "1 and 3 have more than half";
  seen.clear();
  for (int i = 0; i < 3000; ++i) ++seen[chosen(scores, {.temperature = 1}, random)];
  EXPECT_NEAR(seen[2] / 3000.0, std::exp(-1.0) / (2 + std::exp(-1.0) + std::exp(-2.0)), 0.03);
  EXPECT_EQ(chosen(scores, {.temperature = 5, .top_p = 0}, random), 1);
  EXPECT_THROW(chosen(std::vector<float>{1, std::nanf("")}, {}, random), InvalidArgument);
}

TEST(Sentences, OneWordDecides) {
  data::Random random(3);
  for (int i = 0; i < 200; ++i) {
    const Sentence drawn = draw(random), found = sentence_of(drawn.words);
    EXPECT_EQ(found.decides, drawn.decides);
    EXPECT_LT(drawn.decides + 1, static_cast<int64_t>(drawn.words.size()));
  }
  EXPECT_EQ(sentence_of({"she", "waited", "and", "read", "the"}).decides, -1);
}

TEST(Documents, WindowsCoverEveryToken) {
  const auto windows = windows_of({2, 10, 11, 12, 13, 3}, 2);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[1].inputs, (std::vector<int64_t>{11, 12}));
  EXPECT_EQ(windows[1].targets, (std::vector<int64_t>{12, 13}));
  EXPECT_EQ(windows[2].targets, (std::vector<int64_t>{3}));
  EXPECT_TRUE(windows_of({2}, 4).empty());
}

class NextWordRun : public test::Runs {
 protected:
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(base_ / name, std::ios::binary) << bytes;
    return (base_ / name).string();
  }
  struct Answered {
    std::string text;
    std::vector<std::string> notes;
  };
  Answered answer(const std::string& run, const std::string& input,
                  const std::vector<std::string>& set) const {
    systems::Run opened = open(base_ / run, "cpu", 1, set);
    std::istringstream lines(input);
    std::ostringstream out;
    Answered answered;
    Input given{lines, "input"};
    given.noted = [&](const std::string& note) { answered.notes.push_back(note); };
    systems::predict(opened, given, out);
    answered.text = out.str();
    return answered;
  }
  static std::vector<std::string> small() {
    return {"epochs=2", "width=8", "hidden=8", "layers=2", "heads=2", "key_heads=1", "batch=16"};
  }
  std::vector<std::string> foreign(const std::string& checkpoint, const std::string& tokens) const {
    return {"checkpoint=" + file("model.bin", checkpoint), "tokenizer=" + file("tok.bin", tokens),
            "sentences=20", "epochs=0"};
  }
};

TEST_F(NextWordRun, EveryVerb) {
  generate({.system = "next-word", .set = {"sentences=60"}, .out = base_ / "data"});
  for (const std::vector<std::string>& more : {std::vector<std::string>{},
                                               {"tokens=characters", "context=16"},
                                               {"norm=layer", "positions=learned", "tie=false"}}) {
    std::vector<std::string> set = small();
    set.insert(set.end(), more.begin(), more.end());
    const Json report = train("run", {.system = "next-word",
                                      .data = (base_ / "data/sentences.txt").string(),
                                      .set = set,
                                      .overwrite = true});
    EXPECT_NEAR(report["metrics"]["perplexity"].get<double>(),
                std::exp(report["metrics"]["loss"].get<double>()), 1e-9);
    check_every_verb("run", "she waited for the\n");
  }
}

TEST_F(NextWordRun, TheLastWordIsLearnedAndLookedFor) {
  const Json report =
      train("run", {.system = "next-word", .set = {"sentences=3000", "epochs=6", "layers=1"}});
  EXPECT_GE(report["metrics"]["last_word"].get<double>(), 0.99);
  EXPECT_GE(report["attention"]["hit_rate"].get<double>(), 0.9);
  EXPECT_EQ(answer("run", "tonight anna listened slowly to the\n", {"length=1"}).text,
            "tonight anna listened slowly to the music\n");
}

TEST_F(NextWordRun, AForeignCheckpointIsTakenAsItIs) {
  train("run", {.system = "next-word",
                .set = foreign(data::llama2c_bytes(small_checkpoint(true)),
                               data::llama2c_token_bytes(small_tokens()))});
  const Answered a = answer("run", "abc\n\n", {"length=5"});
  EXPECT_TRUE(a.text.starts_with("abc")) << a.text;
  EXPECT_EQ(std::ranges::count(a.text, '\n'), 2) << "an answer is a line";
  check_every_verb("run", "abc\n");
}

TEST_F(NextWordRun, WeightsLeaveAsTheyCame) {
  for (const bool own_output : {false, true}) {
    const std::string checkpoint = data::llama2c_bytes(small_checkpoint(own_output)),
                      tokens = data::llama2c_token_bytes(small_tokens());
    train("run", {.system = "next-word", .set = foreign(checkpoint, tokens), .overwrite = true});
    export_run(open(base_ / "run"), base_ / "folder", /*overwrite=*/true);
    EXPECT_EQ(contents(base_ / "folder/model.bin"), checkpoint);
    EXPECT_EQ(contents(base_ / "folder/tokenizer.bin"), tokens);
    const Json config = Json::parse(contents(base_ / "folder/config.json"));
    EXPECT_EQ(config["tie_word_embeddings"], !own_output);
    EXPECT_EQ(config["num_key_value_heads"], 2);
  }
}

TEST_F(NextWordRun, WhatNoLlamaHasIsNotExported) {
  for (const auto& [setting, name] :
       {std::pair("norm=layer", "norm: layer"), {"positions=learned", "positions: learned"}}) {
    std::vector<std::string> set = small();
    set.insert(set.end(), {setting, "sentences=60"});
    train("run", {.system = "next-word", .set = set, .overwrite = true});
    EXPECT_NE(said([&] { export_run(open(base_ / "run"), base_ / "none", false); }).find(name),
              std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(base_ / "none"));
  }
}

TEST_F(NextWordRun, APromptLongerThanTheContextSlidesAndSaysSo) {
  train("run", {.system = "next-word",
                .set = foreign(data::llama2c_bytes(small_checkpoint()),
                               data::llama2c_token_bytes(small_tokens()))});
  const Answered one = answer("run", "c c c c c c c c c c c c c c\n", {"length=1"});
  ASSERT_EQ(one.notes.size(), 1u);
  EXPECT_NE(one.notes[0].find("longer than the context of 12 tokens"), std::string::npos)
      << one.notes[0];
  const Answered longer = answer("run", "abc\n", {"length=40", "temperature=1"});
  ASSERT_FALSE(longer.notes.empty());
  EXPECT_NE(longer.notes[0].find("was full"), std::string::npos) << longer.notes[0];
  EXPECT_EQ(longer.text, answer("run", "abc\n", {"length=40", "temperature=1"}).text)
      << "one seed, one text";
  EXPECT_NE(longer.text,
            answer("run", "abc\n", {"length=40", "temperature=1", "sample_seed=2"}).text);
}

TEST_F(NextWordRun, AForeignFileOfAnotherKindIsNamed) {
  const auto refused = [&](const std::string& checkpoint, const std::string& tokens,
                           std::vector<std::string> more = {}) {
    std::vector<std::string> set = foreign(checkpoint, tokens);
    set.insert(set.end(), more.begin(), more.end());
    return said([&] { train("run", {.system = "next-word", .set = set}); });
  };
  const std::string good = data::llama2c_bytes(small_checkpoint()),
                    tokens = data::llama2c_token_bytes(small_tokens());
  EXPECT_NE(refused(tokens, tokens).find("model.bin"), std::string::npos);
  EXPECT_NE(refused(good, good).find("tok.bin"), std::string::npos);
  data::Llama2cTokens fewer = small_tokens();
  fewer.pieces.pop_back();
  fewer.scores.pop_back();
  EXPECT_NE(refused(good, data::llama2c_token_bytes(fewer)).find("269 tokens, expected 270"),
            std::string::npos);
  EXPECT_NE(refused(good, tokens, {"width=8"}).find("width: given with a checkpoint"),
            std::string::npos);
  EXPECT_NE(said([&] {
              train("run",
                    {.system = "next-word", .set = {"checkpoint=" + file("model.bin", good)}});
            }).find("tokenizer: missing"),
            std::string::npos);
}

TEST_F(NextWordRun, FewDocuments) {
  const auto trained = [&](const std::string& text, std::vector<std::string> more = {}) {
    std::vector<std::string> set = small();
    set.insert(set.end(), more.begin(), more.end());
    return said([&] {
      train("run",
            {.system = "next-word", .data = file("text.txt", text), .set = set, .overwrite = true});
    });
  };
  EXPECT_NE(trained("one document of words\n").find("1 document, expected at least 3"),
            std::string::npos);
  EXPECT_NE(
      trained("one document of words\n", {"document=file"}).find("1 line, expected at least 3"),
      std::string::npos);
  EXPECT_NE(trained("\n\n").find("empty lines only"), std::string::npos);
  EXPECT_EQ(trained("first words\nwords second\nthird\n", {"document=file"}), "nothing was thrown");
  std::string lines;
  for (const char* word : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"})
    lines += std::string(word) + "\n";
  EXPECT_EQ(trained(lines, {"context=1"}), "nothing was thrown") << "one token, one position";
  EXPECT_FALSE(answer("run", "a\n", {"length=3"}).text.empty());
}

TEST_F(NextWordRun, Stories260KWritesTheTextOfLlama2c) {
  const std::string pretrained = data_folder("pretrained");
  if (pretrained.empty()) GTEST_SKIP() << "pretrained is absent (FOVEA_DATA)";
  const std::filesystem::path folder = std::filesystem::path(pretrained) / "stories260K";
  train("run",
        {.system = "next-word",
         .set = {"checkpoint=" + (folder / "stories260K.bin").string(),
                 "tokenizer=" + (folder / "tok512.bin").string(), "sentences=20", "epochs=0"}});
  EXPECT_EQ(answer("run", "\n", {"length=200", "raw=true"}).text,
            contents(folder / "expected_greedy_200.txt"));
}

}  // namespace
}  // namespace fovea::systems::next_word
