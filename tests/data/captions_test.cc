// Pictures with captions in the forms people keep them, arrays of regions, and the canvases made up for
// them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "data/captions/caption_set.h"
#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "data/generated/canvases.h"
#include "data/pictures/idx.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

using Words = std::vector<std::string>;

std::string refused(const std::string& text) {
  try {
    parse_captions(text, "c");
  } catch (const FileError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Captions, EachFormIsRead) {
  const std::map<std::string, std::string> forms = {
      {"tabs", "a.jpg\tA dog .\tA cat .\nb.jpg\tA bird .\n"},
      {"lines", "a.jpg\tA dog .\nb.jpg\tA bird .\na.jpg\tA cat .\n"},
      {"token file", "a.jpg#0\tA dog .\na.jpg#1\tA cat .\nb.jpg#0\tA bird .\n"},
      {"table", "image,caption\na.jpg,A dog .\na.jpg,A cat .\nb.jpg,A bird .\n"},
      {"JSON Lines",
       "{\"image\": \"a.jpg\", \"captions\": [\"A dog .\", \"A cat .\"]}\n{\"image\": "
       "\"b.jpg\", \"caption\": \"A bird .\"}\n"},
      {"list",
       "[{\"image\": \"a.jpg\", \"captions\": [\"A dog .\", \"A cat .\"]},\n {\"image\": "
       "\"b.jpg\", \"caption\": \"A bird .\"}]"},
      {"Karpathy's",
       R"({"images": [{"filename": "a.jpg", "sentences": [{"raw": "A dog ."}, {"tokens": ["A", "cat", "."]}]},
           {"filename": "b.jpg", "sentences": [{"raw": "A bird ."}]}], "dataset": "x"})"},
      {"COCO's", R"({"images": [{"id": 7, "file_name": "a.jpg"}, {"id": 8, "file_name": "b.jpg"}],
           "annotations": [{"image_id": 7, "caption": "A dog ."}, {"image_id": 8, "caption": "A bird ."},
           {"image_id": 7, "caption": "A cat ."}]})"}};
  for (const auto& [form, text] : forms) {
    const std::vector<Captioned> items = parse_captions(text, form);
    ASSERT_EQ(items.size(), 2u) << form;
    EXPECT_EQ(items[0].image, "a.jpg") << form;
    EXPECT_EQ(items[0].captions, (Words{"A dog .", "A cat ."})) << form;
    EXPECT_EQ(items[1].captions, (Words{"A bird ."})) << form;
    EXPECT_EQ(items[0].split, "") << form;
  }
}

// As other programs and collections name the columns.
TEST(Captions, ColumnsAreFoundByTheirNames) {
  const std::map<std::string, std::string> forms = {
      {"tabs", "\xEF\xBB\xBFImage\tid\tCaption\r\na.jpg\t3\tA dog .\r\na.jpg\t4\tA cat .\r\n"},
      {"order", "caption_1\tcaption_2\tfilename\nA dog .\tA cat .\ta.jpg\n"},
      {"semicolons", "file_name;text\na.jpg;A dog .\na.jpg;A cat .\n"},
      {"quotes", "\"text\",\"file_name\"\r\n\"A dog .\",a.jpg\r\n\"A cat .\",a.jpg\r\n"},
      {"Hugging Face's", "file_name,text\na.jpg,A dog .\na.jpg,A cat .\n"},
      {"metadata", "{\"file_name\": \"a.jpg\", \"text\": [\"A dog .\", \"A cat .\"]}\n"},
      {"Flickr30k's",
       "image_name| comment_number| comment\na.jpg| 0| A dog .\na.jpg| 4   A cat .\n"}};
  for (const auto& [form, text] : forms) {
    const std::vector<Captioned> items = parse_captions(text, form);
    ASSERT_EQ(items.size(), 1u) << form;
    EXPECT_EQ(items[0].image, "a.jpg") << form;
    EXPECT_EQ(items[0].captions, (Words{"A dog .", "A cat ."})) << form;
  }
  EXPECT_EQ(
      parse_captions("image\tsplit\tcaption\ttext\na.jpg\tdev\tx\tof the sign\n", "t")[0].captions,
      Words{"x"});
  EXPECT_EQ(parse_captions("a.jpg\timage\nb.jpg\tfile\n", "no header").size(), 2u);
  EXPECT_EQ(refused("image,words\na.jpg,x\n"),
            "c:1: no column of captions, expected one named caption; the columns are image, words");
  EXPECT_EQ(refused("image;x,y\na;b,c\n"),
            "c:1: no column of pictures, expected one named image; the columns are image;x, y");
  EXPECT_EQ(refused("image| number| caption\na.jpg| 0\nb.jpg\n"), "c:3: 1 columns, expected 3");
}

