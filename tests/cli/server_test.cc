// `fovea serve` without a model: requests on a connected socket, and what comes back.
#include "cli/serve/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace fovea::cli {
namespace {

struct Remembers : Handler {
  std::optional<Response> refusal(const Request& head) const override {
    try {
      check_head(head, /*only_this_machine=*/true);
      return {};
    } catch (const Refusal& refusal) {
      return refused(refusal);
    }
  }
  Response answer(const Request& request) override {
    asked.push_back(request);
    return json_response({{"bytes", request.body.size()}});
  }
  std::vector<Request> asked;
};

// What is answered to these bytes, sent in one piece by somebody who then sends no more.
std::string answer_to(Handler& handler, const std::string& bytes) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  std::string out;
  std::thread client([&] {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(ends[0], bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) break;
      at += static_cast<size_t>(sent);
    }
    ::shutdown(ends[0], SHUT_WR);
    std::array<char, 512> part;
    for (ssize_t count; (count = ::read(ends[0], part.data(), part.size())) > 0;)
      out.append(part.data(), static_cast<size_t>(count));
  });
  Server server(handler);
  server.answer(ends[1]);
  client.join();
  ::close(ends[0]);
  return out;
}

std::string posted(size_t length, const std::string& body) {
  return "POST /curve/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(length) + "\r\n\r\n" + body;
}

TEST(Server, ABodyIsHandedOnAsItCame) {
  Remembers handler;
  const std::string body = "{\"input\": \"\xC3\xA9\"}";
  const std::string answer = answer_to(handler, posted(body.size(), body));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  ASSERT_EQ(handler.asked.size(), 1u);
  EXPECT_EQ(handler.asked[0].path, "/curve/predict");
  EXPECT_EQ(handler.asked[0].body, body);
  EXPECT_EQ(input_of(handler.asked[0]), "\xC3\xA9");
}

TEST(Server, ABodyInChunksIsJoined) {
  Remembers handler;
  answer_to(handler,
            "POST /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  ASSERT_EQ(handler.asked.size(), 1u);
  EXPECT_EQ(handler.asked[0].body, "abcde");
}

TEST(Server, MoreThanARequestMayHaveIsRefused) {
  const std::string most(kMostRequestBytes, 'x'), more = most + "y";
  Remembers handler;
  EXPECT_TRUE(answer_to(handler, posted(most.size(), most)).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(answer_to(handler, posted(more.size(), more)).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(answer_to(handler, posted(size_t{1} << 62, "x")).starts_with("HTTP/1.1 413 "));
  ASSERT_EQ(handler.asked.size(), 1u);
  EXPECT_EQ(handler.asked[0].body.size(), kMostRequestBytes);
}

TEST(Server, AHeadWithoutEndIsGivenUp) {
  Remembers handler;
  std::string head = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  while (head.size() < 200000) head += "A: " + std::string(1000, 'a') + "\r\n";
  EXPECT_FALSE(answer_to(handler, head + "\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(handler.asked.empty());
}

TEST(Server, WhatIsNoRequestReachesNobody) {
  Remembers handler;
  for (const std::string bytes :
       {"", "\r\n", "GET", "GET /\r\n\r\n", "\xFF\xFE", "POST / HTTP/9.9\r\n\r\n"})
    EXPECT_FALSE(answer_to(handler, bytes).starts_with("HTTP/1.1 200 ")) << bytes;
  EXPECT_TRUE(handler.asked.empty());
}

TEST(Server, TheHeadSaysWhoIsAnswered) {
  Remembers handler;
  const auto status = [&](const std::string& head) {
    return answer_to(handler, head + "\r\n\r\n").substr(9, 3);
  };
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: 127.8.9.1:65535"), "200");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: [::1]"), "200");
  for (const char* host : {"example.org", "127.0.0.1.example.org", "localhost.", "0.0.0.0", ""})
    EXPECT_EQ(status(std::string("GET / HTTP/1.1\r\nHost: ") + host), "403") << host;
  EXPECT_EQ(status("DELETE / HTTP/1.1\r\nHost: localhost"), "405");
  EXPECT_EQ(
      status("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 0"),
      "415");
}

TEST(Server, AnInputIsOneText) {
  for (const std::string body :
       {"", "[]", "{}", R"({"input": 1})", R"({"input": "a", "b": 1})", "{\"input\":"})
    EXPECT_ANY_THROW(input_of({.body = body})) << body;
}

}  // namespace
}  // namespace fovea::cli
