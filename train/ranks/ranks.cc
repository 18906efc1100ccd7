#include "train/ranks/ranks.h"

#define USE_C10D_GLOO  // libtorch has it; its headers ask
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstring>

#include "train/failure.h"
#include "train/interrupt.h"
#include "train/ranks/join.h"
#include "train/ranks/signs.h"

namespace fovea::train {
namespace {

using Milliseconds = std::chrono::milliseconds;
using c10d::Store;

constexpr Milliseconds kSlice{250};  // of a wait, between two looks at the others
constexpr int kSlicesAfterSignal = 12;

Milliseconds in_milliseconds(double seconds) {
  return Milliseconds(static_cast<int64_t>(seconds * 1000));
}

at::Tensor tensor_of_bytes(std::string_view bytes) {
  at::Tensor out = torch::empty({static_cast<int64_t>(bytes.size())}, torch::kUInt8);
  if (!bytes.empty()) std::memcpy(out.data_ptr(), bytes.data(), bytes.size());
  return out;
}

std::string bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.numel())};
}

// Rings when a transfer has ended, well or not.
struct Bell {
  std::mutex mutex;
  std::condition_variable changed;
  bool rung = false;
};

}  // namespace

class Ranks::Transfer {
 public:
  Transfer(c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> tensors)
      : work_(std::move(work)), tensors_(std::move(tensors)) {}
  c10d::Work& work() const { return *work_; }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::vector<at::Tensor> tensors_;
};

struct Ranks::Group {
  Place place;
  double timeout = 0;
  c10::intrusive_ptr<Store> store;
  std::vector<std::string> names;
  std::unique_ptr<Signs> signs;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  bool broken = false;

  std::string own_name() const { return names[static_cast<size_t>(place.rank)]; }

  // Where a transfer has failed, some rank has ended: its own words, or which one gives no sign any
  // more. `what` is what was waited for.
  [[noreturn]] void lose(const std::string& what, const std::string& who) {
    broken = true;
    throw RankLost(fmt::format("{}, while rank {} waited for {}", who, place.rank, what));
  }
  std::string who_ended() const;
  void look_around(const std::string& what, int64_t& reads, int& slices);
};

std::string Ranks::Group::who_ended() const {
  // A rank says why before it ends. Meanwhile one that did not misses a sign, and that is seen.
  const Milliseconds patience = 2 * Signs::late_after(place.size);
  const auto until = std::chrono::steady_clock::now() + patience;
  const auto keeper = [&] {
    return place.store_is_launchers ? std::string("the launcher") : names[0];
  };
  try {
    while (std::chrono::steady_clock::now() < until) {
      for (int r = 0; r < place.size; ++r)
        if (store->check({end_key(r)})) {
          const auto words = store->get(end_key(r));
          return fmt::format("{} ended: {}", names[static_cast<size_t>(r)],
                             std::string(words.begin(), words.end()));
        }
      if (signs->store_is_gone()) break;
      std::this_thread::sleep_for(Milliseconds(100));
    }
    const std::chrono::duration<double> late = Signs::late_after(place.size);
    for (int r = 0; r < place.size; ++r)
      if (r != place.rank && signs->quiet(r) > late.count())
        return fmt::format("{} ended without a word, or cannot be reached",
                           names[static_cast<size_t>(r)]);
  } catch (const std::exception&) {
    return fmt::format("{} ended without a word, or cannot be reached", keeper());
  }
  return signs->store_is_gone()
             ? fmt::format("{} ended without a word, or cannot be reached", keeper())
             : "a rank ended without a word, or cannot be reached";
}

// Called now and then during a wait.
void Ranks::Group::look_around(const std::string& what, int64_t& reads, int& slices) {
  if (signs->store_is_gone()) lose(what, who_ended());
  if (const int64_t now = signs->reads(); now != reads) {
    reads = now;
    slices = 0;
  }
  const double without = static_cast<double>(++slices) * static_cast<double>(kSlice.count()) / 1000;
  if (without > timeout)
    lose(what, fmt::format("{}, which keeps the store, has given no sign of life for {:g} s "
                           "(--timeout {:g})",
                           place.store_is_launchers ? "the launcher" : names[0], without, timeout));
  for (int r = 0; r < place.size; ++r)
    if (const double quiet = signs->quiet(r); r != place.rank && quiet > timeout)
      lose(what, fmt::format("{} has given no sign of life for {:.0f} s (--timeout {:g})",
                             names[static_cast<size_t>(r)], quiet, timeout));
}

