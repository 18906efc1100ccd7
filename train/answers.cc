#include "train/answers.h"

#include <fmt/format.h>

#include <istream>
#include <sstream>
#include <string>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "train/usage_error.h"

namespace fovea {

void answer_line(const Input& input, size_t number, std::string_view line, std::ostream& out,
                 const Answer& answer) {
  std::ostringstream whole;
  try {
    answer(number, line, whole);
  } catch (const UsageError&) {
    throw;
  } catch (const InvalidArgument& error) {
    const std::string place = fmt::format("{}:{}: ", input.name, number), what = error.what();
    const std::string named = what.starts_with(place) ? what : place + what;
    if (!input.refused) throw InvalidArgument(named);
    input.refused(named);
    whole.str("\n");
  }
  out << whole.str() << std::flush;
}

void answer_lines(const Input& input, std::ostream& out, const Answer& answer) {
  const Answer checked = [&](size_t number, std::string_view line, std::ostream& to) {
    data::visit_line(line, input.name, number,
                     [&](size_t, std::string_view text) { answer(number, text, to); });
  };
  data::LineReader lines(input.stream, input.name);
  for (std::string line; lines.next(line);) answer_line(input, lines.number(), line, out, checked);
}

}  // namespace fovea
