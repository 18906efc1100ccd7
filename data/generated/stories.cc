#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/random.h"
#include "data/story_set.h"

namespace fovea::data {
namespace {

constexpr size_t kPersons = 5, kPlaces = 6, kThings = 4;
constexpr std::array<const char*, kPersons> kPersonNames = {"Mary", "John", "Sandra", "Daniel",
                                                            "Julie"};
constexpr std::array<const char*, kPlaces> kPlaceNames = {"kitchen",  "garden",  "office",
                                                          "bathroom", "hallway", "bedroom"};
constexpr std::array<const char*, kThings> kThingNames = {"milk", "football", "apple", "lamp"};
constexpr std::array<const char*, 3> kMoves = {"went to", "moved to", "travelled to"};
constexpr std::array<const char*, 3> kTakes = {"took", "picked up", "grabbed"};

template <size_t kCount>
const char* one_of(const std::array<const char*, kCount>& words, Random& random) {
  return words[random.below(kCount)];
}

// Where each person went last, and who took what, each with the line that says so.
struct World {
  std::array<int64_t, kPersons> moved, place;
  std::array<int64_t, kThings> taken, holder;

  World() {
    for (auto* all : {&moved, &place}) all->fill(-1);
    for (auto* all : {&taken, &holder}) all->fill(-1);
  }
};

void go(Story& story, World& world, size_t person, Random& random) {
  size_t place = random.below(kPlaces);
  if (static_cast<int64_t>(place) == world.place[person]) place = (place + 1) % kPlaces;
  world.moved[person] = static_cast<int64_t>(story.lines.size());
  world.place[person] = static_cast<int64_t>(place);
  story.lines.push_back(fmt::format("{} {} the {}.", kPersonNames[person], one_of(kMoves, random),
                                    kPlaceNames[place]));
}

void take(Story& story, World& world, size_t person, size_t thing, Random& random) {
  world.taken[thing] = static_cast<int64_t>(story.lines.size());
  world.holder[thing] = static_cast<int64_t>(person);
  story.lines.push_back(fmt::format("{} {} the {}.", kPersonNames[person], one_of(kTakes, random),
                                    kThingNames[thing]));
}

Story story_of(int64_t supports, Random& random) {
  Story story;
  World world;
  const size_t length = 4 + random.below(7);
  while (story.lines.size() < length) {
    const size_t person = random.below(kPersons), thing = random.below(kThings);
    // A thing is taken once, by a person whose place is known.
    if (random.below(3) == 0 && world.taken[thing] < 0 && world.moved[person] >= 0)
      take(story, world, person, thing, random);
    else
      go(story, world, person, random);
  }
  StoryQuestion question;
  if (supports == 1) {
    size_t person = random.below(kPersons);
    while (world.moved[person] < 0) person = (person + 1) % kPersons;
    question = {.text = fmt::format("Where is {}?", kPersonNames[person]),
                .answer = kPlaceNames[static_cast<size_t>(world.place[person])],
                .support = {world.moved[person]}};
  } else {
    size_t thing = random.below(kThings);
    for (size_t tried = 0; tried < kThings && world.taken[thing] < 0; ++tried)
      thing = (thing + 1) % kThings;
    if (world.taken[thing] < 0) {
      size_t person = random.below(kPersons);
      while (world.moved[person] < 0) person = (person + 1) % kPersons;
      take(story, world, person, thing, random);
    }
    const auto holder = static_cast<size_t>(world.holder[thing]);
    question = {.text = fmt::format("Where is the {}?", kThingNames[thing]),
                .answer = kPlaceNames[static_cast<size_t>(world.place[holder])],
                .support = {world.taken[thing], world.moved[holder]}};
  }
  question.seen = static_cast<int64_t>(story.lines.size());
  story.questions.push_back(std::move(question));
  return story;
}

}  // namespace

StorySet generate_stories(int64_t stories, uint64_t seed) {
  StorySet out;
  out.tasks = {"one-line", "two-lines"};
  const int64_t each = stories / 2;
  for (const size_t task : {0, 1}) {
    Random random(mix(seed, 0x5708 + task));
    for (const auto& [split, count] :
         {std::pair(Split::kTrain, each), std::pair(Split::kValidation, each / 8),
          std::pair(Split::kTest, each / 4)})
      for (int64_t i = 0; i < count; ++i)
        out.stories.push_back({.story = story_of(static_cast<int64_t>(task) + 1, random),
                               .task = task,
                               .split = split});
  }
  list_questions(out);
  return out;
}

}  // namespace fovea::data
