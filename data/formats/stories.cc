#include "data/formats/stories.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "data/files/file.h"
#include "data/files/json.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

// Takes the number at the start of a line off the line; nothing if the line starts with a word.
std::optional<int64_t> take_number(std::string_view& line) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  const auto length = static_cast<size_t>(end - line.data());
  if (error != std::errc()) return {};
  if (length < line.size() && *end != ' ' && *end != '\t') return {};
  line.remove_prefix(length);
  return number;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('\t', at), line.size());
    out.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// A text of a JSON line; it must be possible as a line of a bAbI file.
std::string text_in(const Json& value, std::string_view what, const std::string& name,
                    size_t line) {
  const auto refuse = [&](std::string_view expected) {
    throw FileError(name, line, fmt::format("expected {} {}", what, expected));
  };
  if (!value.is_string()) refuse("to be a text");
  const std::string text(trimmed(value.get<std::string>()));
  if (text.empty()) refuse("to have words");
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }))
    refuse("without tabs and line breaks");
  return text;
}

}  // namespace

Story& StoryReader::begin() {
  form_ = Form::kNone;
  last_ = 0;
  line_of_.clear();
  return into_.emplace_back();
}

bool StoryReader::add(size_t number, std::string_view line) {
  line = trimmed(line);
  if (line.empty()) {
    form_ = Form::kNone;
    return false;
  }
  if (line.front() != '{') return add_text(number, line);
  add_json(number, line);
  return true;
}

void StoryReader::add_json(size_t number, std::string_view line) {
  const Json item = json_in(line);
  const auto refuse = [&](const std::string& what) { throw FileError(name_, number, what); };
  if (!item.is_object() || !item.contains("story") || !item["story"].is_array() ||
      !item.contains("question"))
    refuse(R"(expected an object with "story", a list of lines, and "question")");
  Story story;
  for (const Json& one : item["story"])
    story.lines.push_back(text_in(one, "each line of \"story\"", name_, number));
  StoryQuestion question;
  question.seen = static_cast<int64_t>(story.lines.size());
  question.text = text_in(item["question"], "\"question\"", name_, number);
  if (item.contains("answer"))
    question.answer = text_in(item["answer"], "\"answer\"", name_, number);
  if (item.contains("supporting_lines")) {
    const Json& support = item["supporting_lines"];
    if (!support.is_array()) refuse("expected \"supporting_lines\" to be a list of line numbers");
    for (const Json& one : support) {
      if (!one.is_number_unsigned() || one.get<uint64_t>() < 1 ||
          one.get<uint64_t>() > story.lines.size())
        refuse(fmt::format("supporting_lines: {}, expected 1 to {}", shown(one.dump()),
                           story.lines.size()));
      question.support.push_back(one.get<int64_t>() - 1);
    }
  }
  story.questions.push_back(std::move(question));
  begin() = std::move(story);
}

bool StoryReader::add_text(size_t number, std::string_view line) {
  const std::optional<int64_t> given = take_number(line);
  const Form form = given ? Form::kNumbered : Form::kPlain;
  if (given && *given != 1 && (form_ != Form::kNumbered || *given != last_ + 1))
    throw FileError(name_, number,
                    fmt::format("line number {}, expected {}", *given,
                                form_ == Form::kNumbered ? fmt::format("{} or 1", last_ + 1)
                                                         : "1, which begins a story"));
  if (!given && form_ == Form::kNumbered)
    throw FileError(name_, number, fmt::format("expected a line number, {} or 1", last_ + 1));
  if (form_ == Form::kNone || (given && *given == 1)) begin();
  form_ = form;
  ++last_;
  line = trimmed(line);
  if (line.empty()) throw FileError(name_, number, "no words after the line number");
  if (line.find('\t') != std::string_view::npos || line.ends_with('?')) {
    add_question(number, line);
    line_of_.push_back(-1);
    return true;
  }
  line_of_.push_back(static_cast<int64_t>(into_.back().lines.size()));
  into_.back().lines.emplace_back(line);
  return false;
}

void StoryReader::add_question(size_t number, std::string_view line) {
  const std::vector<std::string_view> fields = fields_of(line);
  const auto refuse = [&](const std::string& what) { throw FileError(name_, number, what); };
  if (fields.size() > 3)
    refuse(fmt::format("{} fields, expected question, answer and supporting lines", fields.size()));
  if (fields[0].empty()) refuse("no words before the tab, expected a question");
  if (fields.size() > 1 && fields[1].empty()) refuse("no words after the tab, expected an answer");
  StoryQuestion question{.seen = static_cast<int64_t>(into_.back().lines.size()),
                         .text = std::string(fields[0]),
                         .answer = fields.size() > 1 ? std::string(fields[1]) : ""};
  if (fields.size() > 2)
    for (const std::string& word : words(fields[2])) {
      const int64_t given = parse_integer(word, "supporting line", name_, number);
      if (given < 1 || given >= last_ || line_of_[static_cast<size_t>(given - 1)] < 0)
        refuse(fmt::format(
            "supporting line {}, expected the number of a statement before the question", given));
      question.support.push_back(line_of_[static_cast<size_t>(given - 1)]);
    }
  into_.back().questions.push_back(std::move(question));
}

std::vector<Story> read_stories(const std::string& path) {
  std::vector<Story> stories;
  StoryReader reader(path, stories);
  size_t questions = 0;
  const std::string text = read_file(path);
  each_line(std::string_view(text), path, [&](size_t number, std::string_view line) {
    if (!reader.add(number, line)) return;
    if (stories.back().questions.back().answer.empty())
      throw FileError(path, number, "a question without an answer, expected one after a tab");
    ++questions;
  });
  if (questions == 0) throw FileError(path, 0, "no question in it, expected at least one");
  return stories;
}

std::string babi_text(const std::vector<Story>& stories) {
  std::string out;
  for (const Story& story : stories) {
    int64_t number = 0;
    std::vector<int64_t> number_of;
    size_t asked = 0;
    for (size_t line = 0; line <= story.lines.size(); ++line) {
      for (; asked < story.questions.size() &&
             story.questions[asked].seen == static_cast<int64_t>(line);
           ++asked) {
        const StoryQuestion& question = story.questions[asked];
        out += fmt::format("{} {}\t{}\t", ++number, question.text, question.answer);
        for (size_t i = 0; i < question.support.size(); ++i)
          out += fmt::format("{}{}", i ? " " : "",
                             number_of[static_cast<size_t>(question.support[i])]);
        out += "\n";
      }
      if (line == story.lines.size()) break;
      number_of.push_back(++number);
      out += fmt::format("{} {}\n", number, story.lines[line]);
    }
  }
  return out;
}

std::vector<std::string> story_words(std::string_view text) {
  std::vector<std::string> out;
  for (std::string& word : words(lower_ascii(text))) {
    const size_t from = word.find_first_not_of("\"'("), to = word.find_last_not_of(".,;:?!\"')");
    if (from == std::string::npos || to == std::string::npos || to < from) continue;
    out.push_back(word.substr(from, to - from + 1));
  }
  return out;
}

}  // namespace fovea::data
