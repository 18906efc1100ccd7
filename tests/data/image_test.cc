// Pictures as people have them: turned by the camera, in four inks, of sixteen bits, see-through, tiny, very
// wide, damaged.
#include "data/pictures/image.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "data/files/file.h"
#include "data/pictures/exif.h"
#include "tests/data/files.h"
#include "tests/data/picture_bytes.h"

namespace fovea::data {
namespace {

class Images : public Files {
 protected:
  std::string said(const std::string& bytes) const {
    try {
      read_colour_image(write("x", bytes));
    } catch (const FileError& error) {
      return error.what();
    }
    return "nothing";
  }
};

// A progressive picture of one block in so many scans: 14 bits of each of its 63 frequencies.
std::string progressive(int scans) {
  const auto segment = [](int kind, const std::string& body) {
    const size_t size = body.size() + 2;
    return std::string{'\xFF', static_cast<char>(kind), static_cast<char>(size >> 8),
                       static_cast<char>(size & 0xFF)} +
           body;
  };
  const auto scan = [&](int frequency, int high, int low) {
    return segment(0xDA, {1, 1, 0, static_cast<char>(frequency), static_cast<char>(frequency),
                          static_cast<char>(high << 4 | low)}) +
           '\x7F';
  };
  // A table with the one code 0, which stands for nothing more in the block.
  const std::string code = '\x01' + std::string(15, '\0') + '\0';
  std::string out = "\xFF\xD8" + segment(0xDB, '\0' + std::string(64, '\x01')) +
                    segment(0xC2, {8, 0, 8, 0, 8, 1, 1, 0x11, 0}) + segment(0xC4, '\0' + code) +
                    segment(0xC4, '\x10' + code) + scan(0, 0, 0);
  for (int i = 0; i < scans - 1; ++i) {
    const int low = 13 - i / 63;
    out += scan(1 + i % 63, low == 13 ? 0 : low + 1, low);
  }
  return out + "\xFF\xD9";
}

// Each goes over every pixel, and takes ten bytes of the file.
TEST_F(Images, AProgressivePictureHasSoManyScans) {
  EXPECT_EQ(said(progressive(10)), "nothing");
  EXPECT_EQ(said(progressive(100)), "nothing");
  EXPECT_EQ(said(progressive(800)),
            (base_ / "x").string() + ": more than 100 scans, expected fewer");
}

TEST_F(Images, APipeInAFolderIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo((base_ / "a.png").c_str(), 0600), 0);
  try {
    image_files(base_.string());
    ADD_FAILURE() << "expected an error";
  } catch (const FileError& error) {
    EXPECT_EQ(std::string(error.what()),
              (base_ / "a.png").string() + ": a pipe, expected a picture");
  }
}

TEST(Exif, EachOrientationIsTurnedUpright) {
  const Image stored{3, 2, 1, {0, 1, 2, 3, 4, 5}};
  const std::vector<Pixels> expected = {{0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0},
                                        {3, 4, 5, 0, 1, 2}, {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2},
                                        {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image out = upright(stored, orientation);
    EXPECT_EQ(out.width, orientation >= 5 ? 2 : 3) << orientation;
    EXPECT_EQ(out.pixels, expected[static_cast<size_t>(orientation - 1)]) << orientation;
    EXPECT_EQ(exif_orientation(tiff(orientation, true)), orientation);
    EXPECT_EQ(exif_orientation(tiff(orientation, false)), orientation);
  }
  EXPECT_EQ(exif_orientation(tiff(9, true)), 1);
  for (size_t n = 0; n < 20; ++n) EXPECT_EQ(exif_orientation(tiff(6, true).substr(0, n)), 1) << n;
}

TEST_F(Images, TheCamerasTurnIsHonoured) {
  // Left black, right white, stored turned: after a quarter turn to the right the top is black.
  Jpeg jpeg{16, 16, JCS_GRAYSCALE, 1, Pixels(256)};
  for (size_t i = 0; i < 256; ++i) jpeg.pixels[i] = i % 16 < 8 ? 0 : 255;
  const auto corner = [&] {
    const Image image = read_image(write("a.jpg", bytes_of(jpeg)));
    return std::pair(image.pixels[2] < 128, image.pixels[13] < 128);
  };
  EXPECT_EQ(corner(), std::pair(true, false));
  jpeg.exif = std::string("Exif\0\0", 6) + tiff(6, false);
  EXPECT_EQ(corner(), std::pair(true, true));
  jpeg.exif = std::string("Exif\0\0", 6) + "II";
  EXPECT_EQ(corner(), std::pair(true, false)) << "a damaged block says nothing";
}

TEST_F(Images, FourInksBecomeThreeColours) {
  // No cyan, all magenta and yellow: red. Adobe writes inks the other way round.
  const Pixels red = {0, 255, 255, 0}, of_adobe = {255, 0, 0, 255};
  for (const bool adobe : {false, true}) {
    Jpeg jpeg{8, 8, JCS_CMYK, 4, {}, {}, adobe};
    for (int i = 0; i < 64; ++i) {
      const Pixels& ink = adobe ? of_adobe : red;
      jpeg.pixels.insert(jpeg.pixels.end(), ink.begin(), ink.end());
    }
    const std::string path = write("inks.jpg", bytes_of(jpeg));
    const Image colour = read_colour_image(path), grey = read_image(path);
    EXPECT_GT(colour.pixels[0], 240) << adobe;
    EXPECT_LT(colour.pixels[1], 15) << adobe;
    EXPECT_LT(colour.pixels[2], 15) << adobe;
    EXPECT_NEAR(grey.pixels[0], 76, 5) << adobe;
  }
}

TEST_F(Images, WhatIsTransparentIsWhite) {
  const Pixels clear_and_red = {10, 20, 30, 0, 255, 0, 0, 255};
  const Image image =
      read_colour_image(write("a.png", png_of(PNG_FORMAT_RGBA, 2, 1, clear_and_red.data())));
  EXPECT_EQ(image.pixels, (Pixels{255, 255, 255, 255, 0, 0}));
}

// Without a word on gamma, as most programs write it.
TEST_F(Images, SixteenBitsBecomeEight) {
  const uint8_t row[4] = {0x80, 0x00, 0xFF, 0xFF};
  const std::string bytes = deep_png_of(2, 1, row);
  const Image image = read_image(write("deep.png", bytes));
  EXPECT_NEAR(image.pixels.at(0), 128, 1);
  EXPECT_EQ(image.pixels.at(1), 255);
}

TEST_F(Images, TinyAndVeryWidePicturesAreScaled) {
  const Pixels one = {77};
  EXPECT_EQ(scaled(read_image(write("1.png", png_of(PNG_FORMAT_GRAY, 1, 1, one.data()))), 4).pixels,
            Pixels(16, 77));
  const Pixels wide(20000 * 10, 9);
  const Image image =
      scaled(read_image(write("w.png", png_of(PNG_FORMAT_GRAY, 20000, 10, wide.data()))), 8);
  EXPECT_EQ(image.pixels, Pixels(64, 9));
}

TEST_F(Images, DamageIsNamed) {
  const std::string good = bytes_of({16, 16, JCS_RGB, 3, Pixels(768, 100)});
  EXPECT_NE(said(good.substr(0, good.size() / 2)).find("a damaged JPEG file"), std::string::npos);
  EXPECT_NE(said("a text").find("neither PNG nor JPEG"), std::string::npos);
}

TEST_F(Images, AnotherFormatIsNamed) {
  const std::map<std::string, std::string> begins = {
      {"GIF", "GIF89a"},
      {"BMP", "BM6"},
      {"WebP", std::string("RIFF\x10\0\0\0WEBPVP8 ", 16)},
      {"TIFF", std::string("II*\0\x08", 5)},
      {"HEIC", std::string("\0\0\0\x18"
                           "ftypheic",
                           12)},
      {"AVIF", std::string("\0\0\0\x1C"
                           "ftypavif",
                           12)}};
  for (const auto& [format, bytes] : begins)
    EXPECT_TRUE(said(bytes).ends_with("x: a " + format + " picture, expected PNG or JPEG"))
        << said(bytes);
}

TEST_F(Images, AFolderHasPicturesOfItsFolders) {
  const Pixels one = {77};
  std::filesystem::create_directories(base_ / "b/c");
  for (const char* name : {"z.PNG", "b/c/a.jpeg", "b/photo.HEIC", "notes.txt"})
    write(name, png_of(PNG_FORMAT_GRAY, 1, 1, one.data()));
  std::filesystem::create_directory_symlink("..", base_ / "b/round");
  std::vector<std::string> expected;
  for (const char* name : {"b/c/a.jpeg", "b/photo.HEIC", "z.PNG"})
    expected.push_back((base_ / name).string());
  EXPECT_EQ(image_files_within(base_.string()), expected);
  EXPECT_EQ(image_files(base_.string()), (std::vector<std::string>{expected[2]}));
}

TEST_F(Images, ALargePictureShrinksInItsOwnShape) {
  const Image wide = shrunk({400, 100, 1, Pixels(40000, 9)}, 40);
  EXPECT_EQ(std::pair(wide.width, wide.height), std::pair(int64_t{40}, int64_t{10}));
  EXPECT_EQ(wide.pixels, Pixels(400, 9));
  EXPECT_EQ(shrunk({20000, 10, 3, Pixels(600000, 9)}, 448).height, 1);
  EXPECT_EQ(shrunk({3, 2, 1, {0, 1, 2, 3, 4, 5}}, 3).pixels, (Pixels{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace fovea::data
