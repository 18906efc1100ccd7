// One picture as a bag: where windows are cut, what they hold, tissue that is generated, and every verb.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <sstream>

#include "data/generated/tissue.h"
#include "systems/generate.h"
#include "systems/mil/model.h"
#include "systems/mil/windows.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::mil {
namespace {

data::Image ramp(int64_t width, int64_t height) {
  data::Image out{width, height, 3, {}};
  for (int64_t i = 0; i < width * height * 3; ++i)
    out.pixels.push_back(static_cast<uint8_t>(i % 251));
  return out;
}

TEST(MilWindows, ReachEveryEdgeAndKeepTheirPixels) {
  const data::Image image = ramp(10, 7);
  const WindowPlan plan{.side = 4, .stride = 3};
  const auto where = places(image, plan);
  ASSERT_EQ(where.size(), 6u) << "columns 0, 3, 6; rows 0, 3";
  EXPECT_NEAR(where.back().left + where.back().width, 1, 1e-9);
  EXPECT_NEAR(where.back().top + where.back().height, 1, 1e-9);
  const std::vector<float> windows = windows_of(image, plan);
  ASSERT_EQ(windows.size(), 6u * 48);
  // Window 4 (row 3, column 3), green, its pixel (1, 2): picture (4, 5).
  const float green = windows[4 * 48 + 16 + 1 * 4 + 2];
  EXPECT_NEAR((green + 1) * 127.5, image.pixels[(4 * 10 + 5) * 3 + 1], 1e-3);
}

TEST(MilWindows, ASmallPictureIsOneWindowAndAWideOneARow) {
  const WindowPlan plan{.side = 32, .stride = 16, .positions = true};
  EXPECT_EQ(places(ramp(1, 1), plan).size(), 1u);
  const std::vector<float> one = windows_of(ramp(1, 1), plan);
  ASSERT_EQ(static_cast<int64_t>(one.size()), plan.width());
  EXPECT_EQ(one.front(), one[31 * 32 + 31]) << "its edge is repeated";
  EXPECT_EQ(one[one.size() - 2], 0) << "its middle is the picture's";
  const auto wide = places(ramp(20000, 10), plan);
  EXPECT_EQ(wide.size(), 1249u);
  EXPECT_NEAR(wide.back().left + wide.back().width, 1, 1e-9);
  try {
    places(ramp(3000, 2900), {.side = 16, .stride = 16});
    ADD_FAILURE() << "taken";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("expected at most 20000"), std::string::npos);
  }
}

TEST(MilWindows, AWindowHoldsWhatLiesWhollyInIt) {
  const std::vector<data::Box> windows = {{0, 0, 0.5, 0.5}, {0.25, 0.25, 0.5, 0.5}};
  EXPECT_EQ(holds(windows, {{0.3, 0.3, 0.1, 0.1}}), (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(holds(windows, {{0.45, 0.3, 0.1, 0.1}}), (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(holds(windows, {}), (std::vector<uint8_t>{0, 0}));
}

TEST(MilWindows, TissueHasCellsInPositiveSlidesAlone) {
  const auto slides = data::generate_tissue(8, 1), again = data::generate_tissue(8, 1);
  for (size_t i = 0; i < slides.size(); ++i) {
    EXPECT_EQ(slides[i].positive, i % 2 == 1);
    EXPECT_EQ(slides[i].cells.empty(), !slides[i].positive);
    EXPECT_EQ(slides[i].image.pixels, again[i].image.pixels);
    // Every cell lies whole in some window, so that there is something to find.
    const auto held = holds(places(slides[i].image, {.side = 32, .stride = 16}), slides[i].cells);
    EXPECT_EQ(std::count(held.begin(), held.end(), 1) > 0, slides[i].positive);
  }
}

TEST(MilWindows, PositionsReachTheWeights) {
  torch::manual_seed(1);
  Model model({.side = 16, .filters = 4, .hidden = 8, .attention = 4, .channels = 3, .places = 2});
  model.eval();
  const torch::NoGradGuard guard;
  torch::Tensor windows = torch::zeros({2, 3 * 256 + 2});
  const torch::Tensor offsets = torch::tensor({0, 2}, torch::kInt32);
  EXPECT_NEAR(model.weights_of({windows, offsets})[0].item<double>(), 0.5, 1e-6);
  windows[0][3 * 256] = 1;
  EXPECT_GT(std::abs(model.weights_of({windows, offsets})[0].item<double>() - 0.5), 1e-4);
}

class MilWindowRuns : public test::Runs {
 protected:
  static TrainRequest quick() {
    return {.system = "mil",
            .set = {"windows=32", "stride=32", "bags=12", "test_bags=6", "epochs=1", "filters=4",
                    "hidden=8"}};
  }
};

TEST_F(MilWindowRuns, EveryVerbWorksOnFilesOfItsOwn) {
  generate(
      {.system = "mil", .set = {"windows=32", "bags=16", "test_bags=4"}, .out = base_ / "data"});
  ASSERT_TRUE(std::filesystem::exists(base_ / "data/1/slide00001.png"));
  const Json drawn = train("drawn", quick());
  EXPECT_TRUE(drawn.at("attention").contains("hit_rate"));
  TrainRequest request = quick();
  request.data = (base_ / "data").string();
  train("run", request);
  const std::string line = request.data + "/1/slide00001.png\n";
  check_every_verb("run", line);
  check_blank_line("run", line);
  systems::Run run = systems::open(base_ / "run");
  std::istringstream folder(request.data + "/0\n");
  std::ostringstream answers;
  predict(run, {folder, "input"}, answers);
  const std::string text = answers.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10)
      << "a picture of the folder each: " << text;
}

TEST_F(MilWindowRuns, APictureThatCannotBeReadIsLeftOut) {
  generate(
      {.system = "mil", .set = {"windows=32", "bags=16", "test_bags=4"}, .out = base_ / "data"});
  std::ofstream(base_ / "data/0/damaged.jpg", std::ios::binary) << "\xFF\xD8 damaged";
  TrainRequest request = quick();
  request.data = (base_ / "data").string();
  train("run", request);
  systems::Run run = systems::open(base_ / "run");
  std::istringstream folder(request.data + "/0\n");
  std::vector<std::string> refused;
  Input input{folder, "input", [&](const std::string& e) { refused.push_back(e); }};
  EXPECT_EQ(explain(run, &input).size(), 10u);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("damaged.jpg"), std::string::npos) << refused[0];
}

TEST_F(MilWindowRuns, WhatCannotBeLearnedFromIsRefused) {
  std::filesystem::create_directories(base_ / "own/1");
  std::ofstream(base_ / "own/1/a.png", std::ios::binary) << data::png_bytes(ramp(40, 40));
  TrainRequest request = quick();
  request.data = (base_ / "own").string();
  EXPECT_NE(said([&] {
              train("run", request);
            }).find("0 negative and 1 positive pictures, expected some of both"),
            std::string::npos);
  request.set[0] = "windows=8";
  EXPECT_EQ(said([&] { train("run", request); }), "--set windows=8: expected 0, or at least 16");
}

}  // namespace
}  // namespace fovea::systems::mil
