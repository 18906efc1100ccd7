#include "train/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <sstream>
#include <string>

#include "data/files/file.h"
#include "data/files/json_text.h"
#include "data/files/lines.h"
#include "train/usage_error.h"

namespace fovea {
namespace {

bool wants_json(const std::ostream& out) { return dynamic_cast<const JsonLines*>(&out) != nullptr; }

void write_object(std::ostream& out, size_t number, const Json& fields) {
  Json object = {{"line", number}};
  object.update(fields);
  // Bytes of a text that are not UTF-8 become U+FFFD, because JSON must be UTF-8.
  out << data::json_text(object) << '\n';
}

std::string without_line_end(const std::string& text) {
  return text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
}

Answer from_text(const TextAnswer& answer) {
  return [&answer](size_t number, std::string_view line) {
    std::ostringstream text;
    answer(number, line, text);
    return Answered{text.str()};
  };
}

}  // namespace

void write_answer(std::ostream& out, size_t number, const Answered& answered) {
  if (answered.text.empty()) return;
  if (!wants_json(out)) {
    out << answered.text << std::flush;
    return;
  }
  const Json fields =
      answered.fields ? answered.fields() : Json{{"answer", without_line_end(answered.text)}};
  if (fields.is_array())
    for (const Json& one : fields) write_object(out, number, one);
  else
    write_object(out, number, fields);
  out << std::flush;
}

Json class_fields(const std::vector<std::string>& names, std::span<const float> probabilities) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  Json::object_t all;  // filled as a list: an object would search for each of ten thousand names
  for (size_t i = 0; i < probabilities.size(); ++i) all.push_back({names.at(i), probabilities[i]});
  return {{"answer", names.at(static_cast<size_t>(best - probabilities.begin()))},
          {"probability", *best},
          {"probabilities", all}};
}

void answer_line(const Input& input, size_t number, std::string_view line, std::ostream& out,
                 const Answer& answer) {
  Answered answered;
  try {
    answered = answer(number, line);
  } catch (const UsageError&) {
    throw;
  } catch (const InvalidArgument& error) {
    const std::string place = fmt::format("{}:{}: ", input.name, number), what = error.what();
    const std::string named = what.starts_with(place) ? what : place + what;
    if (!input.refused) throw InvalidArgument(named);
    input.refused(named);
    answered = {"\n", [named] { return Json{{"error", named}}; }};
  }
  write_answer(out, number, answered);
}

void answer_line(const Input& input, size_t number, std::string_view line, std::ostream& out,
                 const TextAnswer& answer) {
  answer_line(input, number, line, out, from_text(answer));
}

void answer_lines(const Input& input, std::ostream& out, const Answer& answer) {
  const Answer checked = [&](size_t number, std::string_view line) {
    Answered answered;
    data::visit_line(line, input.name, number,
                     [&](size_t, std::string_view text) { answered = answer(number, text); });
    return answered;
  };
  data::LineReader lines(input.stream, input.name, input.before);
  for (std::string line; lines.next(line);) answer_line(input, lines.number(), line, out, checked);
}

void answer_lines(const Input& input, std::ostream& out, const TextAnswer& answer) {
  answer_lines(input, out, from_text(answer));
}

}  // namespace fovea
