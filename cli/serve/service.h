// What a server of RUNs answers to a request: pages to type into, predictions and pictures as JSON. Knows
// nothing of sockets.
//
//   GET  /            the only RUN's page, or a page that leads to each RUN's
//   GET  /runs        {"runs": [{"name", "system", "title"}, …]}
//   GET  /NAME/       a page: what `explain` draws, and a field to type into
//   POST /NAME/predict   {"input": text} → {"answers": […], "notes": […]}
//   POST /NAME/explain   {"input": text} → the same, and "explanations": […]
//
// `input` is what `predict --input` would read. It may not name files. An error is {"error": words}.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::cli {

struct Request {
  std::string method{}, path{};
  std::string host{};  // of its header
  std::string content_type{}, content_encoding{};  // of its body
  std::string body{};
};

struct Response {
  int status = 200;
  std::string type{}, body{};
  std::string location{};  // where to go instead
};

struct ServiceOptions {
  std::vector<std::string> runs;  // folders
  std::vector<std::string> set;   // options for this use, name=value
  std::string device = "cpu";
  int threads = 0;
  bool only_this_machine = true;  // refuse requests that were meant for another host
};

class Service {
 public:
  // Opens the RUNs and draws their pages.
  explicit Service(const ServiceOptions& options);
  ~Service();

  // Neither throws. Several threads may call them; models answer one request at a time.
  // What is refused whatever the body says: it need not be read.
  std::optional<Response> refusal(const Request& head) const;
  Response answer(const Request& request);

  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Served;
  void check(const Request& head) const;
  Response route(const Request& request);
  Response infer(Served& served, const Request& request, const std::string& wanted);

  ServiceOptions options_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Served>> served_;
};

// Whether what listens there is reached from this machine alone: localhost, ::1, or 127 and three more numbers.
bool is_this_machine(const std::string& address);
// Whether a Host header names such an address, with any port or none.
bool names_this_machine(const std::string& host);

}  // namespace fovea::cli
