#include "cli/serve/server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <stdexcept>

namespace fovea::cli {
namespace {

constexpr int kThreads = 16;      // a slow reader keeps one; models answer one at a time
constexpr time_t kPatience = 10;  // seconds for a request to arrive and for its answer to leave

void answer(Service& service, const httplib::Request& request, httplib::Response& response) {
  Response made = service.answer({.method = request.method,
                                  .path = request.path,
                                  .host = request.get_header_value("Host"),
                                  .content_type = request.get_header_value("Content-Type"),
                                  .body = request.body});
  response.status = made.status;
  if (!made.location.empty()) response.set_header("Location", made.location);
  response.set_content(std::move(made.body), made.type.c_str());
}

// What httplib itself refuses: too long a body, a request that is none.
void explain_refusal(const httplib::Request&, httplib::Response& response) {
  if (!response.body.empty()) return;
  const std::string words = response.status == 413
                                ? fmt::format("a request of more than {} bytes", kMostRequestBytes)
                                : "not a request that this server answers";
  response.set_content("{\"error\":\"" + words + "\"}\n", "application/json");
}

}  // namespace

void listen(Service& service, const std::string& host, int port,
            const std::function<void(int port)>& ready) {
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMostRequestBytes);
  server.set_read_timeout(kPatience, 0);
  server.set_write_timeout(kPatience, 0);
  // Nobody frames the page or takes it for another type, and nothing of it is kept.
  server.set_default_headers({{"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cache-Control", "no-store"}});
  const auto handler = [&](const httplib::Request& request, httplib::Response& response) {
    answer(service, request, response);
  };
  server.Get(".*", handler).Post(".*", handler).Put(".*", handler).Patch(".*", handler);
  server.Delete(".*", handler).Options(".*", handler);
  server.set_error_handler(httplib::Server::Handler(explain_refusal));
  // httplib would let two servers share a port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const int bound = port == 0                         ? server.bind_to_any_port(host)
                    : server.bind_to_port(host, port) ? port
                                                      : -1;
  if (bound <= 0)
    throw std::runtime_error(
        fmt::format("--host {} --port {}: cannot listen there; the port may be taken, or the "
                    "address may not be "
                    "this machine's",
                    host, port));
  ready(bound);
  if (!server.listen_after_bind()) throw std::runtime_error("the server stopped listening");
}

}  // namespace fovea::cli
