// Multiple-instance learning: the pooling against loops, odd bags, pictures of the user's own,
// short runs.
#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
// After <cstdio>: its header uses FILE without including it.
#include <jpeglib.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>

#include "data/digits.h"
#include "data/pictures/image.h"
#include "data/random.h"
#include "systems/mil/model.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::mil {
namespace {

using test::Runs;

const std::vector<std::string> kPools = {"attention",      "gated",        "embedding_max",
                                         "embedding_mean", "instance_max", "instance_mean"};

data::Packed bags_of(const torch::Tensor& values, std::vector<int64_t> offsets) {
  return {values, torch::tensor(at::ArrayRef<int64_t>(offsets)).to(torch::kInt32)};
}

double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(Mil, BeginsWithGlorotsWeightsAndNoBias) {
  torch::manual_seed(1);
  const Model model({.inputs = 166, .attention = 64, .pool = "gated"});
  for (const auto& [name, parameter] : model.named_parameters().pairs()) {
    const double largest = parameter.abs().max().item<double>();
    if (name.ends_with("bias")) {
      EXPECT_EQ(largest, 0) << name;
      continue;
    }
    const double fans =
        static_cast<double>(parameter.size(0) + (parameter.dim() == 2 ? parameter.size(1) : 1));
    EXPECT_LE(largest, std::sqrt(6 / fans)) << name;
    EXPECT_GE(largest, 0.9 * std::sqrt(6 / fans)) << name;
  }
}

TEST(Mil, AttentionEqualsItsFormula) {
  torch::manual_seed(1);
  for (const std::string pool : {"attention", "gated"}) {
    Model model({.inputs = 5, .attention = 7, .pool = pool});
    model.eval();
    const torch::Tensor x = torch::randn({6, 5});
    const auto p = model.named_parameters();
    torch::NoGradGuard guard;
    for (const auto& [name, parameter] : p.pairs())
      if (name.ends_with("bias")) torch::nn::init::normal_(parameter);
    const torch::Tensor h = model.embed(x);
    torch::Tensor inner = torch::tanh(h.matmul(p["v.weight"].t()) + p["v.bias"]);
    if (pool == "gated") inner = inner * torch::sigmoid(h.matmul(p["u.weight"].t()) + p["u.bias"]);
    const torch::Tensor a = inner.matmul(p["w"]).softmax(0);
    const torch::Tensor score =
        a.matmul(h).dot(p["classifier.weight"][0]) + p["classifier.bias"][0];
    const data::Packed bag = bags_of(x, {0, 6});
    EXPECT_LT(gap(model.weights_of(bag), a), 1e-6);
    EXPECT_NEAR(model.forward(bag)[0][1].item<double>(), score.item<double>(), 1e-5);
  }
}

// Order of instances, empty bags, bags of one, and bags that do not feel each other.
TEST(Mil, ShufflingChangesNothingAndBagsStandAlone) {
  torch::manual_seed(2);
  for (const std::string& pool : kPools) {
    Model model({.inputs = 5, .attention = 7, .pool = pool});
    model.eval();
    const torch::Tensor x = torch::randn({9, 5}),
                        order = torch::tensor({3, 0, 4, 1, 2, 8, 6, 5, 7});
    const torch::Tensor plain = model.forward(bags_of(x, {0, 5, 5, 9}));
    EXPECT_LT(gap(plain, model.forward(bags_of(x.index_select(0, order), {0, 5, 5, 9}))), 1e-5)
        << pool;
    EXPECT_LT(gap(plain[2], model.forward(bags_of(x.slice(0, 5), {0, 4}))[0]), 1e-5) << pool;
    EXPECT_TRUE(plain.isfinite().all().item<bool>()) << pool << ": the empty bag";
    EXPECT_EQ(model.weights_of(bags_of(x.slice(0, 0, 1), {0, 1}))[0].item<float>(), 1.0f)
        << pool << ": a bag of one";
  }
}

TEST(Mil, AnEmptyBagBringsNoGradientAndALargeOneFits) {
  torch::manual_seed(3);
  Model model({.inputs = 5, .attention = 7, .pool = "gated"});
  model.eval();
  model.forward(bags_of(torch::zeros({0, 5}), {0, 0})).sum().backward();
  EXPECT_FALSE(model.named_parameters()["w"].grad().defined() &&
               model.named_parameters()["w"].grad().abs().sum().item<double>() != 0);
  const data::Packed large = bags_of(torch::randn({10000, 5}), {0, 10000});
  EXPECT_NEAR(model.weights_of(large).sum().item<double>(), 1, 1e-4);
}

class Bags : public Runs {
 protected:
  static constexpr int kSide = 28;

