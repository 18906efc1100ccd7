#include "cli/serve/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>

#include "cli/serve/connection.h"

namespace fovea::cli {
namespace {

constexpr int kThreads = 64;  // a slow connection keeps one; models answer one request at a time
constexpr std::chrono::seconds kPatience{10};  // for a request to arrive
constexpr size_t kMostHeadBytes = 1 << 16;     // of the request's line and its headers

Request head_of(const httplib::Request& request) {
  return {.method = request.method,
          .path = request.path,
          .host = request.get_header_value("Host"),
          .content_type = request.get_header_value("Content-Type"),
          .content_encoding = request.get_header_value("Content-Encoding")};
}

void put(Response made, httplib::Response& response) {
  response.status = made.status;
  if (!made.location.empty()) response.set_header("Location", made.location);
  response.set_content(std::move(made.body), made.type.c_str());
}

// httplib's limit of a body is not one where its length is not said before.
void answer_body(Handler& handler, const httplib::Request& head, httplib::Response& response,
                 const httplib::ContentReader& read) {
  Request request = head_of(head);
  bool too_long = false;
  const bool whole = read([&](const char* bytes, size_t size) {
    too_long = size > kMostRequestBytes - request.body.size();
    if (!too_long) request.body.append(bytes, size);
    return !too_long;
  });
  if (whole)
    put(handler.answer(request), response);
  else
    response.status = too_long || response.status == 413 ? 413 : 400;
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

// Reads each request from a Connection, and closes that when it is answered.
class Server::Http : public httplib::Server {
 public:
  bool answer(socket_t socket) {
    Connection connection(socket, kMostHeadBytes, kPatience);
    bool closed = false;
    const bool answered = process_request(connection, /*close_connection=*/true, closed,
                                          [&](httplib::Request& request) {
                                            connection.allow(kMostRequestBytes);
                                            request.ranges.clear();  // a page is sent whole
                                          });
    connection.finish();
    ::close(socket);
    return answered;
  }

 private:
  bool process_and_close_socket(socket_t socket) override { return answer(socket); }
};

Server::Server(Handler& handler) : http_(std::make_unique<Http>()) {
  http_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http_->set_payload_max_length(kMostRequestBytes);
  // Nobody frames the page or takes it for another type, and nothing of it is kept.
  http_->set_default_headers({{"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cache-Control", "no-store"}});
  http_->set_pre_routing_handler(
      [&handler](const httplib::Request& request, httplib::Response& response) {
        std::optional<Response> refusal = handler.refusal(head_of(request));
        if (!refusal) return httplib::Server::HandlerResponse::Unhandled;
        put(*std::move(refusal), response);
        return httplib::Server::HandlerResponse::Handled;
      });
  http_->Get(".*", [&handler](const httplib::Request& request, httplib::Response& response) {
    put(handler.answer(head_of(request)), response);
  });
  http_->Post(".*", [&handler](const httplib::Request& request, httplib::Response& response,
                               const httplib::ContentReader& read) {
    answer_body(handler, request, response, read);
  });
  http_->set_error_handler(httplib::Server::Handler(explain_refusal));
  // httplib would let two servers share a port.
  http_->set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

Server::~Server() = default;

void Server::answer(int socket) { http_->answer(socket); }

void Server::listen(const std::string& host, int port, const std::function<void(int port)>& ready) {
  const int bound = port == 0                         ? http_->bind_to_any_port(host)
                    : http_->bind_to_port(host, port) ? port
                                                      : -1;
  if (bound <= 0)
    throw std::runtime_error(
        fmt::format("--host {} --port {}: cannot listen there; the port may be taken, or the "
                    "address may not be "
                    "this machine's",
                    host, port));
  ready(bound);
  if (!http_->listen_after_bind()) throw std::runtime_error("the server stopped listening");
}

}  // namespace fovea::cli
