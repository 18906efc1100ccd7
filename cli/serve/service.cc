#include "cli/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <sstream>

#include "cli/output/streams.h"
#include "cli/verbs/verbs.h"
#include "data/files/json.h"
#include "data/files/read.h"
#include "explain/report.h"
#include "explain/thumbnail.h"
#include "systems/pages/examples.h"
#include "systems/pages/lecture.h"
#include "systems/run/session.h"
#include "train/answers.h"
#include "train/failure.h"

namespace fovea::cli {
namespace {

constexpr ptrdiff_t kMostExplained = 1000;  // lines of a request: each may have pictures of its own

constexpr const char* kHtml = "text/html; charset=utf-8";

// A name for an address, from the folder's: letters, digits, '.', '_' and '-'.
std::string address_of(const std::string& run) {
  std::filesystem::path path = std::filesystem::absolute(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = path.filename().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) &&
        std::string("._-").find(c) == std::string::npos)
      c = '-';
  return name.find_first_not_of('.') == std::string::npos ? "run" : name;
}

}  // namespace

// One RUN. A task is not made for several threads.
struct Service::Served {
  std::string name;
  systems::Run run;
  std::string page, thumbnail;
  std::mutex one_at_a_time;
};

Service::Service(const ServiceOptions& options) : options_(options) {
  for (const std::string& folder : options_.runs) {
    auto served = std::make_unique<Served>();
    const std::string wanted = address_of(folder);
    served->name = wanted;
    for (int i = 2; std::count(names_.begin(), names_.end(), served->name); ++i)
      served->name = fmt::format("{}-{}", wanted, i);
    served->run =
        systems::open(folder, options_.device, options_.threads, options_.set, Use::kExplain);
    say_which(served->run, folder);
    const systems::Info& info = served->run.system->info;
    std::vector<explain::Explanation> pictures = systems::explain(served->run, nullptr);
    if (!pictures.empty()) served->thumbnail = explain::thumbnail_svg(pictures.front());
    const std::string example = systems::example_of(served->run, pictures);
    served->page =
        explain::html_report({systems::lecture(served->run, std::move(pictures), {}, {})},
                             {.title = info.title,
                              .subtitle = folder,
                              .live = explain::Live{.address = "explain", .example = example}});
    names_.push_back(served->name);
    served_.push_back(std::move(served));
  }
}

Service::~Service() = default;

Response Service::infer(Served& served, const Request& request, const std::string& wanted) {
  const std::string text = input_of(request);
  const ptrdiff_t lines_in = std::count(text.begin(), text.end(), '\n');
  if (wanted == "explain" && lines_in > kMostExplained)
    throw Refusal{413, fmt::format("input: {} lines, expected at most {} to explain", lines_in,
                                   kMostExplained)};
  const data::NoFiles guard;
  const std::lock_guard lock(served.one_at_a_time);
  Json answers = Json::array(), notes = Json::array();
  std::istringstream lines(text);
  Input input{lines, "input"};
  input.refused = [&](const std::string&) {};  // the answer in its place is {"error": …}
  input.noted = [&](const std::string& note) { notes.push_back(note); };
  std::stringbuf buffer;
  JsonLines objects(&buffer);
  systems::predict(served.run, input, objects);
  std::istringstream answered(buffer.str());
  for (std::string line; std::getline(answered, line);)
    if (!line.empty()) answers.push_back(data::json_in(line));
  Json out = {{"answers", answers}, {"notes", notes}};
  if (wanted == "explain") {
    std::istringstream again(text);
    Input shown{again, "input"};
    Json explanations = Json::array();
    for (const explain::Explanation& one : systems::explain(served.run, &shown))
      explanations.push_back(Json::parse(explain::to_json(one)));
    out["explanations"] = std::move(explanations);
  }
  return json_response(out);
}

Response Service::route(const Request& request) {
  const bool posts = request.method == "POST";
  if (!posts && request.path == "/runs") {
    Json runs = Json::array();
    for (const auto& served : served_) {
      const systems::Info& info = served->run.system->info;
      runs.push_back({{"name", served->name}, {"system", info.name}, {"title", info.title}});
    }
    return json_response({{"runs", runs}});
  }
  if (!posts && request.path == "/") {
    if (served_.size() == 1)
      return {.status = 302, .type = kHtml, .location = names_.front() + "/"};
    std::vector<explain::Card> cards;
    for (const auto& served : served_)
      cards.push_back({.id = served->name,
                       .address = served->name + "/",
                       .title = served->run.system->info.title,
                       .byline = served->name,
                       .picture = served->thumbnail});
    return {.type = kHtml, .body = explain::html_report({}, {.title = "Fovea", .cards = cards})};
  }
  for (const auto& served : served_) {
    const std::string base = "/" + served->name;
    if (!posts && request.path == base)
      return {.status = 302, .type = kHtml, .location = base + "/"};
    if (!posts && request.path == base + "/") return {.type = kHtml, .body = served->page};
    for (const std::string wanted : {"predict", "explain"}) {
      if (request.path != base + "/" + wanted) continue;
      if (!posts) throw Refusal{405, "method: expected POST"};
      return infer(*served, request, wanted);
    }
  }
  throw Refusal{404, "no such page; GET /runs lists the runs"};
}

std::optional<Response> Service::refusal(const Request& head) const {
  try {
    check_head(head, options_.only_this_machine);
    return {};
  } catch (const Refusal& refusal) {
    return refused(refusal);
  }
}

Response Service::answer(const Request& request) {
  try {
    check_head(request, options_.only_this_machine);
    return route(request);
  } catch (const Refusal& refusal) {
    return refused(refusal);
  } catch (const InvalidArgument& error) {
    return refused({400, error.what()});
  } catch (const Unsupported& error) {
    return refused({400, error.what()});
  } catch (const std::exception& error) {
    return refused({500, train::words_of(error)});
  }
}

}  // namespace fovea::cli
