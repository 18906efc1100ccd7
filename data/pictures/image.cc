#include "data/pictures/image.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
// After <cstdio>: its header uses FILE without including it.
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "data/files/file.h"
#include "data/files/read.h"
#include "data/formats/text.h"
#include "data/pictures/exif.h"

namespace fovea::data {
namespace {

constexpr int64_t kMostPixels = int64_t{64} << 20;

void check_size(const std::string& path, int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMostPixels / height)
    throw FileError(path, 0,
                    fmt::format("{} x {} pixels, expected 1 to {}", width, height, kMostPixels));
}

Image read_png(const std::string& path, const std::string& bytes, int64_t channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto refuse = [&] {
    const std::string why = image.message;
    png_image_free(&image);
    throw FileError(path, 0, "a damaged PNG file: " + why);
  };
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) refuse();
  Image out{image.width, image.height, channels, {}};
  if (out.width < 1 || out.height < 1 || out.width > kMostPixels / out.height)
    png_image_free(&image);
  check_size(path, out.width, out.height);
  image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  // Sixteen bits that do not say otherwise are as bright as eight bits would be.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  out.pixels.resize(PNG_IMAGE_SIZE(image));
  png_color white{255, 255, 255};  // behind what is transparent
  if (!png_image_finish_read(&image, &white, out.pixels.data(), 0, nullptr)) refuse();
  return upright(std::move(out), exif_orientation(png_exif(bytes)));
}

struct JpegErrors {
  jpeg_error_mgr manager;
  jpeg_progress_mgr scans;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  int orientation = 1;
  bool too_many_scans = false;
  bool inverted = false;  // inks as Adobe writes them: 255 is none
};

[[noreturn]] void jpeg_stops(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->back, 1);
}
// libjpeg only warns about a file that is cut short. It must be an error, or a picture that is half
// grey would be accepted.
void jpeg_warns(j_common_ptr info, int level) {
  if (level < 0) jpeg_stops(info);
}

// Each scan of a progressive picture goes over all of its pixels, but may take a few bytes of the
// file. Cameras and the web's encoders write about ten; cjpeg takes at most 100.
constexpr int kMostScans = 100;

void count_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->too_many_scans = true;
  std::longjmp(errors->back, 1);
}

constexpr int64_t kInks = 4;  // cyan, magenta, yellow, black

// Each ink takes light away, and black takes it from all.
Image from_inks(const Image& inks, bool inverted, int64_t channels) {
  Image out{inks.width, inks.height, channels, {}};
  out.pixels.reserve(static_cast<size_t>(inks.width * inks.height * channels));
  for (size_t i = 0; i < inks.pixels.size(); i += kInks) {
    const auto light = [&](size_t ink) {
      return inverted ? int{inks.pixels[i + ink]} : 255 - inks.pixels[i + ink];
    };
    int rgb[3];
    for (size_t c = 0; c < 3; ++c) rgb[c] = (light(c) * light(3) + 127) / 255;
    if (channels == 3)
      for (const int value : rgb) out.pixels.push_back(static_cast<uint8_t>(value));
    else
      out.pixels.push_back(
          static_cast<uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000));
  }
  return out;
}

// No object with a destructor may live in here: an error leaves it by longjmp.
bool decode_jpeg(jpeg_decompress_struct& info, JpegErrors& errors, const std::string& bytes,
                 Image& out) {
  if (setjmp(errors.back)) return false;
  jpeg_create_decompress(&info);
  info.progress = &errors.scans;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_save_markers(&info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&info, TRUE);
  for (auto* marker = info.marker_list; marker; marker = marker->next) {
    const std::string_view block(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (block.starts_with(std::string_view("Exif\0\0", 6)))
      errors.orientation = exif_orientation(block.substr(6));
  }
  out.width = info.image_width;
  out.height = info.image_height;
  if (out.width > kMostPixels / std::max<int64_t>(1, out.height)) return true;
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK) {
    info.out_color_space = JCS_CMYK;  // libjpeg goes no further
    errors.inverted = info.saw_Adobe_marker;
    out.channels = kInks;
  } else {
    info.out_color_space = out.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  }
  jpeg_start_decompress(&info);
  out.pixels.resize(static_cast<size_t>(out.width * out.height * out.channels));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = out.pixels.data() + static_cast<size_t>(info.output_scanline) *
                                           static_cast<size_t>(out.width * out.channels);
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

Image read_jpeg(const std::string& path, const std::string& bytes, int64_t channels) {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jpeg_stops;
  errors.manager.emit_message = jpeg_warns;
  errors.scans.progress_monitor = count_scans;
  Image out{.channels = channels, .pixels = {}};
  const bool good = decode_jpeg(info, errors, bytes, out);
  jpeg_destroy_decompress(&info);
  if (errors.too_many_scans)
    throw FileError(path, 0, fmt::format("more than {} scans, expected fewer", kMostScans));
  if (!good) throw FileError(path, 0, fmt::format("a damaged JPEG file: {}", errors.message));
  check_size(path, out.width, out.height);
  if (out.channels == kInks) out = from_inks(out, errors.inverted, channels);
  return upright(std::move(out), errors.orientation);
}

constexpr std::array<std::string_view, 11> kPictureEndings = {
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".heif", ".avif", ".bmp", ".tif", ".tiff"};

// Named as a picture, and no pipe: opening one would wait for whoever writes into it.
bool is_named_as_picture(const std::filesystem::path& path) {
  if (std::find(kPictureEndings.begin(), kPictureEndings.end(),
                lower_ascii(path.extension().string())) == kPictureEndings.end())
    return false;
  std::error_code ignored;
  if (std::filesystem::is_fifo(path, ignored))
    throw FileError(path.string(), 0, "a pipe, expected a picture");
  return true;
}

std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out = entries_of(folder);
  std::erase_if(out, [](const auto& path) { return !std::filesystem::is_directory(path); });
  return out;
}

