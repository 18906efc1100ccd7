#include "train/ranks/join.h"

#define USE_C10D_GLOO  // libtorch has it; its headers ask
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "train/failure.h"
#include "train/ranks/ranks.h"
#include "train/ranks/signs.h"
#include "train/usage_error.h"

namespace fovea::train {
namespace {

using Milliseconds = std::chrono::milliseconds;

std::string own_name(int rank) {
  std::array<char, 256> host{};
  const bool known = ::gethostname(host.data(), host.size() - 1) == 0;
  return fmt::format("rank {} (process {} on {})", rank, ::getpid(),
                     known ? host.data() : "a machine without a name");
}

std::string name_key(int rank) { return fmt::format("name/{}", rank); }

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

bool mentions(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

std::string end_key(int rank) { return fmt::format("end/{}", rank); }

c10::intrusive_ptr<c10d::TCPStore> connect(const Place& place, Milliseconds limit) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = place.rank == 0 && !place.store_is_launchers;
  options.waitWorkers = false;  // meet() waits, and says for whom
  options.timeout = limit;
  const std::string where =
      fmt::format("MASTER_ADDR={}, MASTER_PORT={}", place.address, place.port);
  try {
    return c10::make_intrusive<c10d::TCPStore>(place.address, options);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    if (mentions(text, "EADDRINUSE") || mentions(text, "address already in use"))
      throw UsageError(fmt::format("{}: another program has this port; choose another", where));
    if (options.isServer)
      throw UsageError(fmt::format("{}: rank 0 cannot listen there: {}", where, words_of(error)));
    throw RankLost(fmt::format("{}: rank {} found nobody there within {:g} s (--timeout): {}",
                               where, place.rank, static_cast<double>(limit.count()) / 1000,
                               words_of(error)));
  }
}

std::vector<std::string> meet(c10d::Store& store, const Place& place, Milliseconds limit) {
  const std::string own = own_name(place.rank);
  Signs::first(store, place.rank);
  store.set(name_key(place.rank), std::vector<uint8_t>(own.begin(), own.end()));
  const auto until = std::chrono::steady_clock::now() + limit;
  std::vector<std::string> names;
  std::vector<int> missing;
  for (int rank = 0; rank < place.size; ++rank) {
    const auto left =
        std::chrono::duration_cast<Milliseconds>(until - std::chrono::steady_clock::now());
    try {
      store.wait({name_key(rank)}, std::max(left, Milliseconds(1)));
      const auto name = store.get(name_key(rank));
      names.emplace_back(name.begin(), name.end());
    } catch (const std::exception&) {
      missing.push_back(rank);
    }
  }
  if (!missing.empty())
    throw RankLost(
        fmt::format("rank {} of {} waited {:g} s (--timeout) for {} {}, which did not come",
                    place.rank, place.size, static_cast<double>(limit.count()) / 1000,
                    missing.size() > 1 ? "ranks" : "rank", fmt::join(missing, ", ")));
  return names;
}

std::shared_ptr<gloo::transport::Device> device_of(const Place& place) {
  if (const char* const name = std::getenv("GLOO_SOCKET_IFNAME"); name && *name)
    return c10d::ProcessGroupGloo::createDeviceForInterface(name);
  if (is_loopback(place.address))
    return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

}  // namespace fovea::train
