// Pictures as people have them: turned by the camera, in four inks, of sixteen bits, see-through, tiny, very
// wide, damaged.
#include "data/pictures/image.h"

#include <gtest/gtest.h>
#include <png.h>
#include <sys/stat.h>

#include <cstdio>
// After <cstdio>: its header uses FILE without including it.
#include <jpeglib.h>

#include <cstdlib>

#include "data/files/file.h"
#include "data/pictures/exif.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

using Pixels = std::vector<uint8_t>;

struct Jpeg {
  int width, height;
  J_COLOR_SPACE space;
  int channels;
  Pixels pixels;
  std::string exif = {};
  bool adobe = false;
};
std::string bytes_of(const Jpeg& jpeg) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(jpeg.width);
  info.image_height = static_cast<JDIMENSION>(jpeg.height);
  info.input_components = jpeg.channels;
  info.in_color_space = jpeg.space;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  for (int i = 0; i < info.num_components; ++i)
    info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
  info.write_Adobe_marker = jpeg.adobe;
  jpeg_start_compress(&info, TRUE);
  if (!jpeg.exif.empty())
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(jpeg.exif.data()),
                      static_cast<unsigned>(jpeg.exif.size()));
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<unsigned char*>(jpeg.pixels.data()) +
                   info.next_scanline * static_cast<unsigned>(jpeg.width * jpeg.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return out;
}

// One entry, the orientation, in either byte order.
std::string tiff(int orientation, bool little) {
  std::string out = little ? std::string("II\x2A\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18)
                           : std::string("MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01", 18);
  const char value = static_cast<char>(orientation);
  out += little ? std::string{value, 0, 0, 0} : std::string{0, value, 0, 0};
  return out + std::string(4, '\0');
}

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

std::string png_of(png_uint_32 format, int width, int height, const void* pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr);
  std::string out(size, '\0');
  png_image_write_to_memory(&image, out.data(), &size, 0, pixels, 0, nullptr);
  out.resize(size);
  return out;
}

TEST_F(Images, WhatIsTransparentIsWhite) {
  const Pixels clear_and_red = {10, 20, 30, 0, 255, 0, 0, 255};
  const Image image =
      read_colour_image(write("a.png", png_of(PNG_FORMAT_RGBA, 2, 1, clear_and_red.data())));
  EXPECT_EQ(image.pixels, (Pixels{255, 255, 255, 255, 0, 0}));
}

// Without a word on gamma, as most programs write it.
TEST_F(Images, SixteenBitsBecomeEight) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string bytes;
  png_set_write_fn(
      png, &bytes,
      [](png_structp to, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, 2, 1, 16, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  uint8_t row[4] = {0x80, 0x00, 0xFF, 0xFF};
  png_write_row(png, row);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
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
  EXPECT_NE(said("GIF89a").find("neither PNG nor JPEG"), std::string::npos);
}

}  // namespace
}  // namespace fovea::data
