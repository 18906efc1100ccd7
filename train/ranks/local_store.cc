#include "train/ranks/local_store.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace fovea::train {

struct LocalStore::Server {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

LocalStore::LocalStore() : server_(std::make_unique<Server>()) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);  // and any free port
  socklen_t size = sizeof address;
  auto* const general = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || ::bind(listener, general, size) != 0 || ::listen(listener, 64) != 0 ||
      ::getsockname(listener, general, &size) != 0)
    throw std::runtime_error(
        fmt::format("127.0.0.1: no port could be opened: {}", std::strerror(errno)));
  c10d::TCPStoreOptions options;
  options.port = ntohs(address.sin_port);
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = listener;
  server_->store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

LocalStore::~LocalStore() = default;
int LocalStore::port() const { return server_->store->getPort(); }

}  // namespace fovea::train
