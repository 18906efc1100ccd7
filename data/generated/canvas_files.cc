#include "data/generated/canvas_files.h"

namespace fovea::data {
namespace {

constexpr const char* kPictures = "pictures.idx";

std::string name_of_picture(size_t n) { return std::string(kPictures) + "#" + std::to_string(n); }

}  // namespace

DrawnPictures pictures_of(const Canvases& canvases) {
  DrawnPictures out;
  for (const Canvas& canvas : canvases.items) {
    Captioned& item = out.set.items.emplace_back();
    item.image = name_of_picture(out.pixels.size());
    for (size_t i = 0; i < canvas.digits.size(); ++i)
      item.boxes.emplace_back(digit_name(canvas.digits[i]), canvas.boxes[i]);
    out.pixels.push_back(in_colour(canvas));
  }
  out.set.splits = canvases.splits;
  for (const Split part : {Split::kTrain, Split::kValidation, Split::kTest})
    for (const int64_t i : canvases.splits.of(part))
      out.set.items[static_cast<size_t>(i)].split = name_of(part);
  return out;
}

std::map<std::string, std::string> picture_files(std::vector<Captioned> items, const Idx& pixels) {
  for (size_t i = 0; i < items.size(); ++i) items[i].image = name_of_picture(i);
  return {{kPictures, idx_bytes(pixels)}, {"captions.jsonl", caption_lines(items)}};
}

}  // namespace fovea::data
