#include "systems/next_word/continuation.h"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <string_view>

#include "data/formats/text.h"
#include "systems/next_word/writer.h"
#include "train/answers.h"

namespace fovea::systems::next_word {

void continue_lines(const nn::LanguageModel& model, const Tokens& tokens,
                    const OptionValues& options, const Input& input, std::ostream& out) {
  Writer writer(model, tokens);
  const int64_t context = model->options().context;
  const WriteRequest request{.length = options.integer("length"),
                             .sampling = {.temperature = options.number("temperature"),
                                          .top_k = options.integer("top_k"),
                                          .top_p = options.number("top_p")},
                             .seed = static_cast<uint64_t>(options.integer("sample_seed"))};
  const auto note = [&](size_t line, const std::string& what) {
    if (input.noted) input.noted(fmt::format("{}:{}: {}", input.name, line, what));
  };
  answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
    if (const auto unknown = tokens.unknown(line); !unknown.empty())
      note(number, "not among the tokens: " + data::listed(unknown));
    const WrittenText written = writer.write(line, request);
    if (written.forgotten > 0)
      note(number, fmt::format("longer than the context of {} tokens; the first {} are not seen",
                               context, written.forgotten));
    if (written.slid > 0)
      note(number,
           fmt::format("the context of {} tokens was full {}; its later half was kept", context,
                       written.slid == 1 ? "once" : fmt::format("{} times", written.slid)));
    if (options.flag("speed") && written.tokens > 1)
      note(number, fmt::format("{:.0f} tokens a second",
                               static_cast<double>(written.tokens - 1) / written.seconds));
    const auto fields = [text = written.text, tokens = written.tokens] {
      return Json{{"answer", text}, {"tokens", tokens}};
    };
    if (options.flag("raw")) return {written.text + "\n", fields};
    std::string one_line;
    for (const char c : written.text) {
      if (c == '\n')
        one_line += "\\n";
      else
        one_line += c;
    }
    return {one_line + "\n", fields};
  });
}

}  // namespace fovea::systems::next_word
