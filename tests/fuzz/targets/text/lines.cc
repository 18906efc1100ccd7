// Lines of text, from memory and from a stream, and the words messages quote them in.
#include <sstream>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_lines(std::string_view bytes) {
  std::vector<std::string> whole, streamed;
  const bool taken = reads("a.txt", [&] {
    data::each_line(bytes, "a.txt", [&](size_t, std::string_view line) {
      require(data::is_utf8(line), "a line is UTF-8");
      whole.emplace_back(line);
    });
  });
  const bool also = reads("a.txt", [&] {
    std::istringstream stream{std::string(bytes)};
    data::each_line(stream, "a.txt",
                    [&](size_t, std::string_view line) { streamed.emplace_back(line); });
  });
  require(taken == also && whole == streamed, "a stream has the lines of the file");
  for (const std::string& line : whole) {
    for (const std::string& word : data::words(line)) require(!word.empty(), "a word is not empty");
    const std::string_view middle = data::trimmed(line);
    require(line.find(middle) != std::string::npos, "trimming takes from the ends only");
  }
  require(data::visible(data::shown(bytes)) == data::shown(bytes), "what is shown is printable");
}
const Registration lines{"lines", fuzz_lines};

}  // namespace
}  // namespace fovea::fuzz
