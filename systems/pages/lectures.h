// The line of thought of four lectures on attention, idea by idea, each with the system that shows it.
#pragma once

#include <span>

#include "explain/contents.h"
#include "explain/report.h"

namespace fovea::systems {

// An idea as a lecture puts it, and the system whose page shows it.
struct Idea {
  const char *lecture, *title, *system;
  const char* see;  // what to look at there, in one sentence
};
// In the order of the lectures. Some systems come again where a lecture comes back to them.
std::span<const Idea> ideas();

// The page that goes through the lectures: a card for each idea whose system is among `cards`, with its
// picture and its page.
explain::ReportOptions lectures_page(const std::vector<explain::Card>& cards);

}  // namespace fovea::systems