  static void write_png(const std::filesystem::path& path, const uint8_t* pixels) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = image.height = kSide;
    image.format = PNG_FORMAT_GRAY;
    ASSERT_TRUE(png_image_write_to_file(&image, path.c_str(), 0, pixels, 0, nullptr));
  }
  static void write_jpeg(const std::filesystem::path& path, const uint8_t* pixels, int width,
                         int height) {
    jpeg_compress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    std::FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    jpeg_stdio_dest(&info, file);
    info.image_width = static_cast<JDIMENSION>(width);
    info.image_height = static_cast<JDIMENSION>(height);
    info.input_components = 1;
    info.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 98, TRUE);
    jpeg_start_compress(&info, TRUE);
    for (int y = 0; y < height; ++y) {
      auto* row = const_cast<uint8_t*>(pixels + y * width);
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    std::fclose(file);
  }
  // Folders LABEL/BAG of drawn digits; those of label 1 have a nine.
  std::filesystem::path pictures(int bags) const {
    const data::Digits digits = data::generate_digits(10 * 40, 5);
    data::Random random(6);
    for (int bag = 0; bag < bags; ++bag) {
      const auto folder =
          base_ / "pictures" / std::to_string(bag % 2) / ("bag" + std::to_string(bag));
      std::filesystem::create_directories(folder);
      for (int i = 0; i < 4; ++i) {
        const bool nine = bag % 2 && i == bag % 4;
        const auto which =
            static_cast<int64_t>(10 * random.below(40) + (nine ? 9 : random.below(9)));
        write_png(folder / (std::to_string(i) + ".png"),
                  digits.pixels.data() + which * kSide * kSide);
      }
    }
    return base_ / "pictures";
  }
  static void expect_error(const std::string& words, const std::function<void()>& run) {
    try {
      run();
      ADD_FAILURE() << "expected: " << words;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

const std::vector<std::string> kSmall = {"epochs=6",  "bags=120",   "test_bags=100", "filters=8",
                                         "hidden=64", "rate=0.002", "batch=4"};

TEST_F(Bags, FindsTheNinesInGeneratedBags) {
  const Json report = train("run", {.system = "mil", .set = kSmall, .threads = 1});
  EXPECT_GE(report.at("metrics").at("auc").get<double>(), 0.95);
  EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.9);
  check_every_verb("run", (pictures(2) / "1" / "bag1").string() + "\n");
}

TEST_F(Bags, EveryPoolingLearns) {
  for (const std::string& pool : kPools) {
    const TrainRequest request{
        .system = "mil",
        .set = {"pool=" + pool, "epochs=3", "bags=80", "mean_size=4", "size_deviation=1",
                "test_bags=100", "filters=8", "hidden=64", "rate=0.002", "batch=4"},
        .threads = 1};
    EXPECT_GE(train(pool, request).at("metrics").at("auc").get<double>(), 0.7) << pool;
  }
}

TEST_F(Bags, TablesAreStandardisedAndPredicted) {
  std::string csv = "bag,label,x,y\n";
  data::Random random(7);
  for (int bag = 0; bag < 60; ++bag)
    for (int i = 0; i < 5; ++i)
      csv += "b" + std::to_string(bag) + "," + std::to_string(bag % 2) + "," +
             std::to_string(1000 + (bag % 2 && i == 2 ? 50 : 0) + random.normal()) + "," +
             std::to_string(random.normal()) + "\n";
  std::ofstream(base_ / "bags.csv") << csv;
  const Json report =
      train("run", {.system = "mil",
                    .data = (base_ / "bags.csv").string(),
                    .set = {"epochs=15", "rate=0.002", "attention=16", "dropout=0.1"},
                    .threads = 1});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.9);
  std::string large = "bag,x,y\n";
  for (int i = 0; i < 10000; ++i)
    large += std::string("huge,") + (i == 4321 ? "1050" : "1000") + ",0\n";
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines(large);
  std::ostringstream answers;
  systems::predict(run, {lines, "input"}, answers);
  EXPECT_NE(answers.str().find("instance 4322 of 10000"), std::string::npos) << answers.str();

  // Columns go by name, and an empty bag has as many fields as another.
  const auto predicted = [&](const std::string& table) {
    std::istringstream rows(table);
    std::ostringstream out;
    systems::predict(run, {rows, "input"}, out);
    return out.str();
  };
  EXPECT_EQ(predicted("bag,x,y\na,1050,0.5\na,1000,0.25\n"),
            predicted("bag,y,x\na,0.5,1050\na,0.25,1000\n"));
  expect_error("input:1: no column 'x'", [&] { predicted("bag,u,v\na,1,2\n"); });
  const std::string empty = predicted("bag,x,y\nnone,,\n");
  EXPECT_EQ(std::count(empty.begin(), empty.end(), '\t'), 3) << empty;

  // Of a large bag the heaviest instances are drawn, wherever they lie.
  std::istringstream again(large);
  Input input{again, "input"};
  const auto pictures = systems::explain(run, &input);
  ASSERT_EQ(pictures.at(0).keys.size(), 200u);
  EXPECT_NE(pictures[0].queries.at(0).text.find("200 of 10000 instances"), std::string::npos);
  const auto heavy = [](const explain::Item& item) { return item.text.starts_with("4322: x "); };
  EXPECT_TRUE(std::any_of(pictures[0].keys.begin(), pictures[0].keys.end(), heavy))
      << pictures[0].keys.front().text;
}

// Only a folder with nothing in it is a bag of nothing.
TEST_F(Bags, RefusesAFolderOfOtherThings) {
  std::filesystem::create_directories(base_ / "nothing");
  std::filesystem::create_directories(base_ / "others" / "inner");
  EXPECT_TRUE(data::read_image_bag((base_ / "nothing").string(), kSide).empty());
  expect_error("others: no PNG or JPEG in it",
               [&] { data::read_image_bag((base_ / "others").string(), kSide); });
  std::filesystem::create_directories(base_ / "labels" / "cat" / "bag0");
  expect_error("labels/cat: expected 0 or 1, a label",
               [&] { data::read_image_bags((base_ / "labels").string(), kSide); });
}

TEST_F(Bags, RefusesAPictureOutsideABag) {
  const auto folder = pictures(4);
  std::filesystem::copy(folder / "1" / "bag1" / "0.png", folder / "1" / "loose.png");
  expect_error("1/loose.png: a picture outside a bag",
               [&] { data::read_image_bags(folder.string(), kSide); });
}

TEST_F(Bags, RefusesToLearnFromOneLabel) {
  const std::string table = (base_ / "one.csv").string();
  std::ofstream(table) << "bag,label,f0\na,1,2\nb,1,3\nc,1,4\nd,1,5\ne,1,6\n";
  expect_error("one.csv: every bag has label 1, expected bags of both labels",
               [&] { train("run", {.system = "mil", .data = table, .threads = 1}); });
}

TEST_F(Bags, PicturesOfTheUsersOwn) {
  const std::string folder = pictures(40).string();
  const Json report = train("run", {.system = "mil",
                                    .data = folder,
                                    .set = {"epochs=8", "filters=8", "hidden=64", "rate=0.002"},
                                    .threads = 1});
  EXPECT_GE(report.at("metrics").at("auc").get<double>(), 0.7);
  check_every_verb("run", folder + "/1/bag1\n");
  check_blank_line("run", folder + "/1/bag1\n");

  // A folder that is not there is named, and the next line is answered.
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines(folder + "/1/bag1\nnowhere\n" + folder + "/1/bag1\n");
  std::ostringstream answers;
  std::vector<std::string> refused;
  systems::predict(
      run, {lines, "input", [&](const std::string& error) { refused.push_back(error); }}, answers);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("nowhere"), std::string::npos) << refused[0];
  const std::string whole = answers.str(), one = whole.substr(0, whole.find('\n') + 1);
  EXPECT_EQ(whole, one + "\n" + one);
  EXPECT_TRUE(
      std::regex_search(one, std::regex("instance ([1-4]) of 4 \\([0-3].png\\), weight [01]")))
      << one;
}

