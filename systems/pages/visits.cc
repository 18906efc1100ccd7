#include "systems/pages/visits.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <thread>

#include "systems/pages/lecture.h"
#include "systems/pages/shipped.h"
#include "systems/run/machine.h"
#include "systems/run/session.h"
#include "train/failure.h"
#include "train/interrupt.h"

namespace fovea::systems {
namespace {

constexpr const char* kMeasuresTime = "cost";  // nothing else may run beside it
constexpr const char* kCameTrained =
    "\n\nThis run came with the program, trained: a tour has not the time to. The command below "
    "repeats its training.";

// What trains the run again: every option that is not at its default, and the seed.
std::string command_of(const System& system, const Json& config) {
  std::string command = "fovea train " + system.info.name;
  const Json defaults = system.option_values().json();
  for (const auto& [name, value] : config.at("options").items())
    if (!defaults.contains(name) || defaults.at(name) != value)
      command += fmt::format(" --set {}={}", name,
                             value.is_string() ? value.get<std::string>() : value.dump());
  if (const uint64_t seed = config.at("seed"); seed != TrainRequest{}.seed)
    command += fmt::format(" --seed {}", seed);
  return command + " --out RUN && fovea explain RUN --out report.html";
}

// What `evaluate` says of a run that was just trained, or that came with the program.
Json made(const System& system, const TourRequest& request, const std::filesystem::path& out) {
  if (is_shipped(system.info.name)) {
    unpack_shipped(system.info.name, out);
    return evaluate(out, "", "test", "cpu", request.threads);
  }
  TrainRequest training;
  training.system = system.info.name;
  training.set = system.tour;
  training.threads = request.threads;
  training.out = out;
  training.overwrite = true;
  train::Progress silent(train::Progress::Style::kSilent);
  return train(training, silent);
}

Visit visit(const System& system, const TourRequest& request) {
  const std::filesystem::path out = request.out / system.info.name;
  const Json report = made(system, request, out);
  Run run = open(out, "cpu", request.threads);
  Visit result{lecture(run, explain(run, nullptr), report, command_of(system, run.config)), {}, {}};
  if (is_shipped(system.info.name)) result.section.prose += kCameTrained;
  if (report.at("attention").contains("hit_rate"))
    result.hit_rate = report.at("attention").at("hit_rate").get<double>();
  return result;
}

// A visit as its process hands it over.
using Bytes = std::vector<uint8_t>;

template <class Section, class Do>
void each_text(Section& section, const Do& with) {
  with("id", section.id), with("title", section.title), with("byline", section.byline);
  with("prose", section.prose), with("look", section.look), with("equation", section.equation);
  with("code", section.code), with("command", section.command);
}

Bytes written(const Visit& visit) {
  Json out = {{"failure", visit.failure}, {"figures", Json::array()}, {"pictures", Json::array()}};
  if (visit.hit_rate) out["hit_rate"] = *visit.hit_rate;
  each_text(visit.section, [&](const char* name, const std::string& text) { out[name] = text; });
  for (const explain::Figure& figure : visit.section.figures) {
    Json row = {{"name", figure.name}, {"reached", figure.reached}, {"expected", figure.expected}};
    if (figure.met) row["met"] = *figure.met;
    out["figures"].push_back(std::move(row));
  }
  for (const explain::Explanation& picture : visit.section.explanations)
    out["pictures"].push_back(explain::to_json(picture));
  return Json::to_cbor(out);
}

Visit read(const Bytes& bytes) {
  const Json in = Json::from_cbor(bytes);
  Visit visit;
  visit.failure = in.at("failure");
  if (in.contains("hit_rate")) visit.hit_rate = in.at("hit_rate").get<double>();
  each_text(visit.section, [&](const char* name, std::string& text) { text = in.at(name); });
  for (const Json& row : in.at("figures")) {
    explain::Figure figure{row.at("name"), row.at("reached"), row.at("expected"), {}};
    if (row.contains("met")) figure.met = row.at("met").get<bool>();
    visit.section.figures.push_back(std::move(figure));
  }
  for (const Json& picture : in.at("pictures"))
    visit.section.explanations.push_back(explain::from_json(picture.get_ref<const std::string&>()));
  return visit;
}

// A process that makes one visit. The destructor ends one that still runs.
class Traveller {
 public:
  Traveller(size_t place, const System& system, const TourRequest& request) : place_(place) {
    std::fflush(nullptr);  // or the child would print it again
    file_ = memfd_create("fovea-visit", MFD_CLOEXEC);
    const pid_t parent = getpid();
    pid_ = file_ < 0 ? -1 : fork();
    if (pid_ < 0) {
      const int error = errno;
      if (file_ >= 0) close(file_);
      throw std::runtime_error(
          fmt::format("no process could be started: {}", std::strerror(error)));
    }
    if (pid_ == 0) travel(system, request, parent);
  }
  ~Traveller() {
    if (pid_ > 0) {
      kill(pid_, SIGTERM);
      kill(pid_, SIGCONT);  // a stopped one would not hear
      waitpid(pid_, nullptr, 0);
    }
    close(file_);
  }
  Traveller(const Traveller&) = delete;
  Traveller& operator=(const Traveller&) = delete;

