// A connection that takes no more bytes, and no more time, than a request may.
#pragma once

#include <httplib.h>
#include <poll.h>

#include <array>
#include <chrono>

namespace fovea::cli {

// Once a limit is passed, reading or writing fails, and httplib gives the connection up.
class Connection : public httplib::Stream {
 public:
  // So many bytes and seconds for the request to arrive.
  Connection(socket_t socket, size_t bytes, std::chrono::seconds patience);

  void allow(size_t bytes) { left_ += bytes; }  // for the body, once the headers were read
  // Says that nothing more is sent, and takes for a moment what the other side still sends: a
  // connection that is closed before may lose the answer on its way.
  void finish();

  bool is_readable() const override { return filled_ > taken_ || ready(POLLIN); }
  bool is_writable() const override { return ready(POLLOUT); }
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}  // nobody asks
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool ready(short what) const;

  socket_t socket_;
  size_t left_;
  Clock::time_point end_;
  bool answering_ = false;
  std::array<char, 4096> buffer_;
  size_t taken_ = 0, filled_ = 0;
};

}  // namespace fovea::cli
