// The text of --score, --normaliser and --structure.
#include "tests/fuzz/target.h"
#include "torch/choice_text.h"

namespace fovea::fuzz {
namespace {

using Place = std::string;  // an array stands for the text that names it

const choice_text::Reading<Place> kReading{
    [](std::string_view field, std::string_view text) {
      if (text.empty()) throw InvalidArgument(std::string(field) + " has no file");
      return Place(text);
    },
    [](int64_t handle) {
      if (handle != 7) throw InvalidArgument("custom.handle: expected a function given before");
      return choice::Custom<Place>{};
    }};
const choice_text::Writing<Place> kWriting{
    [](const Place& place) { return place.empty() ? std::nullopt : std::optional(place); },
    [](const choice::Custom<Place>&) { return 7; }};

template <class Parse, class Write>
void check(std::string_view text, const Parse& parse, const Write& write) {
  std::string written;
  if (accepts([&] { written = write(parse(text, kReading), kWriting); }))
    require(write(parse(written, kReading), kWriting) == written,
            "a choice survives being written");
}

void fuzz_choices(std::string_view input) {
  Bytes bytes(input);
  check(bytes.part(), choice_text::parse_score<Place>, choice_text::write_score<Place>);
  check(bytes.part(), choice_text::parse_normaliser<Place>, choice_text::write_normaliser<Place>);
  check(bytes.part(), choice_text::parse_structure<Place>, choice_text::write_structure<Place>);
}
const Registration choices{"choices", fuzz_choices};

}  // namespace
}  // namespace fovea::fuzz
