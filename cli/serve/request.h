// A request and its answer, who answers, and what every request is asked: no sockets, and no models.
#pragma once

#include <optional>
#include <string>

#include "data/files/json.h"

namespace fovea::cli {

struct Request {
  std::string method{}, path{};
  std::string host{};                              // of its header
  std::string content_type{}, content_encoding{};  // of its body
  std::string body{};
};

struct Response {
  int status = 200;
  std::string type{}, body{};
  std::string location{};  // where to go instead
};

// Neither throws. Several threads may call them.
class Handler {
 public:
  virtual ~Handler() = default;
  // What is refused whatever the body says: it need not be read.
  virtual std::optional<Response> refusal(const Request& head) const = 0;
  virtual Response answer(const Request& request) = 0;
};

inline constexpr const char* kJsonType = "application/json";
Response json_response(const data::Json& value);

struct Refusal {
  int status;
  std::string words;
};
Response refused(const Refusal& refusal);  // {"error": words}

// Throws a Refusal for a method, a host or a kind of body that is not answered.
void check_head(const Request& head, bool only_this_machine);
// The text of {"input": text}. Throws a Refusal, or an InvalidArgument, where the body is something else.
std::string input_of(const Request& request);

// Whether what listens there is reached from this machine alone: localhost, ::1, or 127 and three more numbers.
bool is_this_machine(const std::string& address);
// Whether a Host header names such an address, with any port or none.
bool names_this_machine(const std::string& host);

}  // namespace fovea::cli
