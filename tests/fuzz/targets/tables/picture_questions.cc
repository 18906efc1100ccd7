// Questions about pictures: a line each.
#include "data/pictures/picture_questions.h"

#include "data/files/file.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_picture_questions(std::string_view bytes) {
  const std::string name = "a.jsonl";
  reads(name, [&] {
    data::each_line(bytes, name, [&](size_t number, std::string_view line) {
      const data::PictureQuestion one = data::parse_picture_question(line, name, number);
      if (line.find('{') == std::string_view::npos) return;
      const data::PictureQuestion again =
          data::parse_picture_question(data::json_line(one), name, number);
      require(again.picture == one.picture && again.question == one.question &&
                  again.answers == one.answers && again.cells == one.cells,
              "a question survives being written");
      if (!one.answers.empty())
        require(data::agreement(one.answers, data::commonest(one.answers)) > 0,
                "the commonest answer has votes");
    });
  });
}
const Registration picture_questions{"picture_questions", fuzz_picture_questions};

}  // namespace
}  // namespace fovea::fuzz