TEST(Captions, LabelsAreMembersOfASet) {
  const auto items = parse_captions(
      "{\"image\": \"a.jpg\", \"labels\": [\"dog\", \"grass\"]}\n{\"image\": \"b.jpg\", "
      "\"labels\": []}\n",
      "c");
  EXPECT_EQ(items.at(0).captions, Words{"dog|grass|"});
  EXPECT_EQ(items.at(1).captions, Words{"|"});
  EXPECT_EQ(parse_captions("{\"image\": \"a.jpg\", \"Labels\": [\"dog\", \"grass\"]}\n", "c")
                .at(0)
                .captions,
            Words{"dog|grass|"});
  EXPECT_EQ(refused("{\"image\": \"a.jpg\", \"labels\": [\"dog|grass\"]}\n"),
            "c:1: label 'dog|grass': expected none with '|', which parts labels");
  EXPECT_EQ(parse_captions("image,labels\na.jpg,dog|grass\n", "c").at(0).captions,
            Words{"dog|grass"});
}

TEST(Captions, SplitsAndFoldersOfKarpathysFileAreKept) {
  const auto items = parse_captions(
      R"({"images": [{"filepath": "val2014", "filename": "a.jpg", "split": "restval", "sentences": [{"raw": "x"}]}]})",
      "k");
  EXPECT_EQ(items.at(0).image, "val2014/a.jpg");
  EXPECT_EQ(items.at(0).split, "restval");
  EXPECT_EQ(parse_captions("image\tsplit\tcaption\na.jpg\tdev\tx\n", "t").at(0).split, "dev");
}

TEST(Captions, MistakesAreNamed) {
  EXPECT_EQ(refused("a.jpg A dog\n"),
            "c:1: expected image<TAB>caption, or image<TAB>split<TAB>caption; of columns between "
            "commas, a first line image,caption");
  EXPECT_EQ(refused("a.jpg\ttrain\tx\nb.jpg\tother\ty\n"),
            "c:2: split 'other', expected train, val or test");
  EXPECT_EQ(refused("a.jpg\ttrain\tx\na.jpg\ttest\ty\n"),
            "c:2: 'a.jpg' is in 'test', and above in 'train'");
  EXPECT_EQ(refused("../a.jpg\tx\n"), "c:1: picture '../a.jpg', expected a name within the folder");
  EXPECT_EQ(refused("/etc/x\ty\n"), "c:1: picture '/etc/x', expected a name within the folder");
  EXPECT_EQ(refused("{\"image\": 3}\n"), "c:1: expected \"image\" to be a text");
  EXPECT_EQ(refused("{\"image\": \"a\", \"captions\": [3]}\n"),
            "c:1: expected \"captions\" to be a list of texts");
  EXPECT_EQ(refused("{\"image\": \"a\", \"caption\": \" \"}\n"), "c:1: 'a': an empty caption");
  EXPECT_EQ(refused("{\"image\": \"a\", \"boxes\": {\"x\": [0, 0, 2, 1]}}\n"),
            "c:1: box of 'x': expected left, top, width, height from 0 to 1");
  EXPECT_EQ(refused(R"({"images": [], "annotations": [{"image_id": 4, "caption": "x"}]})"),
            "c: a caption of picture 4, which is not among \"images\"");
  EXPECT_EQ(refused(R"({"images": [{"filename": "a"}]})"),
            "c: expected \"sentences\" to be a list");
  EXPECT_EQ(refused("\n"), "c: no captions in it");
}

