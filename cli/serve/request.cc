#include "cli/serve/request.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <regex>

namespace fovea::cli {

Response json_response(const data::Json& value) {
  return {.type = kJsonType,
          .body = value.dump(-1, ' ', false, data::Json::error_handler_t::replace) + "\n"};
}

Response refused(const Refusal& refusal) {
  Response response = json_response({{"error", refusal.words}});
  response.status = refusal.status;
  return response;
}

void check_head(const Request& head, bool only_this_machine) {
  const bool posts = head.method == "POST";
  if (head.method != "GET" && head.method != "HEAD" && !posts)
    throw Refusal{405, "method: expected GET or POST"};
  if (only_this_machine && !names_this_machine(head.host))
    throw Refusal{
        403, "Host: this server answers to localhost alone; start it with --host to change that"};
  if (posts && !head.content_encoding.empty())  // a packed megabyte may hold a thousand
    throw Refusal{415, "Content-Encoding: expected none"};
  if (posts && !head.content_type.starts_with(kJsonType))
    throw Refusal{415, "Content-Type: expected application/json"};
}

std::string input_of(const Request& request) {
  const data::Json body = data::json_in(request.body);
  if (!body.is_object() || body.size() != 1 || !body.contains("input") ||
      !body.at("input").is_string())
    throw Refusal{400, R"(expected {"input": text})"};
  return body.at("input").get<std::string>();
}

bool is_this_machine(const std::string& address) {
  in_addr number{};
  return address == "localhost" || address == "::1" ||
         (::inet_pton(AF_INET, address.c_str(), &number) == 1 &&
          ntohl(number.s_addr) >> 24 == IN_LOOPBACKNET);
}

bool names_this_machine(const std::string& host) {
  static const std::regex parts(R"((?:\[(::1)\]|([a-z0-9.]{1,15}))(?::[0-9]{1,5})?)");
  std::smatch found;
  return host.size() < 30 && std::regex_match(host, found, parts) &&
         is_this_machine(found[1].matched ? found[1].str() : found[2].str());
}

}  // namespace fovea::cli