Ranks::Ranks(const Place& place, double timeout) : group_(std::make_unique<Group>()) {
  group_->place = place;
  group_->timeout = timeout;
  const Milliseconds limit = in_milliseconds(timeout);
  const auto tcp = connect(place, limit);
  const std::string prefix = fmt::format("fovea/{}", place.restarts);
  group_->store = c10::make_intrusive<c10d::PrefixStore>(prefix, tcp);
  group_->names = meet(*group_->store, place, limit);
  const auto options = c10d::ProcessGroupGloo::Options::create();
  // Waits end by the signs of life: a rank may be busy for hours.
  options->timeout = std::chrono::hours(24 * 30);
  options->devices.push_back(device_of(place));
  try {
    group_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", group_->store), place.rank, place.size,
        options);
  } catch (const std::exception& error) {
    throw RankLost(fmt::format("the ranks could not connect to each other: {}", words_of(error)));
  }
  group_->signs = std::make_unique<Signs>(
      c10::make_intrusive<c10d::PrefixStore>(prefix, tcp->clone()), place.rank, place.size);
}

Ranks::~Ranks() {
  group_->signs.reset();
  // Gloo's threads would wait on for a rank that does not answer.
  if (group_->broken) group_->gloo.release();
}

int Ranks::rank() const { return group_->place.rank; }
int Ranks::size() const { return group_->place.size; }
const std::string& Ranks::name_of(int rank) const {
  return group_->names.at(static_cast<size_t>(rank));
}

Ranks::Started Ranks::exchange(at::Tensor out, std::vector<int64_t> received, at::Tensor in,
                               std::vector<int64_t> sent) {
  return std::make_shared<Transfer>(group_->gloo->alltoall_base(out, in, received, sent),
                                    std::vector<at::Tensor>{out, in});
}

Ranks::Started Ranks::gather(at::Tensor out, at::Tensor in) {
  return std::make_shared<Transfer>(group_->gloo->_allgather_base(out, in),
                                    std::vector<at::Tensor>{out, in});
}

Ranks::Started Ranks::sum(at::Tensor numbers) {
  std::vector<at::Tensor> all = {numbers};
  return std::make_shared<Transfer>(group_->gloo->allreduce(all), all);
}

void Ranks::wait_until(const std::function<Waited(Milliseconds)>& look, const std::string& what) {
  int64_t reads = 0;
  int slices = 0, after_signal = 0;
  for (;;) {
    const Waited now = look(kSlice);
    if (now == Waited::kOver) return;
    if (now == Waited::kLost) group_->lose(what, group_->who_ended());
    group_->look_around(what, reads, slices);
    if (interrupted() && ++after_signal > kSlicesAfterSignal)
      group_->lose(what, "this rank was asked to stop");
  }
}

void Ranks::wait(const Started& transfer, const std::string& what) {
  const auto future = transfer->work().getFuture();
  if (!future->completed()) {
    const auto bell = std::make_shared<Bell>();
    future->addCallback([bell](c10::ivalue::Future&) {
      const std::lock_guard lock(bell->mutex);
      bell->rung = true;
      bell->changed.notify_all();
    });
    wait_until(
        [&](Milliseconds most) {
          std::unique_lock lock(bell->mutex);
          const bool rung = bell->changed.wait_for(lock, most, [&] { return bell->rung; });
          return rung ? Waited::kOver : Waited::kOn;
        },
        what);
  }
  if (future->hasError()) group_->lose(what, group_->who_ended());
}

std::string Ranks::broadcast(std::string_view bytes, const std::string& what) {
  if (group_->broken) group_->lose(what, group_->who_ended());
  at::Tensor size = torch::tensor({static_cast<int64_t>(bytes.size())});
  std::vector<at::Tensor> sizes = {size};
  wait(std::make_shared<Transfer>(group_->gloo->broadcast(sizes), sizes), what);
  const auto count = static_cast<size_t>(size.item<int64_t>());
  at::Tensor content =
      first() ? tensor_of_bytes(bytes) : torch::empty({static_cast<int64_t>(count)}, torch::kUInt8);
  if (count > 0) {
    std::vector<at::Tensor> contents = {content};
    wait(std::make_shared<Transfer>(group_->gloo->broadcast(contents), contents), what);
  }
  return bytes_of(content);
}

std::vector<std::string> Ranks::gather(std::string_view own, const std::string& what) {
  const at::Tensor sizes = torch::zeros({size()}, torch::kInt64);
  wait(gather(sizes, torch::tensor({static_cast<int64_t>(own.size())})), what);
  const int64_t most = std::max<int64_t>(1, sizes.max().item<int64_t>());
  const at::Tensor all = torch::zeros({size() * most}, torch::kUInt8);
  const at::Tensor padded = torch::zeros({most}, torch::kUInt8);
  padded.narrow(0, 0, static_cast<int64_t>(own.size())).copy_(tensor_of_bytes(own));
  wait(gather(all, padded), what);
  std::vector<std::string> out;
  for (int64_t r = 0; r < size(); ++r)
    out.push_back(bytes_of(all.narrow(0, r * most, sizes[r].item<int64_t>())));
  return out;
}

void Ranks::leave(const std::string& why) noexcept {
  try {
    group_->store->setTimeout(Milliseconds(2000));
    group_->store->set(end_key(rank()), std::vector<uint8_t>(why.begin(), why.end()));
  } catch (...) {  // then they find out by themselves
  }
}

}  // namespace fovea::train