TEST(Captions, WordsAreThoseTheFieldCounts) {
  EXPECT_EQ(caption_words("A man's T-shirt, in \"red\" -- 3.5 m ."),
            (Words{"a", "man", "'s", "t-shirt", "in", "red", "3.5", "m"}));
  EXPECT_EQ(caption_words("a man 's dog '"), (Words{"a", "man", "'s", "dog"}));
  EXPECT_EQ(caption_words("Un café."), (Words{"un", "café"}));
  EXPECT_TRUE(caption_words(" . , !").empty());
}

class CaptionFiles : public Files {
 protected:
  void picture(const std::string& name) const { write(name, png_bytes({2, 2, 1, {1, 2, 3, 4}})); }
  std::string said() const {
    try {
      read_captions(base_.string(), {});
    } catch (const FileError& error) {
      return error.what();
    }
    return "nothing";
  }
};

TEST_F(CaptionFiles, PicturesAndCaptionsAreMatched) {
  std::filesystem::create_directories(base_ / "images");
  write("captions.tsv", "a.png\tx\nb.png\ty\nc.png\tz\nd.png\tz\n");
  for (const char* name : {"images/a.png", "images/b.png", "images/c.png", "images/bare.png"})
    picture(name);
  const CaptionSet set = read_captions(base_.string(), {});
  EXPECT_EQ(set.items.size(), 3u);
  ASSERT_EQ(set.notes.size(), 2u);
  EXPECT_EQ(set.notes[0], "1 captioned without a picture, left out: 'd.png'");
  EXPECT_EQ(set.notes[1], "1 pictures without a caption, left out: 'bare.png'");
  EXPECT_EQ(set.drawn(0).pixels.size(), 12u) << "three channels";
  EXPECT_EQ(set.path_of(1), (base_ / "images" / "b.png").string());
  std::filesystem::remove(base_ / "images" / "a.png");
  std::filesystem::remove(base_ / "images" / "b.png");
  EXPECT_NE(said().find("3 of 4 pictures are not in"), std::string::npos) << said();
}

TEST_F(CaptionFiles, ASplitGivenIsKeptAndAnotherIsDrawn) {
  write("captions.tsv", "a.png\ttrain\tx\nb.png\tdev\ty\nc.png\ttest\tz\n");
  for (const char* name : {"a.png", "b.png", "c.png"}) picture(name);
  const CaptionSet set = read_captions(base_.string(), {});
  EXPECT_EQ(set.splits.train, (std::vector<int64_t>{0}));
  EXPECT_EQ(set.splits.validation, (std::vector<int64_t>{1}));
  EXPECT_EQ(set.splits.test, (std::vector<int64_t>{2}));
  const CaptionSet judged = read_captions(base_.string(), {.split = {.all_test = true}});
  EXPECT_EQ(judged.splits.test, (std::vector<int64_t>{2}));
  EXPECT_TRUE(judged.splits.train.empty());
  EXPECT_THROW(read_captions(base_.string(), {.split = {.folds = 3}}), FileError);
  write("captions.tsv", "a.png\tx\nb.png\ty\nc.png\tz\n");
  EXPECT_EQ(read_captions(base_.string(), {.split = {.all_test = true}}).splits.test.size(), 3u);
}

Array region_array(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {ElementType::kFloat32, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)};
}
std::vector<float> region_row(const Regions& regions, int64_t item) {
  std::vector<float> out(static_cast<size_t>(regions.regions() * regions.width()));
  regions.copy(item, out.data());
  return out;
}

