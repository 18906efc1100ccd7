#include "train/ranks/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

#include "train/types.h"

namespace fovea::train {
namespace {

constexpr size_t kHead = 4096;  // of a region: a page of its own

// The same for all processes of a machine, in containers too.
std::string machine() {
  std::array<char, 64> line{};
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(line.data(), line.size(), file)) line[0] = '\0';
    std::fclose(file);
  }
  return line.data();
}

// The same for two processes only if they can see each other's files in /proc, and have the same
// network: two containers, or two network namespaces of a test, are two machines.
std::string container() {
  std::string out;
  for (const char* const space : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    std::array<char, 64> name{};
    if (::readlink(space, name.data(), name.size() - 1) <= 0) return "";
    out += name.data();
  }
  return out;
}

bool is_wanted() {
  const char* const given = std::getenv("FOVEA_SHARE_MEMORY");
  return !given || std::string_view(given) != "0";
}

std::byte* mapped(int file, size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// The kernel's word for "wake me when this is no longer so", across processes.
void sleep_while(std::atomic<uint32_t>& word, uint32_t value, std::chrono::milliseconds most) {
  const timespec limit{most.count() / 1000, (most.count() % 1000) * 1'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

// At the head of rank 0's region. Of the other regions' heads only `pid` is used.
struct SharedMemory::Meeting {
  int64_t pid;  // whose region it is
  std::atomic<uint32_t> here, round;
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
};

SharedMemory::SharedMemory(Ranks& ranks, size_t bytes)
    : ranks_(ranks),
      bytes_(kHead + bytes),
      own_file_(::memfd_create("fovea-ranks", MFD_CLOEXEC)),
      regions_(static_cast<size_t>(ranks.size())) {
  const auto own = static_cast<size_t>(ranks.rank());
  if (own_file_ < 0 || ::ftruncate(own_file_, static_cast<off_t>(bytes_)) != 0) return;
  regions_[own] = mapped(own_file_, bytes_);
  if (regions_[own]) new (regions_[own]) Meeting{::getpid(), 0, 0};
}

SharedMemory::~SharedMemory() {
  for (std::byte* const region : regions_)
    if (region) ::munmap(region, bytes_);
  for (const int process : processes_) ::close(process);
  if (own_file_ >= 0) ::close(own_file_);
}

std::string SharedMemory::invitation() const {
  const bool ready = regions_[static_cast<size_t>(ranks_.rank())];
  return Json{{"wanted", is_wanted()},
              {"machine", machine()},
              {"container", container()},
              {"file", ready ? own_file_ : -1},
              {"pid", ::getpid()}}
      .dump();
}

std::byte* SharedMemory::region_at(const std::string& its_name, int pid, int file) {
  const auto refuse = [&](const std::string& what) {
    throw Refused{fmt::format("{}: {}: {}", its_name, what, std::strerror(errno))};
  };
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) refuse("pidfd_open");
  processes_.push_back(process);
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, file);
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) refuse(path);
  struct stat found {};
  const bool fits = ::fstat(opened, &found) == 0 && found.st_size == static_cast<off_t>(bytes_);
  std::byte* const region = fits ? mapped(opened, bytes_) : nullptr;
  ::close(opened);
  if (fits && !region) refuse(path);
  if (!fits || reinterpret_cast<Meeting*>(region)->pid != pid) {
    if (region) ::munmap(region, bytes_);
    throw Refused{fmt::format("{}: {}: another file", its_name, path)};
  }
  return region;
}

std::optional<SharedMemory::Refused> SharedMemory::see(
    const std::vector<std::string>& invitations) {
  const auto own_rank = static_cast<size_t>(ranks_.rank());
  std::vector<Json> all;
  for (const std::string& one : invitations) all.push_back(Json::parse(one));
  const Json& own = all[own_rank];
  for (const Json& theirs : all)
    if (!theirs.at("wanted") || theirs.at("machine") == "" ||
        theirs.at("machine") != own.at("machine"))
      return Refused{};
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Json& theirs = all[rank];
    const std::string& name = ranks_.name_of(static_cast<int>(rank));
    if (theirs.at("file") == -1) return Refused{name + ": it has none that others could see"};
    if (theirs.at("container") == "" || theirs.at("container") != own.at("container"))
      return Refused{name + ": it is in another container, with processes or a network of its own"};
  }
  try {
    for (size_t rank = 0; rank < all.size(); ++rank)
      if (rank != own_rank)
        regions_[rank] = region_at(ranks_.name_of(static_cast<int>(rank)), all[rank].at("pid"),
                                   all[rank].at("file"));
  } catch (const Refused& refused) {
    return refused;
  }
  return std::nullopt;
}

SharedMemory::Tried SharedMemory::of(Ranks& ranks, size_t bytes) {
  if (ranks.size() == 1) return {};
  const std::string what = "the memory that ranks share";
  std::unique_ptr<SharedMemory> out(new SharedMemory(ranks, bytes));
  const auto refused = out->see(ranks.gather(out->invitation(), what));
  const Json own = {{"sees", !refused}, {"why", refused ? refused->why : ""}};
  const std::vector<std::string> answers = ranks.gather(own.dump(), what);
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const Json answer = Json::parse(answers[rank]);
    if (answer.at("sees")) continue;
    const std::string why = answer.at("why");
    if (why.empty()) return {};
    return {nullptr, fmt::format("{} does not see the memory of {}",
                                 ranks.name_of(static_cast<int>(rank)), why)};
  }
  return {std::move(out)};
}

std::byte* SharedMemory::region(int rank) const {
  return regions_[static_cast<size_t>(rank)] + kHead;
}

SharedMemory::Meeting& SharedMemory::meeting() const {
  return *reinterpret_cast<Meeting*>(regions_[0]);
}

bool SharedMemory::one_has_ended() const {
  return std::ranges::any_of(processes_, [](int process) {
    pollfd one{process, POLLIN, 0};
    return ::poll(&one, 1, 0) > 0;
  });
}

void SharedMemory::meet(const std::string& what) {
  Meeting& all = meeting();
  const uint32_t round = all.round.load(std::memory_order_acquire);
  const auto size = static_cast<uint32_t>(ranks_.size());
  if (all.here.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
    all.here.store(0, std::memory_order_relaxed);
    all.round.store(round + 1, std::memory_order_release);
    wake_all(all.round);
    return;
  }
  const auto over = [&] { return all.round.load(std::memory_order_acquire) != round; };
  ranks_.wait_until(
      [&](std::chrono::milliseconds most) {
        if (over()) return Ranks::Waited::kOver;
        sleep_while(all.round, round, most);
        if (over()) return Ranks::Waited::kOver;
        return one_has_ended() && !over() ? Ranks::Waited::kLost : Ranks::Waited::kOn;
      },
      what);
}

}  // namespace fovea::train
