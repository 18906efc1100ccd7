// Standard input and output whose errors are not ignored: a full disk, a closed pipe or a device
// that cannot be read is an InvalidArgument that names the stream and the reason.
#pragma once

#include <array>
#include <functional>
#include <ios>
#include <streambuf>
#include <string>
#include <string_view>

namespace fovea::cli {

// Passes text to a function that throws if it cannot write it.
class OutputBuffer : public std::streambuf {
 public:
  explicit OutputBuffer(std::function<void(std::string_view)> write);

 protected:
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  std::function<void(std::string_view)> write_;
  std::array<char, 1 << 16> text_;
};

// Reads a descriptor, as data arrives.
class InputBuffer : public std::streambuf {
 public:
  InputBuffer(int descriptor, std::string name);

 protected:
  int_type underflow() override;
  std::streamsize showmanyc() override;  // how much has arrived already

 private:
  int descriptor_;
  std::string name_;
  std::array<char, 1 << 16> text_;
};

// While it lives, std::cin and std::cout are such streams.
class StandardStreams {
 public:
  StandardStreams();
  ~StandardStreams();
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;

 private:
  InputBuffer input_;
  OutputBuffer output_;
  std::streambuf *before_input_, *before_output_;
  std::ostream* before_tied_;
};

}  // namespace fovea::cli
