// Squeeze-and-excitation: the model against its parts, the channel that counts, pictures of the user's
// own, and what is refused.
#include <gtest/gtest.h>
#include <png.h>
#include <torch/torch.h>

#include <functional>

#include "data/digits.h"
#include "data/generated/channels.h"
#include "data/pictures/idx.h"
#include "data/pictures/pictures.h"
#include "systems/squeeze_excitation/model.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::squeeze_excitation {
namespace {

using test::Runs;

TEST(SqueezeExcitation, GatesActBeforeTheAdditionOfAResidualBlock) {
  torch::manual_seed(1);
  Model model({.side = 6, .channels = 4, .layers = 2, .residual = true});
  model.eval();
  const torch::Tensor x = torch::randn({2, 1, 6, 6});
  const std::vector<Gated> places = model.look(x);
  ASSERT_EQ(places.size(), 2u);
  const auto gated = [](const Gated& g) { return g.before * g.gates.unsqueeze(2).unsqueeze(3); };
  const torch::Tensor first = gated(places[0]);
  const torch::Tensor second = torch::max_pool2d(torch::relu(first + gated(places[1])), 2);
  const auto p = model.named_parameters();
  const torch::Tensor expected =
      second.flatten(1).matmul(p["classifier.weight"].t()) + p["classifier.bias"];
  EXPECT_TRUE(torch::allclose(model.forward(x), expected, 1e-4, 1e-5));
}

// The maximum is taken first: the same, as gates are positive.
TEST(SqueezeExcitation, TheMaximumOfGatedChannelsGoesOn) {
  torch::manual_seed(2);
  Model model({.side = 5, .channels = 4, .layers = 2});
  const torch::Tensor x = torch::randn({3, 1, 5, 5});
  const std::vector<Gated> places = model.look(x);
  ASSERT_EQ(places.size(), 2u);
  const Gated& last = places[1];
  ASSERT_EQ(last.before.size(2), 5);
  const torch::Tensor on =
      torch::max_pool2d(last.before * last.gates.unsqueeze(2).unsqueeze(3), 2).flatten(1);
  const auto p = model.named_parameters();
  EXPECT_TRUE(torch::allclose(
      model.forward(x), on.matmul(p["classifier.weight"].t()) + p["classifier.bias"], 1e-4, 1e-5));
}

TEST(SqueezeExcitation, CountsWhatTheGatesCost) {
  const Model with({.side = 10, .channels = 8, .layers = 2, .reduction = 4}),
      without({.side = 10, .channels = 8, .layers = 2, .gated = false});
  const Cost a = with.cost(), b = without.cost();
  // Two gates of two layers 8 x 2 without biases; a mean and a product of 8 maps of 10 x 10 each.
  EXPECT_EQ(a.gate_parameters, 2 * 2 * 16);
  EXPECT_EQ(a.parameters - b.parameters, a.gate_parameters);
  EXPECT_EQ(a.gate_flops, 2 * (2 * 8 * 100 + 32));
  EXPECT_EQ(b.flops, (1 * 8 * 9 + 8 * 8 * 9) * 100 + 8 * 5 * 5 * 10);
  EXPECT_EQ(a.flops - b.flops, a.gate_flops);
  EXPECT_EQ(b.gate_flops + b.gate_parameters, 0);
}

// The label is that of the digit on the brighter ground.
TEST(SqueezeExcitation, GeneratedPicturesHaveOneChannelOnABrighterGround) {
  const data::MarkedChannels made = data::generate_channels(5, 30, 10, 3);
  ASSERT_EQ(made.useful.size(), 40u);
  const data::Digits& train = made.sets.train;
  const int64_t size = train.height * train.width;
  for (int64_t i = 0; i < train.count; ++i)
    for (int64_t c = 0; c < 5; ++c) {
      const auto* from = train.pixels.data() + (i * 5 + c) * size;
      const int darkest = *std::min_element(from, from + size);
      EXPECT_EQ(darkest > 0, c == made.useful[static_cast<size_t>(i)]);
    }
}

class SqueezeRuns : public Runs {
 protected:
  static void write_png(const std::filesystem::path& path, const std::vector<uint8_t>& pixels,
                        int width, int height) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = PNG_FORMAT_GRAY;
    ASSERT_TRUE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr));
  }
  // CLASS/*.png: `dark` and `light` pictures, each of a size of its own.
  std::string folder(int pictures) const {
    for (int i = 0; i < pictures; ++i) {
      const auto of_class = base_ / "own" / (i % 2 ? "light" : "dark");
      std::filesystem::create_directories(of_class);
      const int side = 10 + i % 5;
      std::vector<uint8_t> pixels(static_cast<size_t>(side * (side + 2)), i % 2 ? 200 : 40);
      pixels[static_cast<size_t>(i)] = 120;  // no two alike
      write_png(of_class / (std::to_string(i) + ".png"), pixels, side, side + 2);
    }
    return (base_ / "own").string();
  }
  static std::string error(const std::function<void()>& run) {
    try {
      run();
    } catch (const InvalidArgument& refused) {
      return refused.what();
    }
    return "";
  }
  static std::string predicted(systems::Run& run, const std::string& lines) {
    std::istringstream in(lines);
    std::ostringstream out;
    systems::predict(run, {in, "input"}, out);
    return out.str();
  }
};

const std::vector<std::string> kSmall = {"epochs=8",      "channels=8", "layers=2",
                                         "pictures=2000", "inputs=4",   "rate=0.01"};

