#include "torch/spec.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

namespace fovea {
namespace {

at::Tensor no_file(std::string_view, std::string_view) { return at::ones({1}); }

std::string refusal(std::string_view text) {
  try {
    unflatten(text, {}, {});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Spec, WritesEveryFieldThatIsSet) {
  const auto weight = at::ones({4}), bias = at::ones({2, 3}), mask = at::ones({2, 3}, at::kBool);
  const Flat flat = flatten(
      {.score = Score(Additive{weight, Activation::kLeakyRelu, 0.1}).soft_cap(30).bias(bias),
       .normaliser = Entmax{1.25, {}},
       .structure = Causal{Alignment::kBottomRight} & Keep{mask}});
  EXPECT_EQ(
      *flat.text,
      "additive:weight=@,activation=leaky_relu,negative_slope=0.1|soft_cap:cap=30|bias:bias=@;"
      "entmax:alpha=1.25;causal:alignment=bottom_right&keep:mask=@");
  ASSERT_EQ(flat.arrays.size(), 3u);
  EXPECT_TRUE(flat.arrays[2].is_same(mask));
}

TEST(Spec, ReadsBackWhatItWrote) {
  const auto one = at::ones({1});
  std::vector<Choices> all = {
      {.score = Dot{0.1}, .normaliser = Softmax{one}, .structure = Fixed{7, 2}},
      {.score = Kernel{KernelName::kTricube, one, one},
       .normaliser = Hard{true},
       .structure = Window{-1, 3}},
      {.score = Score(Dot{}).relative(one, {}, 4),
       .normaliser = TopK{5},
       .structure = Graph{one, one}},
      {.score = Bilinear{one, 1e-300},
       .normaliser = Entmax{1.5, one},
       .structure = Blocks{one, 32}},
  };
  all.push_back({.structure = Causal{} & (Window{1020, 0} | First{4})});
  all.push_back({.structure = ~(Keep{one} | (Causal{} & ~Documents{one, one})) | Dense{}});
  for (const Choices& choices : all) {
    const Flat flat = flatten(choices);
    const Flat again = flatten(unflatten(*flat.text, flat.arrays, {}));
    EXPECT_EQ(*again.text, *flat.text);
    EXPECT_EQ(again.arrays.size(), flat.arrays.size());
  }
}

TEST(Spec, TakesTensorsAndNumbersOfTheListsInTheOrderOfTheFields) {
  const auto slopes = at::ones({2}), sink = at::ones({1});
  const std::string text =
      "dot|alibi:slopes=@;softmax:sink=@;window:right=#,left=#&strided:stride=4";
  for (int64_t left : {3, 5}) {  // the text is read once, the lists each time
    const Choices choices = unflatten(text, {slopes, sink}, std::vector<c10::SymInt>{left, 7});
    const auto& window = std::get<Window>(choices.structure.all_of[0]);
    EXPECT_EQ(window.left, left);
    EXPECT_EQ(window.right, 7);
    EXPECT_EQ(std::get<Strided>(choices.structure.all_of[1]).stride, 4);
    EXPECT_TRUE(std::get<Alibi>(choices.score.modifiers[0]).slopes.is_same(slopes));
    EXPECT_TRUE(std::get<Softmax>(choices.normaliser).sink.is_same(sink));
  }
}

TEST(Spec, AThreadWritesATextOnce) {
  const auto one = at::ones({1});
  const auto text_of = [&](double cap, Structure structure) {
    return flatten({.score = Score(Dot{}).bias(one).soft_cap(cap), .structure = structure}).text;
  };
  const auto first = text_of(30, Causal{} & (Window{1, 0} | First{4}));
  EXPECT_EQ(text_of(30, Causal{} & (Window{1, 0} | First{4})), first);  // the same object
  EXPECT_NE(*text_of(31, Causal{} & (Window{1, 0} | First{4})), *first);
  EXPECT_NE(*text_of(30, Causal{} & (Window{1, 0} | First{5})), *first);
  EXPECT_NE(*text_of(30, (Causal{} & Window{1, 0}) | First{4}), *first);
  EXPECT_NE(*flatten({.normaliser = Softmax{one}}).text, *flatten({}).text);
  EXPECT_EQ(*flatten({.structure = Structure()}).text, *flatten({.structure = Dense{}}).text);
  const std::string words = *first;
  for (int64_t left = 0; left < 1000; ++left) text_of(30, Window{left, 0});  // more than are kept
  EXPECT_EQ(*first, words);
  const Choices again = unflatten(*first, {one}, {});
  EXPECT_EQ(*flatten(again).text, words);
}

// Neither on the thread that wrote it nor on another one, such as autograd's for a device.
TEST(Spec, TheTextOfACppCallerIsNotParsed) {
  const int64_t before = texts_parsed();
  const Flat flat = flatten({.normaliser = Entmax{1.625}, .structure = Window{11, 13}});
  const auto left_of = [&] {
    return std::get<Window>(unflatten(*flat.text, flat.arrays, {}).structure.all_of[0]).left;
  };
  EXPECT_EQ(left_of(), 11);
  int64_t there = 0;
  std::thread([&] { there = left_of(); }).join();
  EXPECT_EQ(there, 11);
  EXPECT_EQ(texts_parsed(), before);
  unflatten("dot;entmax:alpha=1.625;window:left=11,right=14", {}, {});  // from elsewhere
  EXPECT_EQ(texts_parsed(), before + 1);
}

TEST(Spec, KeepsNoTensor) {
  at::Tensor weight = at::ones({4});
  {
    const Flat flat = flatten({.score = Additive{weight}});
    ASSERT_EQ(flat.arrays.size(), 1u);
    EXPECT_TRUE(flat.arrays[0].is_same(weight));
    const Choices choices = unflatten(*flat.text, flat.arrays, {});
    EXPECT_TRUE(std::get<Additive>(choices.score.kind).weight.is_same(weight));
  }
  EXPECT_EQ(weight.use_count(), 1u);
}

TEST(Spec, NamesWhatIsWrong) {
  EXPECT_EQ(refusal("dot;softmax"),
            "choices: 'dot;softmax', expected 'score;normaliser;structure'");
  EXPECT_TRUE(refusal("dott;softmax;dense")
                  .starts_with("score: unknown 'dott', expected one of dot, bilinear"));
  EXPECT_EQ(refusal("dot:scal=1;softmax;dense"),
            "field of dot: unknown 'scal', expected one of scale");
  EXPECT_EQ(refusal("dot:scale=1x;softmax;dense"), "dot.scale: '1x', expected a number");
  EXPECT_EQ(refusal("dot:scale=1,scale=2;softmax;dense"), "dot.scale: given twice, expected once");
  EXPECT_EQ(refusal("dot;softmax;window:left"), "window.left: no value, expected left=VALUE");
  EXPECT_EQ(refusal("bilinear:weight=@0;softmax;dense"), "bilinear.weight: '@0', expected @");
  EXPECT_EQ(refusal("bilinear:weight=@;softmax;dense"),
            "arrays: 0 given, expected 1 (those the choices name)");
  EXPECT_EQ(refusal("dot;softmax;window:left=#"),
            "numbers: 0 given, expected 1 (those the choices name)");
  EXPECT_EQ(refusal("dot;softmax;causal&(dense|first"),
            "structure: 'causal&(dense|first', expected ) at character 20");
  EXPECT_EQ(refusal("dot;softmax;causal)"), "structure: 'causal)', expected & or | at character 7");
  EXPECT_TRUE(
      refusal("dot;softmax;" + std::string(100, '~') + "causal").find("more than 64 brackets") !=
      std::string::npos);
  EXPECT_TRUE(refusal("dot;softmax;any_of").starts_with("structure: unknown 'any_of'"));
  EXPECT_TRUE(refusal("dot|custom:handle=77;softmax;dense").starts_with("custom.handle: 77"));
}

TEST(Spec, ReadsACommandLinesTexts) {
  const Score score = parse_score("dot:scale=2|alibi:slopes=s.npy", no_file);
  EXPECT_EQ(std::get<Dot>(score.kind).scale, 2);
  EXPECT_EQ(score.modifiers.size(), 1u);
  EXPECT_EQ(parse_structure("causal&window:left=8", no_file).all_of.size(), 2u);
  const Structure streaming =
      parse_structure("causal & (window:left=1020,right=0 | first:count=4)", no_file);
  EXPECT_EQ(*flatten({.structure = streaming}).text,
            *flatten({.structure = Causal{} & (Window{1020, 0} | First{4})}).text);
  EXPECT_EQ(
      *flatten({.structure = parse_structure("~causal|~(first:count=2&dense)", no_file)}).text,
      *flatten({.structure = ~Causal{} | ~(First{2} & Dense{})}).text);
  EXPECT_THROW(parse_structure("window:left=#", no_file), InvalidArgument);  // an operator's only
  try {
    parse_normaliser("entmx", no_file);
    FAIL();
  } catch (const UnknownName& error) {
    EXPECT_EQ(error.typed, "entmx");
    EXPECT_EQ(error.names.size(), 9u);
  }
}

}  // namespace
}  // namespace fovea
