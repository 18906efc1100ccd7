// A request of HTTP as it arrives at `fovea serve`, up to the text that a model would be asked.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "cli/serve/server.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

// Answers with the text, as a model that has learnt nothing.
class Echo : public cli::Handler {
 public:
  std::optional<cli::Response> refusal(const cli::Request& head) const override {
    return refusing([&] {
      cli::check_head(head, /*only_this_machine=*/true);
      return std::optional<cli::Response>();
    });
  }
  cli::Response answer(const cli::Request& request) override {
    return *refusing([&]() -> std::optional<cli::Response> {
      require(request.body.size() <= cli::kMostRequestBytes, "a body is no longer than it may be");
      if (request.method != "POST") return cli::json_response({{"path", request.path}});
      return cli::json_response({{"answers", {cli::input_of(request)}}});
    });
  }

 private:
  template <class Body>
  static std::optional<cli::Response> refusing(const Body& body) {
    try {
      return body();
    } catch (const cli::Refusal& refusal) {
      return cli::refused(refusal);
    } catch (const InvalidArgument& error) {
      check_reason(error.what());
      return cli::refused({400, error.what()});
    }
  }
};

std::string all_of(int socket) {
  std::string out;
  std::array<char, 4096> part;
  for (ssize_t count; (count = ::read(socket, part.data(), part.size())) > 0;)
    out.append(part.data(), static_cast<size_t>(count));
  return out;
}

void fuzz_request(std::string_view bytes) {
  static Echo echo;
  static cli::Server server(echo);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  // What is sent fits into the socket: nobody reads on the other side yet.
  const std::string_view sent = bytes.substr(0, 1 << 15);
  require(
      ::send(ends[0], sent.data(), sent.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(sent.size()),
      "what is short is sent at once");
  ::shutdown(ends[0], SHUT_WR);
  server.answer(ends[1]);
  const std::string answer = all_of(ends[0]);
  ::close(ends[0]);
  if (answer.starts_with("HTTP/1.1 200 "))
    ++answers().taken;
  else
    ++answers().refused;
  if (answer.empty() || answer.starts_with("HTTP/1.1 100 ")) return;  // no request: nothing to say
  const size_t head = answer.find("\r\n\r\n");
  require(answer.starts_with("HTTP/1.") && head != std::string::npos, "an answer has a head");
  require(answer.find("\r\nX-Frame-Options: DENY\r\n") < head,
          "whatever is answered is not framed");
  for (const char byte : std::string_view(answer).substr(0, head))
    require(byte == '\r' || byte == '\n' || (byte >= ' ' && byte <= '~'),
            "nothing of a request gets into the head of its answer");
}
const Registration request{"request", fuzz_request};

}  // namespace
}  // namespace fovea::fuzz