TEST_F(CaptionFiles, RegionsComeAsArrays) {
  write("captions.tsv", "a.jpg\tx\nb.jpg\ty\n");
  const std::vector<float> all = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> second = {5, 6, 7, 8};
  write("regions.npy", npy_bytes(region_array({2, 2, 2}, all)));
  EXPECT_EQ(region_row(read_captions(base_.string(), {}).regions, 1), second);
  write("regions.npy", npy_bytes(region_array({2, 1, 2, 2}, all)));  // a grid
  EXPECT_EQ(read_captions(base_.string(), {}).regions.regions(), 2);
  write("regions.npy", npy_bytes(region_array({2, 4}, all)));
  EXPECT_NE(said().find("an array of 2 x 4, expected 2 pictures x regions x numbers"),
            std::string::npos);
  write("regions.npy", npy_bytes(region_array({2, 2, 2}, {1, 2, 3, 4, 5, NAN, 7, 8})));
  EXPECT_NE(said().find("number 5 is not finite"), std::string::npos);
  std::filesystem::remove(base_ / "regions.npy");

  write("regions.safetensors",
        safetensors_bytes({{{"features", region_array({2, 2, 2}, all)}}, {}}));
  EXPECT_EQ(region_row(read_captions(base_.string(), {}).regions, 1), second);
  write("regions.safetensors", safetensors_bytes({{{"b", region_array({2, 2}, second)},
                                                   {"a.jpg", region_array({2, 2}, {1, 2, 3, 4})}},
                                                  {}}));
  EXPECT_EQ(region_row(read_captions(base_.string(), {}).regions, 1), second)
      << "by the picture's name";
  std::filesystem::remove(base_ / "regions.safetensors");

  std::filesystem::create_directories(base_ / "regions");
  write("regions/a.npy", npy_bytes(region_array({2, 2}, {1, 2, 3, 4})));
  EXPECT_NE(said().find("no 'b.jpg.npy'"), std::string::npos) << said();
  write("regions/b.jpg.npy", npy_bytes(region_array({1, 2, 2}, second)));
  EXPECT_EQ(region_row(read_captions(base_.string(), {}).regions, 1), second);
  write("regions/b.jpg.npy", npy_bytes(region_array({3, 2}, {1, 2, 3, 4, 5, 6})));
  EXPECT_NE(said().find("array 'b.jpg' of 3 x 2, expected 2 x 2"), std::string::npos) << said();
  std::filesystem::remove_all(base_ / "regions");

  write("regions.i8", std::string("\x01\xFF\x02\x80\x03\x04\x05\x06", 8));
  write("regions.scale.txt", "0.5\n2\n");
  EXPECT_EQ(region_row(read_captions(base_.string(), {}).regions, 0),
            (std::vector<float>{0.5, -2, 1, -256}));
  write("regions.i8", "123");
  EXPECT_NE(said().find("3 bytes, expected a multiple of 2 pictures x 2 numbers"),
            std::string::npos);
}

// train/1.jpg and test/1.jpg: neither takes the other's regions.
TEST_F(CaptionFiles, TwoPicturesHaveNotOneArray) {
  write("captions.tsv", "train/1.jpg\tx\ntest/1.jpg\ty\n");
  const Array first = region_array({2, 2}, {1, 2, 3, 4}),
              second = region_array({2, 2}, {5, 6, 7, 8});
  write("regions.safetensors", safetensors_bytes({{{"1", first}, {"2", second}}, {}}));
  EXPECT_NE(said().find("array '1' is that of 'train/1.jpg' and of 'test/1.jpg'"),
            std::string::npos)
      << said();
  write("regions.safetensors", safetensors_bytes({{{"train/1", first}, {"1", second}}, {}}));
  EXPECT_EQ(region_row(read_captions(base_.string(), {}).regions, 1),
            (std::vector<float>{5, 6, 7, 8}));
  std::filesystem::remove(base_ / "regions.safetensors");

  for (const char* folder : {"regions/train", "regions/test"})
    std::filesystem::create_directories(base_ / folder);
  write("regions/1.npy", npy_bytes(first));
  EXPECT_NE(said().find("array '1' is that of"), std::string::npos) << said();
  write("regions/train/1.npy", npy_bytes(first));
  write("regions/test/1.jpg.npy", npy_bytes(second));
  EXPECT_EQ(region_row(read_captions(base_.string(), {}).regions, 1),
            (std::vector<float>{5, 6, 7, 8}));
}

