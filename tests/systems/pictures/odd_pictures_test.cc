// A folder of pictures as people have them, through every verb of the systems that read pictures: what
// cannot be read is named, and everything else is learned from, answered and drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "data/pictures/image.h"
#include "systems/run/session.h"
#include "systems/system.h"
#include "tests/data/picture_bytes.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems {
namespace {

struct Reader {
  const char* system;
  std::vector<std::string> set;
};

class OddPictures : public test::Runs, public testing::WithParamInterface<Reader> {
 protected:
  void SetUp() override {
    test::Runs::SetUp();
    const data::Pixels rgb(3 * 64, 90), clear(4 * 64, 60), inks(4 * 64, 120), deep(2 * 64, 200),
        wide(3 * 20000 * 10, 70);
    const std::string turned = std::string("Exif\0\0", 6) + data::tiff(6, false),
                      photo = data::bytes_of({8, 8, JCS_RGB, 3, rgb});
    good_ = {{"accents é.JPG", photo},
             {"alpha.png", data::png_of(PNG_FORMAT_RGBA, 8, 8, clear.data())},
             {"cmyk.jpg", data::bytes_of({8, 8, JCS_CMYK, 4, inks})},
             {"deep.png", data::deep_png_of(8, 8, deep.data())},
             {"one.png", data::png_of(PNG_FORMAT_RGB, 1, 1, rgb.data())},
             {"turned.jpg", data::bytes_of({8, 8, JCS_RGB, 3, rgb, turned})},
             {"wide.png", data::png_of(PNG_FORMAT_RGB, 20000, 10, wide.data())}};
    for (int i = 0; i < 24; ++i) {
      const data::Pixels plain(3 * 64, static_cast<uint8_t>(10 * i));
      good_.emplace("p" + std::to_string(i) + ".png",
                    data::png_of(PNG_FORMAT_RGB, 16, 4, plain.data()));
    }
    bad_ = {{"broken.jpg", photo.substr(0, photo.size() / 2)}, {"film.gif", "GIF89a"}};
    photos_ = base_ / "photos";
    for (const auto& files : {good_, bad_})
      for (const auto& [name, bytes] : files)
        put(name.size() % 2 ? "0/" + name : "1/" + name, bytes);
  }

  void put(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((photos_ / name).parent_path());
    std::ofstream(photos_ / name, std::ios::binary) << bytes;
  }

  // A line for each picture in the folder's two folders, the bad ones too.
  std::string lines(
      const std::function<std::string(const std::string& name, size_t i)>& line) const {
    std::string out;
    size_t i = 0;
    for (const auto& files : {good_, bad_})
      for (const auto& [name, bytes] : files)
        out += line(name.size() % 2 ? "0/" + name : "1/" + name, i++) + "\n";
    return out;
  }

  std::map<std::string, std::string> good_, bad_;
  std::filesystem::path photos_;
};

// Whether one of the pictures is at least so many times as wide as high.
bool shows(const std::vector<explain::Explanation>& drawn, int times) {
  return std::any_of(drawn.begin(), drawn.end(), [&](const explain::Explanation& one) {
    return one.picture && one.picture->width >= times * one.picture->height;
  });
}

TEST_P(OddPictures, AreReadOrNamed) {
  put("captions.tsv", lines([](const std::string& name, size_t i) {
        return name + (i % 2 ? "\ta dark picture" : "\tdark|picture");
      }));
  put("recipes.jsonl", lines([](const std::string& name, size_t i) {
        Json recipe{{"picture", name}};
        recipe["ingredients"] = i % 2 ? Json::array({"peas", "salt"}) : Json::array();
        recipe["steps"] = Json::array({"boil the peas"});
        return recipe.dump();
      }));
  train("run", {.system = GetParam().system, .data = photos_.string(), .set = GetParam().set});

  systems::Run run = systems::open(base_ / "run");
  std::vector<std::string> refused;
  const auto asked = [&](std::istringstream& folder) {
    return Input{folder, "input", [&](const std::string& e) { refused.push_back(e); }};
  };
  std::istringstream folder(photos_.string() + "\n"), again(photos_.string() + "\n");
  std::ostringstream answers;
  predict(run, asked(folder), answers);
  ASSERT_EQ(refused.size(), bad_.size());
  EXPECT_NE(refused[0].find("broken.jpg: a damaged JPEG file"), std::string::npos) << refused[0];
  EXPECT_NE(refused[1].find("film.gif: a GIF picture"), std::string::npos) << refused[1];
  for (const auto& [name, bytes] : good_)
    EXPECT_NE(answers.str().find(name + "\t"), std::string::npos) << name << "\n" << answers.str();

  refused.clear();
  Input input = asked(again);
  const auto drawn = explain(run, &input);
  EXPECT_EQ(refused.size(), bad_.size());
  EXPECT_GE(drawn.size(), good_.size());
  EXPECT_TRUE(shows(drawn, 100)) << "wide.png";
  EXPECT_TRUE(shows(explain(run, nullptr), 4)) << "p0.png and so on";
  EXPECT_NO_THROW(evaluate(base_ / "run", "", "test"));
}

INSTANTIATE_TEST_SUITE_P(
    Systems, OddPictures,
    testing::Values(Reader{"show-attend-tell",
                           {"epochs=1", "width=16", "attention=8", "embedding=8", "channels=4"}},
                    Reader{"image-to-set",
                           {"predictor=ff-bce", "epochs=1", "width=16", "filters=4", "heads=2"}},
                    Reader{"inverse-cooking",
                           {"epochs=1", "width=16", "filters=4", "heads=2", "layers=1", "side=32",
                            "ingredient_layers=1", "longest=20"}},
                    Reader{"mil", {"windows=32", "epochs=1", "filters=4", "hidden=8"}}),
    [](const auto& one) {
      std::string name = one.param.system;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace fovea::systems
