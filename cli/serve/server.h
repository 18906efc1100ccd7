// A Service on a socket.
#pragma once

#include <functional>
#include <string>

#include "cli/serve/service.h"

namespace fovea::cli {

inline constexpr size_t kMostRequestBytes = 1 << 20;

// Listens at host:port (0: any port that is free), calls `ready` with the port, and answers until the
// process ends. Throws where it cannot listen there.
void listen(Service& service, const std::string& host, int port,
            const std::function<void(int port)>& ready);

}  // namespace fovea::cli