  size_t place() const { return place_; }
  // What it has seen, once it has come back.
  std::optional<Visit> back() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = -1;
    if (WIFSIGNALED(status))
      return Visit{
          {},
          {},
          fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))};
    if (WEXITSTATUS(status) != 0)
      return Visit{{}, {}, fmt::format("ended with code {}", WEXITSTATUS(status))};
    Bytes bytes(static_cast<size_t>(lseek(file_, 0, SEEK_END)));
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t got =
          pread(file_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
      if (got <= 0) throw std::runtime_error("what a visit saw could not be read");
      at += static_cast<size_t>(got);
    }
    return read(bytes);
  }

 private:
  // Ctrl-C reaches the parent alone, which passes it on; if the parent ends, its child ends.
  [[noreturn]] void travel(const System& system, const TourRequest& request, pid_t parent) const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(128 + SIGTERM);  // it ended before the kernel knew
    train::say_when_stopped("");
    Visit seen;
    try {
      const train::ExitWhenAsked exits;
      seen = visit(system, request);
    } catch (const std::exception& error) {
      seen = {.section = {}, .hit_rate = {}, .failure = train::words_of(error)};
    }
    const Bytes bytes = written(seen);
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t put = write(file_, bytes.data() + at, bytes.size() - at);
      if (put <= 0) _exit(1);
      at += static_cast<size_t>(put);
    }
    _exit(0);
  }

  size_t place_;
  int file_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

std::vector<Visit> visits(const std::vector<const System*>& systems, const TourRequest& request,
                          train::Progress& progress) {
  const train::SavesWhenAsked passes_it_on;
  const size_t threads = static_cast<size_t>(request.threads > 0 ? request.threads : all_threads());
  std::vector<size_t> order(systems.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto shares = [&](size_t place) { return systems[place]->info.name != kMeasuresTime; };
  const auto alone = std::stable_partition(order.begin(), order.end(), shares);
  const size_t beside = static_cast<size_t>(alone - order.begin());

  std::vector<Visit> seen(systems.size());
  std::list<Traveller> away;
  size_t next = 0, done = 0;
  while (done < systems.size()) {
    train::stop_if_interrupted("the tour, which starts again from the beginning");
    const size_t places = next < beside ? std::min(threads, beside) : 1;
    if (next < order.size() && away.size() < places) {
      TourRequest own = request;
      own.threads = static_cast<int>(std::max<size_t>(1, threads / places));
      away.emplace_back(order[next], *systems[order[next]], own);
      ++next;
      continue;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (auto one = away.begin(); one != away.end();) {
      std::optional<Visit> visit = one->back();
      const size_t place = one->place();
      one = visit ? away.erase(one) : std::next(one);
      if (!visit) continue;
      const std::string words = visit->failure.empty() ? "" : fmt::format(" ({})", visit->failure);
      progress.line(
          fmt::format("{} of {}: {}{}", ++done, systems.size(), systems[place]->info.title, words));
      seen[place] = *std::move(visit);
    }
  }
  return seen;
}

}  // namespace fovea::systems
