// Questions about pictures, and the shape grids made up for them.
#include "data/pictures/picture_questions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/files/file.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

class PictureFiles : public Files {
 protected:
  std::string said(const std::string& line) const {
    try {
      parse_picture_question(line, "q", 4);
    } catch (const FileError& error) {
      return error.what();
    }
    return "nothing";
  }
};

TEST_F(PictureFiles, LinesAreReadAndMistakesNamed) {
  const PictureQuestion one = parse_picture_question(
      R"({"picture": "a.png", "question": "what", "answers": ["x", "y", "x"], "cells": [3, 1]})",
      "q", 1);
  EXPECT_EQ(one.cells, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(commonest(one.answers), "x");
  EXPECT_EQ(parse_picture_question("a.png\twhat is it", "q", 1).question, "what is it");
  EXPECT_EQ(said(""), "q:4: a blank line, expected a picture and a question");
  EXPECT_EQ(said("a.png what"), "q:4: expected picture<TAB>question, or a JSON object");
  EXPECT_EQ(said("{"), "q:4: expected a JSON object");
  EXPECT_EQ(said(R"({"picture": 3, "question": "b"})"), "q:4: expected \"picture\" to be a text");
  EXPECT_EQ(said(R"({"picture": "a", "question": "b", "cells": [0]})"),
            "q:4: expected \"cells\" to be a list of numbers from 1");
  EXPECT_EQ(said(R"({"picture": "a", "question": "b", "cells": 3})"),
            "q:4: expected \"cells\" to be a list of numbers from 1");
  EXPECT_EQ(said(R"({"picture": "a", "question": "b", "answers": []})"),
            "q:4: expected \"answer\", or \"answers\", a list of texts");
}

TEST_F(PictureFiles, ThreeOfTenVotesAreEnough) {
  const std::vector<std::string> votes = {"a", "a", "b", "a", "b", "c"};
  EXPECT_DOUBLE_EQ(agreement(votes, "a"), 1);
  EXPECT_DOUBLE_EQ(agreement(votes, "b"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(agreement(votes, "d"), 0);
  EXPECT_DOUBLE_EQ(agreement({"a"}, "a"), 1);
}

TEST_F(PictureFiles, WhatIsGeneratedIsReadBack) {
  const PictureQuestions made = generate_shape_grids(16, 5);
  for (const auto& [name, bytes] : picture_question_files(made, 32)) write(name, bytes);
  const PictureQuestions read = read_picture_questions(base_.string(), {});
  EXPECT_EQ(read.pictures, made.pictures);
  EXPECT_EQ(read.splits.test, made.splits.test);
  EXPECT_EQ(picture_question_files(read, 32), picture_question_files(made, 32));
  EXPECT_EQ(read_picture_questions(base_.string(), {.split = {.all_test = true}}).questions.size(),
            4u);
  const PictureQuestions half = read_picture_questions(base_.string(), {.side = 16});
  EXPECT_EQ(half.pictures.at(0).size(), 16u * 16 * 3) << "pictures are scaled";
  PictureStore store(base_.string(), 32);
  EXPECT_THROW(store.at("pictures.idx#99"), FileError);
  EXPECT_THROW(store.at("pictures.idx#x"), FileError);
  EXPECT_THROW(store.at("train.jsonl"), FileError);
  write("flat.idx", idx_bytes({{2, 4, 4}, std::vector<uint8_t>(32)}));
  EXPECT_THROW(store.at("flat.idx#0"), FileError);
}

TEST(ShapeGrids, ThereIsOneReferentAndTheThingIsNextToIt) {
  const PictureQuestions made = generate_shape_grids(200, 1);
  std::set<std::string> answers;
  for (size_t i = 0; i < made.questions.size(); ++i) {
    const PictureQuestion& one = made.questions[i];
    answers.insert(one.answers.at(0));
    const int64_t rows = one.cells.at(1) / kGridCells - one.cells.at(0) / kGridCells,
                  columns = one.cells[1] % kGridCells - one.cells[0] % kGridCells;
    const std::string& question = one.question;
    const auto says = [&](const char* words) { return question.find(words) != std::string::npos; };
    EXPECT_EQ(std::abs(rows) + std::abs(columns), 1);
    EXPECT_EQ(rows, says("above") ? -1 : says("below") ? 1 : 0);
    EXPECT_EQ(columns, says("left of") ? -1 : says("right of") ? 1 : 0);
  }
  EXPECT_EQ(answers.size(), 5u);
}

// Pixels of the ground are 40 at most, and a thing has a brighter one.
size_t things_in(const std::vector<uint8_t>& picture) {
  constexpr int64_t kSide = kGridCells * kCellPixels;
  std::set<int64_t> cells;
  for (int64_t i = 0; i < kSide * kSide; ++i)
    if (*std::max_element(&picture[static_cast<size_t>(3 * i)],
                          &picture[static_cast<size_t>(3 * i)] + 3) > 60)
      cells.insert(i / kSide / kCellPixels * kGridCells + i % kSide / kCellPixels);
  return cells.size();
}

// Of two things, the one that is not named is the answer: that takes one look, not two.
TEST(ShapeGrids, EveryPictureHasThreeToSixThings) {
  std::set<size_t> seen;
  for (const std::vector<uint8_t>& picture : generate_shape_grids(200, 1).pictures)
    seen.insert(things_in(picture));
  EXPECT_EQ(seen, (std::set<size_t>{3, 4, 5, 6}));
}

}  // namespace
}  // namespace fovea::data
