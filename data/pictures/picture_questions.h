// Questions about pictures: JSON Lines beside picture files, or beside an IDX file of many.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/pictures/idx.h"
#include "data/pictures/image.h"
#include "data/split.h"

namespace fovea::data {

struct PictureQuestion {
  std::string picture;  // "cat.png", or "pictures.idx#3" (from 0)
  std::string question;
  std::vector<std::string> answers;  // one, or those that several people gave; none: only asked
  std::vector<int64_t> cells = {};   // for each step the region to look at, from 0, row by row
};

// {"picture": "cat.png", "question": "what is it", "answer": "cat"}, where "answers" may list what
// several people said, and "cells" the regions to look at, from 1; or `picture<TAB>question`.
PictureQuestion parse_picture_question(std::string_view line, const std::string& name,
                                       size_t number);
std::string json_line(const PictureQuestion& question);

// min(votes / 3, 1) for answers of several people (Antol et al. 2015); 1 or 0 for a single answer.
double agreement(const std::vector<std::string>& answers, std::string_view given);
// The most frequent answer; of several equally frequent ones the first.
const std::string& commonest(const std::vector<std::string>& answers);

// Pictures by name, in three colours, scaled to side x side.
class PictureStore {
 public:
  // Names are of files in `folder`.
  PictureStore(std::string folder, int64_t side) : folder_(std::move(folder)), side_(side) {}
  std::vector<uint8_t> at(const std::string& name);  // [side, side, 3]
  Image whole(const std::string& name);              // in its own size

 private:
  std::string folder_;
  int64_t side_;
  std::map<std::string, Idx> opened_;
};

struct PictureQuestions {
  std::vector<PictureQuestion> questions;
  std::vector<std::vector<uint8_t>> pictures;  // of each question, [side, side, 3]
  Splits splits;
};
struct PictureRequest {
  int64_t side = 32;
  // For what the files do not split. `all_test`: everything is a test item, or only the test file
  // if there are several.
  SplitRequest split = {};
};
// A folder of train.jsonl, test.jsonl and perhaps valid.jsonl, or of questions.jsonl, which is
// split as `split` says. The questions about one picture go to the same split.
PictureQuestions read_picture_questions(const std::string& folder, const PictureRequest& request);
// The files of such a folder; pictures in one IDX file.
std::map<std::string, std::string> picture_question_files(const PictureQuestions& set,
                                                          int64_t side);

// Grids of cells x cells, a few things in them of four shapes and five colours. Each picture has one
// question, "what colour is the thing left of the circle": there is one circle, and `cells` are those
// of the circle and of the thing. Pictures for choosing are an eighth as many, for judging a quarter.
inline constexpr int64_t kGridCells = 4, kCellPixels = 8;
PictureQuestions generate_shape_grids(int64_t pictures, uint64_t seed);

}  // namespace fovea::data
