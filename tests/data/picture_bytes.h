// Pictures as files, of the kinds that people have.
#pragma once

#include <png.h>

#include <cstdint>
#include <cstdio>
// After <cstdio>: its header uses FILE without including it.
#include <jpeglib.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace fovea::data {

using Pixels = std::vector<uint8_t>;

struct Jpeg {
  int width, height;
  J_COLOR_SPACE space;
  int channels;
  Pixels pixels;
  std::string exif = {};
  bool adobe = false;
};
inline std::string bytes_of(const Jpeg& jpeg) {
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
inline std::string tiff(int orientation, bool little) {
  std::string out = little ? std::string("II\x2A\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18)
                           : std::string("MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01", 18);
  const char value = static_cast<char>(orientation);
  out += little ? std::string{value, 0, 0, 0} : std::string{0, value, 0, 0};
  return out + std::string(4, '\0');
}

inline std::string png_of(png_uint_32 format, int width, int height, const void* pixels) {
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

// Grey of sixteen bits, two bytes for each pixel; a row after the other.
inline std::string deep_png_of(uint32_t width, uint32_t height, const uint8_t* pixels) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string bytes;
  png_set_write_fn(
      png, &bytes,
      [](png_structp to, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, 16, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (uint32_t y = 0; y < height; ++y) png_write_row(png, pixels + size_t{2} * width * y);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

}  // namespace fovea::data
