#include "explain/explanation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "explain/base64.h"
#include "fovea/error.h"

namespace fovea::explain {
namespace {

// Two words over three, every optional part present.
Explanation full() {
  Explanation e;
  e.system = "test";
  e.title = "A </script> of \"everything\" & more";
  e.view = View::kMatrix;
  e.score = "dot";
  e.normaliser = "softmax";
  e.structure = "dense";
  e.scale = "1/√64";
  e.outcome = "positive, p = 0.93";
  e.notes = {"one", "two"};
  e.groups = {{"first", 0.25, true}, {"second", std::nullopt, false}};
  e.queries = {{"das", 0, {}, 0.5, std::nullopt},
               {"Haus", -1, {0.1, 0.2}, std::nullopt, std::nullopt}};
  e.keys = {{"the", 1, {}, {}, {}},
            {"house", -1, {0, 0, 0.5, 0.5}, {}, Picture{2, 1, 3, {1, 2, 3, 4, 5, 6}}},
            {"", -1, {}, {}, {}}};
  e.layers = {"layer", {"1", "2"}, 1};
  e.heads = {"head", {"a"}, 0};
  e.maps = {{0, 0, {0.1f, 0.9f, 0, 1.0f / 3, 2.0f / 3, 0}, {}}, {1, 0, {}, {{1, 2, 0.7f}}}};
  e.truth = Truth{"gold", {}, {{0, 0, 0}}, {{1, 1, 0}, {1, 2, 0}}};
  e.picture = Picture{1, 2, 1, {0, 255}};
  e.plots = {Plot{"loss",
                  "epoch",
                  "nats",
                  false,
                  true,
                  {Curve{Curve::Kind::kBand, "spread", {1, 2}, {0.5, std::nan("")}, {1, 2}, {}, 1},
                   Curve{Curve::Kind::kPoints, "data", {0}, {3}, {}, {"Ada"}, -1}},
                  {Marker{"chosen", 0.914, 0}},
                  Slider{"h", {0.5, 1}, 1}}};
  e.tables = {Table{"steps", 1, {"a", "b"}, {{"1", "2"}}}};
  e.tree = {{-1, "<s>", 0, TreeNode::State::kLive}, {0, "a", -1.5, TreeNode::State::kBest}};
  Reader sum{.label = "sum", .shift = 1, .layers = {{{1, -2}, {0.5f}}}, .given = 3};
  Reader gru{.label = "gru", .kind = Reader::Kind::kGru, .given = -0.25};
  gru.gru = Gru{{1, 2, 3, 4, 5, 6}, {7, 8, 9}, {0, 0, 0.5f}, {0, 0.25f, 0}};
  Reader drawn{.label = "drawn", .kind = Reader::Kind::kDrawn, .answers = {1.5, 2.5}, .given = 1.5};
  e.shuffle = Shuffle{"sum", 2, {1, 2, 3, 4, 5, 6}, -1, {{0, 1, 2}, {2, 0, 1}}, {sum, gru, drawn}};
  e.shapes = Shapes{"2 × 4", "3 × 4", "3 × 5", "2 × 3", "2 × 5"};
  return e;
}

std::string error_of(const std::string& json) {
  try {
    from_json(json, "file.json");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Explanation, SurvivesTheRoundTrip) {
  const std::string json = to_json(full());
  const Explanation back = from_json(json);
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.maps[0].dense, full().maps[0].dense);
  EXPECT_EQ(back.keys[1].picture->pixels, full().keys[1].picture->pixels);
  EXPECT_TRUE(std::isnan(back.plots[0].curves[0].y[1]));
  EXPECT_EQ(back.groups[1].weight, std::nullopt);
  EXPECT_EQ(back.tree[1].state, TreeNode::State::kBest);
  EXPECT_EQ(back.shuffle->orders, full().shuffle->orders);
  EXPECT_EQ(back.shuffle->readers[1].gru->hidden_weight,
            full().shuffle->readers[1].gru->hidden_weight);
}

TEST(Explanation, WritesFloatsShortest) {
  EXPECT_NE(to_json(full()).find("[0.1,0.9,0.0,0.33333334,0.6666667,0.0]"), std::string::npos);
}

TEST(Explanation, LargeMapsTravelAsBase64AndComeBackExactly) {
  Explanation e;
  e.title = "large";
  e.normaliser = "softmax";
  e.queries.resize(70);
  e.keys.resize(71);
  std::vector<float> dense(70 * 71);
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = std::sin(float(i));
  e.maps = {{0, 0, dense, {}}};
  EXPECT_EQ(from_json(to_json(e)).maps[0].dense, dense);
  EXPECT_LT(to_json(e).size(), dense.size() * 6 + 4000);
}

TEST(Explanation, BrokenUtf8IsReplacedNotThrown) {
  Explanation e = full();
  e.keys[0].text = "\xff\xfe";
  EXPECT_EQ(from_json(to_json(e)).keys[0].text, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Explanation, RefusesWhatIsNotAnExplanation) {
  EXPECT_EQ(error_of(""), "file.json: not JSON (byte 1)");
  EXPECT_EQ(error_of("[1]"), "file.json: array, expected an object");
  EXPECT_EQ(error_of("{}"),
            "file.json: not an Explanation (\"format\": \"fovea-explanation\" missing)");
  const std::string deep(100'000, '['),
      said = "file.json: JSON nested deeper than 100 levels, expected less";
  EXPECT_EQ(error_of(deep), said);
  EXPECT_EQ(error_of(deep + std::string(100'000, ']')), said);
}

TEST(Explanation, RefusesOtherVersions) {
  const std::string json = to_json(full());
  EXPECT_EQ(error_of(replaced(json, "\"version\":1", "\"version\":2")),
            "file.json: version 2, expected 1");
  EXPECT_EQ(error_of(replaced(json, "\"version\":1", "\"version\":\"1\"")),
            "file.json: version \"1\", expected 1");
}

TEST(Explanation, NamesTheFieldThatIsWrong) {
  const std::string json = to_json(full());
  EXPECT_EQ(error_of(replaced(json, "\"outcome\"", "\"outcom\"")),
            "file.json: unknown field 'outcom'");
  EXPECT_EQ(error_of(replaced(json, "\"view\":\"matrix\"", "\"view\":\"pie\"")),
            "file.json.view: 'pie', expected one of bipartite, matrix, text, image, graph, bag, "
            "curve, memory, tree, shuffle");
  EXPECT_EQ(error_of(replaced(json, "[0.1,0.9,0.0,", "[0.1,0.9,")),
            "file.json: maps[0].dense: 5 weights, expected 6 (2 queries × 3 keys)");
  EXPECT_EQ(error_of(replaced(json, "[0.1,0.9,0.0,", "[0.1,0.9,null,")),
            "file.json.maps[0].dense[2]: null, expected a number");
  EXPECT_EQ(error_of(replaced(json, "[1,2,0.7]", "[1,3,0.7]")),
            "file.json: maps[1].links[0].key: index 3, expected 0 to 2");
  EXPECT_EQ(error_of(replaced(json, "[1,2,0.7]", "[1,99999999999,0.7]")),
            "file.json.maps[1].links[0]: index out of range");
  EXPECT_EQ(error_of(replaced(json, "[1,2,0.7]", "[1,2,1e300]")),
            "file.json: maps[1].links[0].weight: not a finite number");
  EXPECT_EQ(error_of(replaced(json, "\"layer\":1", "\"layer\":7")),
            "file.json: maps[1].layer: index 7, expected 0 to 1");
  EXPECT_EQ(error_of(replaced(json, "\"AP8=\"", "\"AP8\"")),
            "file.json.picture.pixels: not base64");
  EXPECT_EQ(error_of(replaced(json, "\"AP8=\"", "\"AA==\"")),
            "file.json: picture.pixels: 1 bytes, expected 2 (2 × 1 × 1)");
  EXPECT_EQ(error_of(replaced(json, "\"width\":1", "\"width\":100000")),
            "file.json: picture: 100000 × 2 pixels, expected 1 to 4096 each way");
  EXPECT_EQ(error_of(replaced(json, "\"parent\":0", "\"parent\":1")),
            "file.json: tree[1].parent: 1, expected -1 or an earlier node");
}

TEST(Explanation, WhatAMessageQuotesIsPrintable) {
  const std::string json = to_json(full());
  EXPECT_EQ(error_of(replaced(json, "\"outcome\"", "\"out\\u001b[31m\"")),
            "file.json: unknown field 'out\\x1b[31m'");
  EXPECT_EQ(error_of(replaced(json, "\"matrix\"", "\"\\u009b31m\"")).substr(0, 32),
            "file.json.view: '\\xc2\\x9b31m', e");
  EXPECT_EQ(error_of(replaced(json, "\"version\":1", "\"version\":\"\x7f\"")),
            "file.json: version \"\\x7f\", expected 1");
  try {
    read_explanation("no\x1b.json");
    FAIL() << "expected an error";
  } catch (const InvalidArgument& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("no\\x1b.json: no such file"))
        << error.what();
  }
}

TEST(Explanation, AViewNeedsWhatItDraws) {
  const auto refused = [](auto change) {
    Explanation e = full();
    change(e);
    EXPECT_THROW(check(e), InvalidArgument);
  };
  EXPECT_NO_THROW(check(full()));
  refused([](Explanation& e) { e.normaliser.clear(); });  // a picture states its normaliser
  refused([](Explanation& e) { e.maps.clear(); });
  refused([](Explanation& e) { e.view = View::kTree, e.tree.clear(); });
  refused([](Explanation& e) { e.view = View::kCurve, e.plots.clear(); });
  refused([](Explanation& e) { e.view = View::kShuffle, e.shuffle.reset(); });
  refused([](Explanation& e) { e.view = View::kImage; });  // keys without a region
  refused([](Explanation& e) { e.maps.push_back(e.maps[0]); });
  refused([](Explanation& e) { e.maps[0].dense[0] = std::numeric_limits<float>::infinity(); });
  refused([](Explanation& e) { e.plots[0].curves[0].y.pop_back(); });
  refused([](Explanation& e) { e.plots[0].slider->chosen = 2; });
  refused([](Explanation& e) { e.layers.chosen = 2; });
  refused([](Explanation& e) { e.tables[0].rows[0].pop_back(); });
}

TEST(Explanation, AShuffleCanBeWorkedOut) {
  const auto refused = [](const std::string& said, auto change) {
    Explanation e = full();
    change(*e.shuffle);
    try {
      check(e);
      ADD_FAILURE() << "not refused, expected " << said;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.what(), said);
    }
  };
  refused("shuffle.vectors: 5 numbers, expected 6", [](Shuffle& s) { s.vectors.pop_back(); });
  refused("shuffle.width: 0, expected at least 1", [](Shuffle& s) { s.width = 0; });
  refused("shuffle.orders[1]: expected each of 0 to 2 once", [](Shuffle& s) {
    s.orders[1] = {2, 2, 1};
  });
  refused("shuffle.orders[0]: index 3, expected 0 to 2", [](Shuffle& s) {
    s.orders[0] = {0, 1, 3};
  });
  refused("shuffle.readers: empty, expected at least one", [](Shuffle& s) { s.readers.clear(); });
  refused("shuffle.readers[0].layers[0].weight: 1 numbers, expected 2",
          [](Shuffle& s) { s.readers[0].layers[0].weight = {1}; });
  refused("shuffle.readers[0].layers: 2 numbers at the end, expected 1",
          [](Shuffle& s) { s.readers[0].layers.clear(); });
  refused("shuffle.readers[1].gru: missing, this reader is one",
          [](Shuffle& s) { s.readers[1].gru.reset(); });
  refused("shuffle.readers[1].gru.hidden_weight: 2 numbers, expected 3",
          [](Shuffle& s) { s.readers[1].gru->hidden_weight.pop_back(); });
  refused("shuffle.readers[2].answers: 1 numbers, expected 2 (one an order)",
          [](Shuffle& s) { s.readers[2].answers.pop_back(); });
  refused("shuffle.chosen: index 4, expected 0 to 0", [](Shuffle& s) { s.chosen = 4; });
}

TEST(Explanation, ReadsFilesAndRefusesFolders) {
  const auto path = std::filesystem::path(testing::TempDir()) / "explanation_test.json";
  std::ofstream(path) << to_json(full());
  EXPECT_EQ(to_json(read_explanation(path)), to_json(full()));
  EXPECT_THROW(read_explanation(testing::TempDir()), InvalidArgument);
  EXPECT_THROW(read_explanation(path.string() + ".absent"), InvalidArgument);
  std::filesystem::remove(path);
}

TEST(Base64, BothWaysAtEveryLength) {
  for (size_t n = 0; n < 9; ++n) {
    std::vector<uint8_t> bytes(n);
    for (size_t i = 0; i < n; ++i) bytes[i] = uint8_t(251 * i + 250);
    EXPECT_EQ(from_base64(to_base64(bytes.data(), n)), bytes);
  }
  for (const char* bad : {"A", "A===", "AA=A", "A*==", "====", "AAA=AAAA"})
    EXPECT_EQ(from_base64(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace fovea::explain
