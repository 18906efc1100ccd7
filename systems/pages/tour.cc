#include "systems/pages/tour.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "io/folder.h"
#include "io/write.h"
#include "data/files/read.h"
#include "explain/document.h"
#include "explain/report.h"
#include "explain/still.h"
#include "explain/thumbnail.h"
#include "systems/pages/beside.h"
#include "systems/pages/equations.h"
#include "systems/pages/lectures.h"
#include "systems/pages/visits.h"
#include "train/run/draft.h"
#include "train/usage_error.h"

namespace fovea::systems {
namespace {

constexpr const char* kTitle = "Attention, from 1964 on";
constexpr const char* kSubtitle = "Three steps: score, normalise, aggregate.";
constexpr const char* kOpening =
    "You have a question and a pile of things that may answer it. Compare the question with each "
    "thing, turn the comparisons "
    "into shares, and take from each thing what it holds in that share. That is attention, and it "
    "has not changed since the "
    "kernel regression of 1964.\n\n"
    "The question is the query q, the things are known by their keys k, and what they hold are "
    "their values v. Mechanisms "
    "differ in where the three come from, in the score, in the normaliser, and in which keys a "
    "query may see. Drag the query "
    "below, change the score and the normaliser, and watch the three steps. Then follow them "
    "through the systems: each shows a "
    "run on generated data, where the right place to look is known, so that its attention can "
    "be marked like an exam.";
constexpr const char* kIndexFile = "index.html";
constexpr const char* kLecturesFile = "lectures.html";
constexpr const char* kPictureFile = "picture.svg";
constexpr const char* kCode =
    "auto out = fovea::attend(query, key, value,\n"
    "                         {.score = fovea::Dot{},\n"
    "                          .normaliser = fovea::Softmax{},\n"
    "                          .structure = fovea::Dense{}});";

std::vector<const System*> chosen(const std::vector<std::string>& only) {
  if (only.empty()) return all();
  std::vector<const System*> systems;
  for (const std::string& name : only) systems.push_back(&find(name));
  return systems;
}

std::string page_name(const std::string& id) { return id + ".html"; }

// A tour replaces the runs and the pages of the previous tour, and nothing else.
void check_room(const std::filesystem::path& out, const std::vector<const System*>& systems) {
  for (const System* system : systems) {
    const std::filesystem::path place = out / system->info.name;
    if (train::has_foreign_files(place) && !train::RunFolder::is_whole(place))
      throw UsageError(
          fmt::format("--out {}: {} is there already and is no RUN; choose another folder",
                      out.string(), place.string()));
  }
  const auto is_ours = [&](const std::string& page) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(out / page, ignored) &&
           explain::is_document(data::read_bytes((out / page).string()));
  };
  std::vector<std::string> pages = {kIndexFile, kLecturesFile};
  for (const System* system : systems) pages.push_back(page_name(system->info.name));
  pages.emplace_back(kPictureFile);
  for (const std::string& page : pages)
    // The picture comes after the first page.
    if (std::filesystem::exists(out / page) && !is_ours(page == kPictureFile ? kIndexFile : page))
      throw UsageError(fmt::format(
          "--out {}: {} is there already and is no page of a tour; choose another folder",
          out.string(), (out / page).string()));
}

// The README's picture: one panel for each system whose picture can be read without interaction.
std::string still_of(const std::vector<explain::Section>& sections) {
  constexpr size_t kPanels = 3;
  std::vector<explain::Explanation> panels;
  for (const explain::Section& section : sections) {
    const auto found =
        std::find_if(section.explanations.begin(), section.explanations.end(), explain::is_still);
    if (found != section.explanations.end() && panels.size() < kPanels) panels.push_back(*found);
  }
  return panels.empty() ? "" : explain::still_svg(panels);
}

explain::PageLink link_to(const explain::Section& section) {
  return {.title = section.title, .address = page_name(section.id)};
}

// A page for each system, which leads to its neighbours.
void write_pages(const std::filesystem::path& out, const std::vector<explain::Section>& sections) {
  for (size_t i = 0; i < sections.size(); ++i) {
    explain::ReportOptions options{.title = sections[i].title};
    options.contents = {.title = "Contents", .address = "index.html#" + sections[i].id};
    if (i > 0) options.previous = link_to(sections[i - 1]);
    if (i + 1 < sections.size()) options.next = link_to(sections[i + 1]);
    io::write_file(out / page_name(sections[i].id), explain::html_report({sections[i]}, options));
  }
}

explain::Card card_of(const explain::Section& section) {
  std::string picture;
  for (const explain::Explanation& explanation : section.explanations)
    if (picture.empty()) picture = explain::thumbnail_svg(explanation);
  return {.id = section.id,
          .address = page_name(section.id),
          .title = section.title,
          .byline = section.byline,
          .picture = picture};
}

void write_index(const std::filesystem::path& out, const std::vector<explain::Section>& sections) {
  explain::ReportOptions options{
      .title = kTitle, .subtitle = kSubtitle, .introduction = {}, .demonstration = true};
  options.introduction.prose = kOpening;
  options.introduction.equation = mathml(find("general").info.equation);
  options.introduction.code = kCode;
  for (const explain::Section& section : sections) options.cards.push_back(card_of(section));
  options.contents = {.title = "Through four lectures", .address = kLecturesFile};
  options.next = link_to(sections.front());
  io::write_file(out / kLecturesFile, explain::html_report({}, lectures_page(options.cards)));
  io::write_file(out / kIndexFile, explain::html_report({}, options));
}

}  // namespace

TourResult tour(const TourRequest& request, train::Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<const System*> systems = chosen(request.only);
  check_room(request.out, systems);
  io::make_folder(request.out);
  TourResult result{
      .ran = {}, .failed = {}, .found = {}, .seconds = 0, .page = request.out / kIndexFile};
  std::vector<explain::Section> sections;
  std::vector<Visit> seen = visits(systems, request, progress);
  for (size_t i = 0; i < systems.size(); ++i) {
    const std::string& name = systems[i]->info.name;
    if (!seen[i].failure.empty()) {
      result.failed.push_back(fmt::format("{} ({})", name, seen[i].failure));
      continue;
    }
    if (seen[i].hit_rate)
      result.found += fmt::format("{}{} {:.1f} %", result.found.empty() ? "" : ", ", name,
                                  100 * *seen[i].hit_rate);
    sections.push_back(std::move(seen[i].section));
    result.ran.push_back(name);
  }
  if (sections.empty()) return result;  // an empty page would replace one with contents
  set_beside(sections, "seq2seq", "bahdanau");
  write_pages(request.out, sections);
  write_index(request.out, sections);
  if (const std::string still = still_of(sections); !still.empty())
    io::write_file(request.out / kPictureFile, still);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace fovea::systems
