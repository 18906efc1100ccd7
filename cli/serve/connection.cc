#include "cli/serve/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace fovea::cli {
namespace {

constexpr std::chrono::seconds kAnswering{60};  // a reader that takes longer is not waited for
constexpr std::chrono::seconds kFinishing{1};
constexpr size_t kStillTaken = 4 << 20;

}  // namespace

Connection::Connection(socket_t socket, size_t bytes, std::chrono::seconds patience)
    : socket_(socket), left_(bytes), end_(Clock::now() + patience) {}

// Whether it is so before the time is over.
bool Connection::ready(short what) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wanted{socket_, what, 0};
    const int found = ::poll(&wanted, 1, static_cast<int>(left));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

ssize_t Connection::read(char* bytes, size_t size) {
  if (taken_ == filled_) {
    if (left_ == 0 || !ready(POLLIN)) return -1;
    const ssize_t count =
        ::recv(socket_, buffer_.data(), std::min(left_, buffer_.size()), MSG_DONTWAIT);
    if (count <= 0) return count;
    left_ -= static_cast<size_t>(count);
    taken_ = 0;
    filled_ = static_cast<size_t>(count);
  }
  const size_t count = std::min(size, filled_ - taken_);
  std::memcpy(bytes, buffer_.data() + taken_, count);
  taken_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* bytes, size_t size) {
  if (!std::exchange(answering_, true)) end_ = Clock::now() + kAnswering;
  if (!ready(POLLOUT)) return -1;
  return ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Connection::finish() {
  ::shutdown(socket_, SHUT_WR);
  end_ = Clock::now() + kFinishing;
  left_ = kStillTaken;
  taken_ = filled_;
  for (char byte; read(&byte, 1) > 0;) taken_ = filled_;
}

}  // namespace fovea::cli