TEST_F(CaptionFiles, ManySmallArraysAreNoMoreThanAFileMayBe) {
  write("captions.tsv", "a.jpg\tx\nb.jpg\ty\nc.jpg\tz\n");
  std::filesystem::create_directories(base_ / "regions");
  for (const char* name : {"regions/a.npy", "regions/b.npy", "regions/c.npy"})
    write(name, npy_bytes(region_array({16, 16}, std::vector<float>(256))));
  set_limits("file=2K");
  EXPECT_NE(said().find("arrays of more than 2 KiB, the limit `file`"), std::string::npos)
      << said();
  set_limits("");
  EXPECT_EQ(read_captions(base_.string(), {}).regions.items(), 3);
}

// One picture: three numbers of four regions, 2 x 2.
TEST_F(CaptionFiles, NumbersBeforeRowsAreReadAsRegions) {
  write("captions.tsv", "a.jpg\tx\n");
  const std::vector<float> by_number = {1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24},
                           by_region = {1, 11, 21, 2, 12, 22, 3, 13, 23, 4, 14, 24};
  for (const bool first : {false, true}) {
    const std::vector<int64_t> shape =
        first ? std::vector<int64_t>{1, 3, 2, 2} : std::vector<int64_t>{1, 2, 2, 3};
    write("regions.npy", npy_bytes(region_array(shape, first ? by_number : by_region)));
    const Regions read = read_captions(base_.string(), {}).regions;
    EXPECT_EQ(read.regions(), 4);
    EXPECT_EQ(region_row(read, 0), by_region) << first;
  }
  EXPECT_EQ(
      region_row(read_region_file(write("one.npy", npy_bytes(region_array({3, 2, 2}, by_number)))),
                 0),
      by_region);
}

TEST_F(CaptionFiles, HalfNumbersAreRead) {
  const uint16_t halves[4] = {0x3C00, 0xC100, 0x0001, 0x0000};  // 1, -2.5, the smallest, 0
  const Array array{ElementType::kFloat16,
                    {1, 4},
                    std::string(reinterpret_cast<const char*>(halves), sizeof halves)};
  EXPECT_EQ(region_row(read_region_file(write("one.npy", npy_bytes(array))), 0),
            (std::vector<float>{1, -2.5, std::ldexp(1.0f, -24), 0}));
}

// ---- canvases -----------------------------------------------------------------------------------

CanvasPlan small_plan() {
  return {.parts = {.train = 150, .validation = 50, .test = 50}, .seed = 3};
}

TEST(Canvases, DigitsAreDistinctAndApart) {
  const DigitSets digits = digits_of("", 600, 200, 1);
  for (const bool sets : {false, true}) {
    CanvasPlan plan = small_plan();
    if (sets) plan.side = 56, plan.least = 0, plan.most = 4;
    const Canvases made = sets ? set_canvases(plan, digits) : caption_canvases(plan, digits);
    ASSERT_EQ(made.items.size(), 250u);
    std::set<size_t> sizes;
    const auto side = static_cast<double>(plan.side);
    for (const Canvas& one : made.items) {
      sizes.insert(one.digits.size());
      EXPECT_EQ(std::set<int64_t>(one.digits.begin(), one.digits.end()).size(), one.digits.size());
      for (size_t a = 0; a < one.boxes.size(); ++a) {
        const Box& p = one.boxes[a];
        EXPECT_GE(p.left, 0);
        EXPECT_LE(p.left + p.width, 1 + 1e-9);
        EXPECT_LE(p.top + p.height, 1 + 1e-9);
        for (size_t b = 0; b < a; ++b) {
          const Box& q = one.boxes[b];
          const double across =
              std::min(p.left + p.width, q.left + q.width) - std::max(p.left, q.left);
          const double down = std::min(p.top + p.height, q.top + q.height) - std::max(p.top, q.top);
          EXPECT_LE(std::min(across, down) * side, kMostOverlap + 1e-6);
        }
      }
    }
    EXPECT_EQ(sizes, sets ? (std::set<size_t>{0, 1, 2, 3, 4}) : (std::set<size_t>{2, 3}));
  }
}

