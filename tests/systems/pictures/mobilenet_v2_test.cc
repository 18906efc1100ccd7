// MobileNetV2 of 8-bit numbers against whole-number arithmetic, its file against damage, and with the real
// weights the features of Flickr8k.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "data/captions/caption_set.h"
#include "data/files/file.h"
#include "data/random.h"
#include "systems/backbone/mobilenet_v2.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::backbone {
namespace {

using data::QuantisedOperator;

constexpr const char* kText =
    "# op out in\n"
    "input 9 shape=5x5x3 scale=0.0078125 zp=128\n"
    "CONV 1 9 out_shape=3x3x4 out_scale=0.05 out_zp=10 stride=2 pad=SAME act=0 w_shape=4x3x3x3 "
    "w_scale=0.02 "
    "w_zp=120 w_off=0 b_scale=1 b_off=108\n"
    "DWCONV 2 1 out_shape=3x3x4 out_scale=0.06 out_zp=3 stride=1 pad=SAME act=0 w_shape=1x3x3x4 "
    "w_scale=0.01 "
    "w_zp=130 w_off=124 b_scale=1 b_off=160\n"
    "ADD 3 1,2 out_shape=3x3x4 out_scale=0.1 out_zp=20\n"
    "AVGPOOL 4 3 out_shape=1x1x4 out_scale=0.1 out_zp=20\n"
    "CONV 5 4 out_shape=1x1x2 out_scale=0.1 out_zp=50 stride=1 pad=SAME act=0 w_shape=2x1x1x4 "
    "w_scale=0.03 "
    "w_zp=100 w_off=176 b_scale=1 b_off=184\n"
    "RESHAPE 6 5\nSOFTMAX 7 6\n";

std::string weights() {
  data::Random random(4);
  std::string out(192, '\0');
  for (char& byte : out) byte = static_cast<char>(random.below(256));
  for (const size_t at : {108, 160, 184})  // biases: small whole numbers
    for (size_t i = at; i < at + (at == 184 ? 8u : 16u); i += 4)
      out.replace(i, 4, std::string{static_cast<char>(random.below(200)), 0, 0, 0});
  return out;
}

struct Whole {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<int64_t> values;
};

// With sums of whole numbers, as the chips that such networks are made for have them.
using Values = std::map<int64_t, std::pair<Whole, data::QuantisedTensor>>;
Values all_in_whole_numbers(const data::QuantisedNetwork& network, const Whole& picture,
                            size_t last) {
  Values values;
  values[network.input] = {picture, network.in};
  Whole out;
  for (size_t k = 0; k <= last; ++k) {
    const QuantisedOperator& one = network.operators[k];
    const auto& [in, of] = values.at(one.inputs[0]);
    out = {one.out.height, one.out.width, one.out.channels, {}};
    for (int64_t y = 0; y < out.height; ++y)
      for (int64_t x = 0; x < out.width; ++x)
        for (int64_t c = 0; c < out.channels; ++c) {
          double real = 0;
          if (one.kind == QuantisedOperator::Kind::kAdd) {
            const auto& [other, of_other] = values.at(one.inputs[1]);
            const auto at = static_cast<size_t>((y * out.width + x) * out.channels + c);
            real = static_cast<double>(in.values[at] - of.zero) * of.scale +
                   static_cast<double>(other.values[at] - of_other.zero) * of_other.scale;
          } else if (one.kind == QuantisedOperator::Kind::kMeanPool) {
            int64_t sum = 0;
            for (int64_t i = 0; i < in.height * in.width; ++i)
              sum += in.values[static_cast<size_t>(i * in.channels + c)] - of.zero;
            real = static_cast<double>(sum) / static_cast<double>(in.height * in.width) * of.scale;
          } else {
            const std::vector<int64_t>& w = one.weight_shape;
            const bool depthwise = one.kind == QuantisedOperator::Kind::kDepthwise;
            const auto before = [&](int64_t size, int64_t outs, int64_t taps) {
              return std::max<int64_t>(0, (outs - 1) * one.stride + taps - size) / 2;
            };
            int64_t sum = one.biases[static_cast<size_t>(c)];
            for (int64_t i = 0; i < w[1]; ++i)
              for (int64_t j = 0; j < w[2]; ++j) {
                const int64_t v = y * one.stride + i - before(in.height, out.height, w[1]),
                              u = x * one.stride + j - before(in.width, out.width, w[2]);
                if (v < 0 || u < 0 || v >= in.height || u >= in.width) continue;
                for (int64_t d = 0; d < (depthwise ? 1 : w[3]); ++d) {
                  const int64_t channel = depthwise ? c : d;
                  const int64_t weight = one.weights[static_cast<size_t>(
                      ((depthwise ? 0 : c) * w[1] * w[2] + i * w[2] + j) * w[3] + channel)];
                  sum +=
                      (in.values[static_cast<size_t>((v * in.width + u) * in.channels + channel)] -
                       of.zero) *
                      (weight - one.weight_zero);
                }
              }
            real = static_cast<double>(sum) * of.scale * one.weight_scale;
          }
          out.values.push_back(std::clamp<int64_t>(
              static_cast<int64_t>(std::nearbyint(real / one.out.scale)) + one.out.zero, 0, 255));
        }
    values[one.output] = {out, one.out};
  }
  return values;
}
Whole in_whole_numbers(const data::QuantisedNetwork& network, const Whole& picture, size_t last) {
  return all_in_whole_numbers(network, picture, last).at(network.operators[last].output).first;
}

Whole whole_of(const torch::Tensor& picture) {
  Whole out{picture.size(1), picture.size(2), picture.size(3), {}};
  const torch::Tensor flat = picture.flatten().contiguous();
  out.values.assign(flat.data_ptr<uint8_t>(), flat.data_ptr<uint8_t>() + flat.numel());
  return out;
}

TEST(MobileNetV2, IsWholeNumberArithmetic) {
  const data::QuantisedNetwork parsed =
      data::parse_quantised_network(kText, "n.txt", weights(), "n.bin");
  const MobileNetV2 network(parsed);
  EXPECT_EQ(network.side(), 5);
  EXPECT_EQ(network.grid(), 3);
  torch::manual_seed(3);
  for (int i = 0; i < 5; ++i) {
    const torch::Tensor picture = torch::randint(0, 256, {1, 5, 5, 3}, torch::kUInt8);
    const torch::Tensor found = network.features(picture).flatten();
    const Whole expected = in_whole_numbers(parsed, whole_of(picture), 2);
    for (int64_t k = 0; k < found.size(0); ++k)
      EXPECT_NEAR(found[k].item<double>(),
                  static_cast<double>(expected.values[static_cast<size_t>(k)]), 1);
    const Whole scores = in_whole_numbers(parsed, whole_of(picture), 4);
    EXPECT_NEAR(network.scores(picture)[0][1].item<double>(),
                static_cast<double>(scores.values[1] - 50) * 0.1, 0.11);
  }
}

std::string refused(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  try {
    data::parse_quantised_network(text, "n.txt", weights(), "n.bin");
  } catch (const data::FileError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(QuantisedNetworkFile, MistakesAreNamed) {
  EXPECT_EQ(refused(kText, "w_off=176", "w_off=190"),
            "n.txt:7: w_off=190: 8 bytes from there on, but n.bin has 192");
  EXPECT_EQ(refused(kText, "ADD 3 1,2", "ADD 3 1,8"),
            "n.txt:5: reads 8, expected a number that was written above");
  EXPECT_EQ(refused(kText, "w_scale=0.02", "w_scale=0"),
            "n.txt:3: w_scale=0, expected a positive number");
  EXPECT_NE(
      refused(kText, "out_shape=3x3x4", "out_shape=4x3x4").find("n.txt:3: weights of 4x3x3x3"),
      std::string::npos);
  EXPECT_NE(refused(kText, "AVGPOOL", "MAXPOOL").find("expected CONV"), std::string::npos);
  EXPECT_NE(refused(kText, "pad=SAME", "pad=VALID").find("expected pad=SAME"), std::string::npos);
  EXPECT_NE(refused(kText, "stride=2", "strid=2").find("no stride="), std::string::npos);
}

TEST(Squashed, IsAMeanWhereAPictureShrinks) {
  data::Image image{4, 4, 1, std::vector<uint8_t>(16, 100)};
  EXPECT_EQ(squashed(image, 2)[0][0][0][0].item<int>(), 100);
  EXPECT_EQ(squashed(image, 2).sizes(), (std::vector<int64_t>{1, 2, 2, 3}));
}

// ---- with the real weights ----------------------------------------------------------------------

class RealBackbone : public test::Runs {
 protected:
  void SetUp() override {
    Runs::SetUp();
    folder_ = data_folder("pretrained/mobilenet_v2");
    if (folder_.empty()) GTEST_SKIP() << "pretrained/mobilenet_v2 is absent (FOVEA_DATA)";
  }
  std::string folder_;
};

TEST_F(RealBackbone, FeaturesAreThoseOfWholeNumbers) {
  const data::QuantisedNetwork parsed = data::read_quantised_network(folder_);
  const MobileNetV2 network(folder_);
  EXPECT_EQ(network.classes().size(), 1001u);
  data::Random random(1);
  data::Image image{64, 48, 3, {}};
  for (int i = 0; i < 64 * 48; ++i)
    for (int c = 0; c < 3; ++c)
      image.pixels.push_back(
          static_cast<uint8_t>((i % 64) * 4 / (c + 1) + static_cast<int>(random.below(30))));
  const torch::Tensor picture = squashed(image, 224);
  const torch::Tensor found = network.features(picture).flatten().to(torch::kFloat64);
  size_t last = 0;
  while (parsed.operators[last + 1].kind != QuantisedOperator::Kind::kMeanPool) ++last;
  const Values values = all_in_whole_numbers(parsed, whole_of(picture), last);
  // Each operator, given what whole numbers gave it: at most a step apart, and seldom.
  for (size_t k = 0; k <= last; ++k) {
    const QuantisedOperator& one = parsed.operators[k];
    if (one.kind == QuantisedOperator::Kind::kAdd) continue;
    const auto& [in, of] = values.at(one.inputs[0]);
    QuantisedOperator mean{.kind = QuantisedOperator::Kind::kMeanPool,
                           .output = -1,
                           .inputs = {one.output},
                           .out = one.out};
    const MobileNetV2 alone(data::QuantisedNetwork{one.inputs[0], of, {one, mean}});
    const std::vector<uint8_t> bytes(in.values.begin(), in.values.end());
    const torch::Tensor given = torch::from_blob(
        const_cast<uint8_t*>(bytes.data()), {1, in.height, in.width, in.channels}, torch::kUInt8);
    const torch::Tensor out = alone.features(given).flatten().to(torch::kInt64);
    const torch::Tensor expected = torch::tensor(values.at(one.output).first.values, torch::kInt64);
    const torch::Tensor steps = (out - expected).abs();
    EXPECT_LE(steps.max().item<int64_t>(), 1) << "operator " << k;
    EXPECT_LT(steps.to(torch::kFloat64).mean().item<double>(), 0.01) << "operator " << k;
  }
  // Through fifty of them the roundings add up.
  const torch::Tensor expected =
      torch::tensor(values.at(parsed.operators[last].output).first.values, torch::kFloat64);
  EXPECT_LT((found - expected).abs().mean().item<double>(), 2) << "of 255 steps";
  EXPECT_GT(torch::cosine_similarity(found, expected, 0).item<double>(), 0.97);
}

// Flickr8k's arrays were made of the whole photographs; its thumbnails have 96 x 96 pixels of them. What is made of a
// thumbnail is nearest to its own photograph's array, of a hundred.
TEST_F(RealBackbone, AThumbnailIsNearestToItsOwnPhotograph) {
  const std::string flickr8k = data_folder("flickr8k");
  if (flickr8k.empty()) GTEST_SKIP() << "flickr8k is absent (FOVEA_DATA)";
  const data::CaptionSet set = data::read_captions(flickr8k, {});
  ASSERT_EQ(set.thumbnails.size(), 100u);
  const std::string bytes = data::read_file(flickr8k + "/regions.pca.f32.gz");
  const torch::Tensor pca =
      torch::from_blob(const_cast<char*>(bytes.data()), {65, 1280}, torch::kFloat32);
  torch::Tensor stored = torch::empty({100, 49, 64});
  for (int64_t i = 0; i < 100; ++i)
    set.regions.copy(set.splits.test[static_cast<size_t>(i)], stored[i].data_ptr<float>());
  const MobileNetV2 network(folder_);
  int nearest = 0;
  constexpr int64_t kTried = 12;
  for (int64_t i = 0; i < kTried; ++i) {
    const torch::Tensor x =
        network.features(squashed(set.thumbnails[static_cast<size_t>(i)], 224))[0].to(
            torch::kFloat32) *
        network.scale();
    const torch::Tensor mine = (x - pca[0]).matmul(pca.slice(0, 1).t());
    const torch::Tensor cosine =
        torch::cosine_similarity(mine.flatten().unsqueeze(0), stored.flatten(1), 1);
    nearest += cosine.argmax().item<int64_t>() == i;
  }
  EXPECT_GE(nearest, kTried - 1);
}

// Whole photographs are not in the data, thumbnails of a hundred are. Where all five people said "dog", the
// network names one of ImageNet's breeds.
TEST_F(RealBackbone, ADogIsADog) {
  const std::string flickr8k = data_folder("flickr8k");
  if (flickr8k.empty()) GTEST_SKIP() << "flickr8k is absent (FOVEA_DATA)";
  const data::CaptionSet set = data::read_captions(flickr8k, {});
  const MobileNetV2 network(folder_);
  const auto place = [&](const char* name) {
    return std::find(network.classes().begin(), network.classes().end(), name) -
           network.classes().begin();
  };
  const auto first = place("Chihuahua"), last = place("Mexican hairless");
  ASSERT_EQ(last - first, 117) << "118 breeds, one after another";
  const auto says_dog = [](const std::string& caption) {
    const std::vector<std::string> words = data::caption_words(caption);
    return std::any_of(words.begin(), words.end(),
                       [](const std::string& word) { return word == "dog" || word == "dogs"; });
  };
  int dogs = 0, right = 0, others = 0, wrong = 0;
  for (size_t i = 0; i < set.thumbnails.size(); ++i) {
    const auto& captions = set.items[static_cast<size_t>(set.splits.test[i])].captions;
    const auto said = std::count_if(captions.begin(), captions.end(), says_dog);
    if (said != 0 && said != static_cast<int64_t>(captions.size())) continue;
    const auto found = network.scores(squashed(set.thumbnails[i], 224))[0].argmax().item<int64_t>();
    const bool breed = found >= first && found <= last;
    (said ? dogs : others) += 1;
    (said ? right : wrong) += breed;
  }
  std::printf("dogs: %d of %d are given a breed; other photographs: %d of %d\n", right, dogs, wrong,
              others);
  EXPECT_GE(dogs, 10);
  EXPECT_GE(right * 10, dogs * 7);
  EXPECT_LE(wrong * 10, others);
}

}  // namespace
}  // namespace fovea::systems::backbone
