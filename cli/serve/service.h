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

#include "cli/serve/request.h"

namespace fovea::cli {

struct ServiceOptions {
  std::vector<std::string> runs;  // folders
  std::vector<std::string> set;   // options for this use, name=value
  std::string device = "cpu";
  int threads = 0;
  bool only_this_machine = true;  // refuse requests that were meant for another host
};

class Service : public Handler {
 public:
  // Opens the RUNs and draws their pages.
  explicit Service(const ServiceOptions& options);
  ~Service() override;

  std::optional<Response> refusal(const Request& head) const override;
  Response answer(const Request& request) override;  // models answer one request at a time

  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Served;
  Response route(const Request& request);
  Response infer(Served& served, const Request& request, const std::string& wanted);

  ServiceOptions options_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Served>> served_;
};

}  // namespace fovea::cli