TEST(Canvases, TheCaptionTellsWhatIsWhere) {
  Canvas one{.pixels = {},
             .digits = {7, 2, 8},
             .boxes = {{0.1, 0, 0.3, 0.4}, {0.1, 0.5, 0.3, 0.4}, {0.6, 0.55, 0.3, 0.4}}};
  EXPECT_EQ(caption_of(one), "a seven above a two left of an eight");
  const Canvases made = caption_canvases(small_plan(), digits_of("", 600, 200, 1));
  for (const Canvas& canvas : made.items)
    for (size_t i = 0; i + 1 < canvas.boxes.size(); ++i) {
      const double down = canvas.boxes[i + 1].middle_y() - canvas.boxes[i].middle_y(),
                   right = canvas.boxes[i + 1].middle_x() - canvas.boxes[i].middle_x();
      EXPECT_GE(std::fabs(std::fabs(down) - std::fabs(right)) * 42, 4 - 1e-6);
      EXPECT_GT(std::fabs(down) > std::fabs(right) ? down : right, 0) << "first comes first";
    }
}

TEST(Canvases, CompanionsComeTogether) {
  CanvasPlan plan = small_plan();
  plan.side = 56, plan.least = 2, plan.most = 2;
  const Canvases made = set_canvases(plan, digits_of("", 600, 200, 1));
  double together = 0;
  for (const Canvas& one : made.items) together += (one.digits.at(0) + 5) % 10 == one.digits.at(1);
  EXPECT_GT(together / static_cast<double>(made.items.size()), 0.7);
}

// Digits as single bright pixels whose value says from which part they come.
TEST(Canvases, TestDigitsAreNeverTrainedOn) {
  const auto marked = [](int64_t count, uint8_t first, uint8_t last) {
    Digits out{.count = count, .height = 28, .width = 28};
    out.pixels.resize(static_cast<size_t>(count * 28 * 28));
    for (int64_t i = 0; i < count; ++i) {
      out.labels.push_back(i % 10);
      out.pixels[static_cast<size_t>(i * 28 * 28 + 14 * 28 + 14)] =
          i < count - count / 10 ? first : last;
    }
    return out;
  };
  const Canvases made =
      caption_canvases(small_plan(), {marked(200, 100, 150), marked(20, 200, 200)});
  const auto values = [&](const std::vector<int64_t>& part) {
    std::set<uint8_t> out;
    for (const int64_t i : part)
      for (const uint8_t pixel : made.items[static_cast<size_t>(i)].pixels)
        if (pixel) out.insert(pixel);
    return out;
  };
  EXPECT_EQ(values(made.splits.train), (std::set<uint8_t>{100}));
  EXPECT_EQ(values(made.splits.validation), (std::set<uint8_t>{150}));
  EXPECT_EQ(values(made.splits.test), (std::set<uint8_t>{200}));
}

TEST(Canvases, PlansThatCannotBeDrawnAreRefused) {
  const DigitSets digits = digits_of("", 100, 100, 1);
  CanvasPlan plan = small_plan();
  plan.side = 20;
  EXPECT_THROW(caption_canvases(plan, digits), InvalidArgument);
  plan = small_plan();
  plan.most = 4;
  EXPECT_THROW(set_canvases(plan, digits), InvalidArgument) << "four on 42 pixels";
  plan = small_plan();
  plan.least = 0;
  EXPECT_THROW(caption_canvases(plan, digits), InvalidArgument);
}

}  // namespace
}  // namespace fovea::data
