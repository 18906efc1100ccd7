#include "data/story_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "data/files/file.h"

namespace fovea::data {
namespace {

namespace fs = std::filesystem;

// qa2 before qa10.
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  }
};
using Parts = std::map<Split, std::string>;  // file of each part
using Tasks = std::map<std::string, Parts, ByNumber>;

struct FileName {
  std::string task;
  std::optional<Split> part = {};
};

// "qa1_single-supporting-fact_train.txt.gz" is the training part of qa1.
FileName named(const fs::path& path) {
  std::string name = path.filename().string();
  for (const std::string_view ending : {".gz", ".txt", ".jsonl", ".json"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  const size_t mark = name.find_last_of("_.-");
  std::string last = mark == std::string::npos ? name : name.substr(mark + 1);
  if (last == "valid") last = "validation";
  FileName out;
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest})
    if (last == name_of(split) || (split == Split::kValidation && (last == "val" || last == "dev")))
      out.part = split;
  if (out.part) name = mark == std::string::npos ? "stories" : name.substr(0, mark);
  const bool numbered = name.starts_with("qa") && name.find('_') != std::string::npos;
  out.task = numbered ? name.substr(0, name.find('_')) : name;
  return out;
}

Tasks files_in(const std::string& folder, const std::vector<std::string>& wanted) {
  Tasks out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const FileName name = named(entry.path());
    if (!name.part || !entry.is_regular_file()) continue;
    std::string& place = out[name.task][*name.part];
    if (!place.empty())
      throw FileError(folder, 0,
                      fmt::format("both {} and {} could be the {} part of {}, expected one", place,
                                  entry.path().string(), name_of(*name.part), name.task));
    place = entry.path().string();
  }
  if (out.empty())
    throw FileError(folder, 0, "expected files called NAME_train and NAME_test, .txt or .jsonl");
  for (const std::string& task : wanted)
    if (!out.contains(task))
      throw FileError(folder, 0,
                      fmt::format("no task {} in it, expected {}_train.txt", task, task));
  std::erase_if(out, [&](const auto& task) {
    return !wanted.empty() && std::find(wanted.begin(), wanted.end(), task.first) == wanted.end();
  });
  return out;
}

void add(StorySet& set, const std::string& file, Split split) {
  for (Story& story : read_stories(file))
    set.stories.push_back({std::move(story), set.tasks.size() - 1, split});
}

// Splits off some of the training stories of the last task.
void part(StorySet& set, const SplitRequest& shares) {
  SplitRequest request = shares;
  std::vector<FiledStory*> all;
  for (FiledStory& one : set.stories) {
    if (one.task + 1 != set.tasks.size() || one.split != Split::kTrain) continue;
    all.push_back(&one);
    request.keys.push_back(item_key(babi_text({one.story})));
  }
  const Splits splits = split(static_cast<int64_t>(all.size()), request);
  for (const Split part : {Split::kValidation, Split::kTest})
    for (const int64_t i : splits.of(part)) all[static_cast<size_t>(i)]->split = part;
}

void add_task(StorySet& set, const std::string& name, const Parts& files,
              const StoryRequest& request) {
  if (!files.contains(request.split.all_test ? Split::kTest : Split::kTrain)) {
    set.left_out.push_back(name);
    return;
  }
  set.tasks.push_back(name);
  for (const auto& [split, file] : files)
    if (!request.split.all_test || split == Split::kTest) add(set, file, split);
  SplitRequest shares = request.split;
  shares.test = 0;
  if (!request.split.all_test && !files.contains(Split::kValidation)) part(set, shares);
}

}  // namespace

void list_questions(StorySet& set) {
  for (size_t story = 0; story < set.stories.size(); ++story)
    for (size_t question = 0; question < set.stories[story].story.questions.size(); ++question) {
      set.splits.of(set.stories[story].split).push_back(static_cast<int64_t>(set.items.size()));
      set.items.push_back({story, question});
      set.splits.keys.push_back(
          item_key(fmt::format("{}{}", question, babi_text({set.stories[story].story}))));
    }
}

StorySet read_story_set(const std::string& path, const StoryRequest& request) {
  StorySet out;
  if (fs::is_directory(path)) {
    if (request.split.folds > 0)
      throw FileError(
          path, 0,
          "--folds: this data has a test part of its own; give one file to cross-validate");
    for (const auto& [name, files] : files_in(path, request.tasks))
      add_task(out, name, files, request);
    if (out.tasks.empty())
      throw FileError(path, 0,
                      request.split.all_test ? "no test part in it" : "no training part in it");
  } else {
    if (!request.tasks.empty() && !request.split.all_test)
      throw FileError(path, 0, "tasks: expected a folder to choose them from");
    out.tasks.push_back(named(path).task);
    add(out, path, request.split.all_test ? Split::kTest : Split::kTrain);
    if (!request.split.all_test) part(out, request.split);
  }
  list_questions(out);
  return out;
}

std::map<std::string, std::string> story_files(const StorySet& set) {
  std::map<std::string, std::string> out;
  for (const FiledStory& one : set.stories)
    out[fmt::format("{}_{}.txt", set.tasks[one.task], name_of(one.split))] +=
        babi_text({one.story});
  return out;
}

}  // namespace fovea::data
