// The stories of one or more tasks, split into training, validation and test.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/split.h"
#include "data/formats/stories.h"

namespace fovea::data {

struct FiledStory {
  Story story;
  size_t task = 0;
  Split split = Split::kTrain;
};

// An item is a question.
struct StoryItem {
  size_t story = 0, question = 0;
};

struct StorySet {
  std::vector<std::string> tasks;     // "qa1" of qa1_single-supporting-fact_train.txt
  std::vector<std::string> left_out;  // tasks with a test file, but none to learn from
  std::vector<FiledStory> stories;
  std::vector<StoryItem> items;
  Splits splits;  // of the items
};
// The items and their splits, from the stories.
void list_questions(StorySet& set);

struct StoryRequest {
  std::vector<std::string> tasks = {};  // of a folder; empty: all
  // For what the files do not split. `all_test`: everything is a test item; of a folder, its test
  // files.
  SplitRequest split = {};
};
// A file, split as `split` says; or a folder of NAME_train, NAME_test and perhaps NAME_valid (.txt
// or .jsonl, gzip or not). Without NAME_valid, a share of NAME_train is for validation. Equal
// stories go to the same split.
StorySet read_story_set(const std::string& path, const StoryRequest& request);
// The files of such a folder, by name.
std::map<std::string, std::string> story_files(const StorySet& set);

// Persons move between places and take things; each story ends with a question. Half of the
// training stories ask where a person is, which one line says. The other half ask where a thing is
// that somebody took, which follows from two lines. An eighth as many are for validation, a quarter
// for test.
StorySet generate_stories(int64_t stories, uint64_t seed);

}  // namespace fovea::data