TEST_F(SqueezeRuns, GatesRankTheChannelThatCountsFirst) {
  const Json report = train("run", {.system = "squeeze-excitation", .set = kSmall, .threads = 1});
  EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.9) << report.dump();
  // A picture of four channels is a folder of four files.
  const data::MarkedChannels made = data::generate_channels(4, 2000, 1000, 1);
  std::filesystem::create_directories(base_ / "one");
  const int64_t size = made.sets.test.height * made.sets.test.width;
  for (int64_t c = 0; c < 4; ++c)
    write_png(
        base_ / "one" / (std::to_string(c) + ".png"),
        {made.sets.test.pixels.begin() + c * size, made.sets.test.pixels.begin() + (c + 1) * size},
        14, 14);
  check_every_verb("run", (base_ / "one").string() + "\n");
  check_blank_line("run", (base_ / "one").string() + "\n");
  systems::Run run = systems::open(base_ / "run");
  EXPECT_NE(predicted(run, (base_ / "one").string() + "\n").find("has the largest gate"),
            std::string::npos);
  EXPECT_NE(error([&] {
              predicted(run, (base_ / "one" / "0.png").string() + "\n");
            }).find("1 picture, expected 4: one for each channel"),
            std::string::npos);
}

TEST_F(SqueezeRuns, PicturesOfTheUsersOwnInFoldersOfClasses) {
  const std::string own = folder(60);
  const Json report = train("run", {.system = "squeeze-excitation",
                                    .data = own,
                                    .set = {"epochs=8", "channels=4", "layers=2", "side=12",
                                            "batch=8", "rate=0.02", "residual=true"},
                                    .threads = 1});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.9) << report.dump();
  check_every_verb("run", own + "/light/1.png\n");
  systems::Run run = systems::open(base_ / "run");
  EXPECT_NE(predicted(run, own + "/light/1.png\n").find("\tlight\t"), std::string::npos);
  EXPECT_NE(predicted(run, own + "/dark/0.png\n").find("\tdark\t"), std::string::npos);
  // Another folder is judged by the names of its classes; one that nobody learned is refused.
  std::filesystem::rename(base_ / "own" / "dark", base_ / "own" / "blue");
  EXPECT_NE(error([&] {
              systems::evaluate(base_ / "run", own, "test");
            }).find("class 'blue', expected one that the run knows"),
            std::string::npos);
}

TEST_F(SqueezeRuns, APictureOfAnotherSizeIsRefusedInIdxFilesAndScaledOtherwise) {
  const auto files = [&](const std::string& name, int64_t side) {
    data::Digits digits{.count = 40, .height = side, .width = side};
    for (int64_t i = 0; i < 40; ++i) {
      digits.labels.push_back(i % 2);
      digits.pixels.insert(digits.pixels.end(), static_cast<size_t>(side * side),
                           static_cast<uint8_t>(i % 2 ? 200 : 20));
      digits.pixels[static_cast<size_t>(i * side * side + i)] = 120;  // no two alike
    }
    std::filesystem::create_directories(base_ / name);
    for (const auto& [file, bytes] : data::mnist_files({digits, digits}))
      std::ofstream(base_ / name / file) << bytes;
    return (base_ / name).string();
  };
  train("run", {.system = "squeeze-excitation",
                .data = files("ten", 10),
                .set = {"epochs=1", "channels=2", "layers=1"},
                .threads = 1});
  EXPECT_NE(error([&] { systems::evaluate(base_ / "run", files("nine", 9), "test"); })
                .find("pictures of 9 x 9 pixels and 1 channels, expected 10 x 10 and 1 as in "
                      "training"),
            std::string::npos);
  write_png(base_ / "wide.png", std::vector<uint8_t>(30 * 20, 200), 30, 20);
  systems::Run run = systems::open(base_ / "run");
  EXPECT_FALSE(predicted(run, (base_ / "wide.png").string() + "\n").empty());
}

TEST_F(SqueezeRuns, RefusesFoldersThatHoldNoClasses) {
  std::filesystem::create_directories(base_ / "empty");
  EXPECT_NE(error([&] {
              data::read_pictures((base_ / "empty").string(), 8);
            }).find("0 folders in it, expected MNIST's four IDX files or a folder"),
            std::string::npos);
  std::filesystem::create_directories(base_ / "empty" / "a");
  EXPECT_NE(error([&] {
              data::read_pictures((base_ / "empty").string(), 8);
            }).find("empty/a: no PNG or JPEG in it"),
            std::string::npos);
}

TEST_F(SqueezeRuns, WithoutGatesItIsAPlainNetwork) {
  const Json report =
      train("run", {.system = "squeeze-excitation",
                    .set = {"epochs=1", "channels=4", "layers=1", "pictures=100", "gate=off"},
                    .threads = 1});
  EXPECT_EQ(report.at("metrics").at("gate_parameters").get<double>(), 0);
  EXPECT_NO_THROW({
    systems::Run run = systems::open(base_ / "run");
    EXPECT_EQ(systems::explain(run, nullptr).size(), 1u);
  });
}

TEST_F(SqueezeRuns, FashionPictures) {
  const std::string fashion = data_folder("fashion_mnist_subset");
  if (fashion.empty()) GTEST_SKIP() << "fashion_mnist_subset is absent (FOVEA_DATA)";
  const Json report = train("run", {.system = "squeeze-excitation",
                                    .data = fashion,
                                    .set = {"epochs=1", "channels=8", "layers=2", "rate=0.01"},
                                    .threads = 1});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.5) << report.dump();
}

}  // namespace
}  // namespace fovea::systems::squeeze_excitation
