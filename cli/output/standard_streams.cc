#include "cli/output/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <utility>

#include "io/write.h"
#include "fovea/error.h"

namespace fovea::cli {
namespace {

// A program may be started with some of the three closed. The next file that it opens would get that
// number, and standard output would be written into that file. So the null device is opened there,
// in the wrong direction: it takes the number, and the first use still fails.
void keep_numbers() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0)
      (void)::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// Text for a terminal, which takes control characters as commands: those but line ends and tabs are
// written as escapes. A label or a line of a file may hold them.
std::string for_terminal(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const auto next = static_cast<uint8_t>(at + 1 < text.size() ? text[at + 1] : 0);
    const bool high = byte == 0xC2 && next < 0xA0;  // U+0080 to U+009F
    if (high || byte == 0x7F || (byte < 0x20 && byte != '\n' && byte != '\t'))
      out += fmt::format("\\x{:02x}", byte);
    else
      out += text[at];
  }
  return out;
}

}  // namespace

OutputBuffer::OutputBuffer(std::function<void(std::string_view)> write) : write_(std::move(write)) {
  setp(text_.data(), text_.data() + text_.size());
}

int OutputBuffer::sync() {
  const std::string_view text(pbase(), static_cast<size_t>(pptr() - pbase()));
  setp(text_.data(), text_.data() + text_.size());  // text that cannot be written is not retried
  if (!text.empty()) write_(text);
  return 0;
}

OutputBuffer::int_type OutputBuffer::overflow(int_type character) {
  sync();
  if (!traits_type::eq_int_type(character, traits_type::eof()))
    sputc(traits_type::to_char_type(character));
  return traits_type::not_eof(character);
}

InputBuffer::InputBuffer(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)) {}

InputBuffer::int_type InputBuffer::underflow() {
  ssize_t count = ::read(descriptor_, text_.data(), text_.size());
  while (count < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) {
    // Whoever started the program may have made the pipe one that says at once that it is empty.
    pollfd arrival{descriptor_, POLLIN, 0};
    if (errno != EINTR) ::poll(&arrival, 1, -1);
    count = ::read(descriptor_, text_.data(), text_.size());
  }
  if (count < 0) throw InvalidArgument(name_ + ": cannot be read: " + std::strerror(errno));
  setg(text_.data(), text_.data(), text_.data() + count);
  return count == 0 ? traits_type::eof() : traits_type::to_int_type(text_[0]);
}

std::streamsize InputBuffer::showmanyc() {
  int waiting = 0;
  return ::ioctl(descriptor_, FIONREAD, &waiting) == 0 ? waiting : 0;
}

StandardStreams::StandardStreams()
    : input_(STDIN_FILENO, "standard input"), output_([](std::string_view text) {
        static const bool terminal = ::isatty(STDOUT_FILENO) != 0;
        const std::string shown = terminal ? for_terminal(text) : "";
        io::write_all(STDOUT_FILENO, terminal ? shown : text, "standard output");
      }) {
  keep_numbers();
  before_input_ = std::cin.rdbuf(&input_);
  before_output_ = std::cout.rdbuf(&output_);
  // By default a stream ignores what its buffer throws.
  std::cin.exceptions(std::ios::badbit);
  std::cout.exceptions(std::ios::badbit);
  // Otherwise the message that standard output failed would flush it first, and fail too.
  before_tied_ = std::cerr.tie(nullptr);
}

StandardStreams::~StandardStreams() {
  std::cerr.tie(before_tied_);
  std::cin.exceptions(std::ios::goodbit);
  std::cout.exceptions(std::ios::goodbit);
  std::cin.rdbuf(before_input_);
  std::cout.rdbuf(before_output_);
}

}  // namespace fovea::cli
