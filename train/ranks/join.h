// How ranks find each other: the store, their names, and the network device they use.
#pragma once

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "train/ranks/place.h"

namespace gloo::transport {
class Device;
}

namespace fovea::train {

// UsageError if the port is taken, RankLost if nobody answers.
c10::intrusive_ptr<c10d::TCPStore> connect(const Place& place, std::chrono::milliseconds limit);
// Gives this rank's name and first sign of life, and waits for those of the others. RankLost names the
// ranks that did not come.
std::vector<std::string> meet(c10d::Store& store, const Place& place,
                              std::chrono::milliseconds limit);
// The loopback device where the store is on it, so that nothing listens to other machines; otherwise
// the one that GLOO_SOCKET_IFNAME names, or that of the machine's name.
std::shared_ptr<gloo::transport::Device> device_of(const Place& place);

// Where a rank says why it ends.
std::string end_key(int rank);

}  // namespace fovea::train