TEST_F(Bags, PngAndJpegShowTheSamePicture) {
  std::vector<uint8_t> pixels(56 * 56);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>((i / 56 / 14 + i % 56 / 14) % 2 ? 220 : 30);
  write_jpeg(base_ / "board.jpg", pixels.data(), 56, 56);
  const data::Image image = data::read_image((base_ / "board.jpg").string());
  ASSERT_EQ(image.pixels.size(), pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) ASSERT_NEAR(image.pixels[i], pixels[i], 12) << i;
  const data::Image small = data::scaled(image, 4);
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(small.pixels[i], (i / 4 + i % 4) % 2 ? 220 : 30, 6);
  write_png(base_ / "digit.png", data::generate_digits(1, 3).pixels.data());
  EXPECT_EQ(data::read_image((base_ / "digit.png").string()).pixels,
            data::generate_digits(1, 3).pixels);
  // Cut short, a JPEG decodes to half a picture and a warning: refused all the same.
  std::filesystem::resize_file(base_ / "board.jpg",
                               std::filesystem::file_size(base_ / "board.jpg") / 2);
  expect_error("a damaged JPEG file", [&] { data::read_image((base_ / "board.jpg").string()); });
}

TEST_F(Bags, RefusesDamagedPictures) {
  const std::filesystem::path folder = pictures(4);
  const auto victim = folder / "0" / "bag0" / "1.png";
  const auto size = std::filesystem::file_size(victim);
  std::filesystem::resize_file(victim, size / 2);
  expect_error("1.png: a damaged PNG file",
               [&] { train("run", {.system = "mil", .data = folder.string()}); });
  std::ofstream(victim) << "not a picture";
  expect_error("1.png: neither PNG nor JPEG",
               [&] { train("run", {.system = "mil", .data = folder.string()}); });
  std::ofstream(victim) << "\xFF\xD8\xFF\xE0 and no more";
  expect_error("1.png: a damaged JPEG file",
               [&] { train("run", {.system = "mil", .data = folder.string()}); });
  expect_error("expected folders LABEL/BAG", [&] {
    std::filesystem::create_directories(base_ / "empty");
    train("run", {.system = "mil", .data = (base_ / "empty").string()});
  });
}

TEST_F(Bags, MnistBags) {
  const std::string mnist = data_folder("mnist");
  if (mnist.empty()) GTEST_SKIP() << "mnist is absent (FOVEA_DATA)";
  TrainRequest request{.system = "mil", .data = mnist, .set = kSmall, .threads = 1};
  const Json report = train("run", request);
  EXPECT_GE(report.at("metrics").at("auc").get<double>(), 0.65);
}

TEST_F(Bags, ClassicTable) {
  const std::string tables = data_folder("mil");
  if (tables.empty()) GTEST_SKIP() << "mil is absent (FOVEA_DATA)";
  const Json report = train("run", {.system = "mil",
                                    .data = tables + "/musk1.csv.gz",
                                    .set = {"epochs=20", "attention=64"},
                                    .threads = 1});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.65);
}

}  // namespace
}  // namespace fovea::systems::mil
