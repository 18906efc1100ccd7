// Pictures with captions, as the field keeps them: a table or JSON of captions, and beside it the
// pictures, or arrays of regions that another tool made of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/captions/box.h"
#include "data/captions/regions.h"
#include "data/pictures/image.h"
#include "data/split.h"

namespace fovea::data {

struct Captioned {
  std::string image;                  // the picture's name, as the captions have it
  std::vector<std::string> captions;  // as written
  std::string split = {};             // as written; empty: not said
  // What a word of a caption names, and where that is in the picture.
  std::vector<std::pair<std::string, Box>> boxes = {};
};

struct CaptionSet {
  std::vector<Captioned> items;
  Splits splits;
  std::string folder;                   // of the pictures; empty: there are none
  Regions regions = {};                 // one row for each item; empty: the pictures are to be read
  std::vector<Image> thumbnails = {};   // of the first test items, for drawing
  std::vector<std::string> notes = {};  // what was left out, and why

  // Where an item's picture is.
  std::string path_of(int64_t item) const;
  // A picture to draw upon; of no pixels where there is none.
  Image drawn(int64_t item) const;
};

struct CaptionRequest {
  // For what the file does not split. `all_test`: all is judged, or the test part if there is one.
  SplitRequest split = {};
};

// `path` is a folder with a file of captions (captions.tsv, .txt, .csv, .json, .jsonl, gzip or not, or a
// single other file of those endings), or that file. Beside it:
//   regions.i8 with regions.scale.txt, regions.npy, regions.safetensors or a folder regions/ with
//   IMAGE.npy for each picture: arrays of regions, one row for each picture in the order of the file;
//   otherwise the pictures (in the folder, or in images/): PNG or JPEG.
// A caption whose picture is missing, and a picture that has no caption, are named in `notes`. More than
// half of the captions without a picture: FileError.
CaptionSet read_captions(const std::string& path, const CaptionRequest& request);

// The file of captions alone, in any of these forms:
//   image<TAB>caption<TAB>…               further lines of an image add captions
//   image<TAB>split<TAB>caption<TAB>…     train, val (dev, valid, validation), test
//   image#0<TAB>caption                   Flickr8k's token file
//   image,caption                         a table with a header, also with a column split; picture_column
//                                         and caption_columns (collection.h) know further names
//   image_name| comment_number| comment   Flickr30k's table
//   {"image", "caption" or "captions", "split", "boxes": {word: [left, top, width, height]}}
//                                         JSON Lines, or a list of these objects; "labels" for a set
//   {"images": [{"filename", "split", "sentences": [{"raw" or "tokens"}]}]}      Karpathy's split file
//   {"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}  COCO's
std::vector<Captioned> parse_captions(const std::string& text, const std::string& path);

// As JSON Lines.
std::string caption_lines(const std::vector<Captioned>& items);

// Lower case, without punctuation, "'s" on its own: what the captioning field counts words by.
std::vector<std::string> caption_words(std::string_view caption);

}  // namespace fovea::data
