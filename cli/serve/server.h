// A Handler on a socket.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/serve/request.h"

namespace fovea::cli {

inline constexpr size_t kMostRequestBytes = 1 << 20;

class Server {
 public:
  explicit Server(Handler& handler);
  ~Server();

  // Listens at host:port (0: any port that is free), calls `ready` with the port, and answers until the
  // process ends. Throws where it cannot listen there.
  void listen(const std::string& host, int port, const std::function<void(int port)>& ready);
  // Reads one request from a connected socket, answers it and closes the socket.
  void answer(int socket);

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

}  // namespace fovea::cli