// Of a picture that is neither PNG nor JPEG, by its first bytes; empty: of none of these.
std::string_view other_format(std::string_view bytes) {
  if (bytes.starts_with("GIF8")) return "GIF";
  if (bytes.starts_with("BM")) return "BMP";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "WebP";
  if (bytes.starts_with(std::string_view("II*\0", 4)) ||
      bytes.starts_with(std::string_view("MM\0*", 4)))
    return "TIFF";
  if (bytes.size() < 12 || bytes.substr(4, 4) != "ftyp") return "";
  const std::string_view brand = bytes.substr(8, 4);
  if (brand.starts_with("avi")) return "AVIF";
  return brand.starts_with("he") || brand == "mif1" || brand == "msf1" ? "HEIC" : "";
}

Image read_picture(const std::string& path, int64_t channels) {
  const std::string bytes = read_file(path);
  if (bytes.starts_with("\x89PNG")) return read_png(path, bytes, channels);
  if (bytes.starts_with("\xFF\xD8")) return read_jpeg(path, bytes, channels);
  const std::string_view format = other_format(bytes);
  throw FileError(path, 0,
                  format.empty() ? "neither PNG nor JPEG"
                                 : fmt::format("a {} picture, expected PNG or JPEG", format));
}

}  // namespace

Image read_image(const std::string& path) { return read_picture(path, 1); }
Image read_colour_image(const std::string& path) { return read_picture(path, 3); }

std::string png_bytes(const Image& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::string out(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = out.size();
  if (!png_image_write_to_memory(&image, out.data(), &size, 0, picture.pixels.data(), 0, nullptr))
    throw InvalidArgument(std::string("picture: cannot be written as PNG: ") + image.message);
  out.resize(size);
  return out;
}

Image scaled(const Image& image, int64_t side) { return scaled(image, side, side); }

Image scaled(const Image& image, int64_t width, int64_t height) {
  const int64_t channels = image.channels;
  Image out{width, height, channels,
            std::vector<uint8_t>(static_cast<size_t>(width * height * channels))};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const int64_t y0 = y * image.height / height,
                    y1 = std::max(y0 + 1, (y + 1) * image.height / height);
      const int64_t x0 = x * image.width / width,
                    x1 = std::max(x0 + 1, (x + 1) * image.width / width);
      for (int64_t c = 0; c < channels; ++c) {
        int64_t sum = 0;
        for (int64_t v = y0; v < y1; ++v)
          for (int64_t u = x0; u < x1; ++u)
            sum += image.pixels[static_cast<size_t>((v * image.width + u) * channels + c)];
        out.pixels[static_cast<size_t>((y * width + x) * channels + c)] =
            static_cast<uint8_t>(sum / ((y1 - y0) * (x1 - x0)));
      }
    }
  return out;
}

Image shrunk(Image image, int64_t longest) {
  const int64_t side = std::max(image.width, image.height);
  if (side <= longest) return image;
  return scaled(image, std::max<int64_t>(1, image.width * longest / side),
                std::max<int64_t>(1, image.height * longest / side));
}

std::string folder_named(const std::string& input, size_t number, std::string_view line) {
  if (line.empty()) throw FileError(input, number, "a blank line, expected a folder of pictures");
  return std::string(line);
}

std::vector<std::string> image_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::filesystem::path& path : entries_of(folder))
    if (is_named_as_picture(path)) out.push_back(path.string());
  return out;
}

std::vector<std::string> image_files_within(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::filesystem::path& path : entries_of(folder)) {
    std::error_code ignored;
    if (std::filesystem::is_directory(std::filesystem::symlink_status(path, ignored))) {
      const std::vector<std::string> inner = image_files_within(path.string());
      out.insert(out.end(), inner.begin(), inner.end());
    } else if (is_named_as_picture(path)) {
      out.push_back(path.string());
    }
  }
  return out;
}

std::vector<Image> read_image_bag(const std::string& folder, int64_t side) {
  std::vector<Image> out;
  const std::vector<std::string> files = image_files(folder);
  // An empty folder is an empty bag; a folder of other files is a mistake.
  if (files.empty() && !entries_of(folder).empty())
    throw FileError(folder, 0, "no PNG or JPEG in it");
  for (const std::string& file : files) out.push_back(scaled(read_image(file), side));
  return out;
}

ImageBags read_image_bags(const std::string& folder, int64_t side) {
  ImageBags out;
  for (const auto& label : folders_in(folder)) {
    const std::string value = label.filename().string();
    if (value != "0" && value != "1")
      throw FileError(label.string(), 0, "expected 0 or 1, a label, as the folder's name");
    if (const auto loose = image_files(label.string()); !loose.empty())
      throw FileError(loose.front(), 0,
                      "a picture outside a bag, expected LABEL/BAG/ and pictures in it");
    for (const auto& bag : folders_in(label)) {
      out.names.push_back(label.filename().string() + "/" + bag.filename().string());
      out.labels.push_back(value == "1");
      out.images.push_back(read_image_bag(bag.string(), side));
    }
  }
  if (out.names.empty())
    throw FileError(folder, 0, "expected folders LABEL/BAG with PNG or JPEG files in them");
  return out;
}

}  // namespace fovea::data
