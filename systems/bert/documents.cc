#include "systems/bert/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/random.h"

namespace fovea::systems::bert {
namespace {

struct Person {
  const char *name, *pronoun;
};
constexpr std::array<Person, 12> kPeople = {{{"anna", "she"},
                                             {"maria", "she"},
                                             {"clara", "she"},
                                             {"julia", "she"},
                                             {"emma", "she"},
                                             {"lena", "she"},
                                             {"peter", "he"},
                                             {"oscar", "he"},
                                             {"simon", "he"},
                                             {"jonas", "he"},
                                             {"david", "he"},
                                             {"anton", "he"}}};
constexpr std::array<const char*, 6> kTimes = {"every morning", "in the evening", "on monday",
                                               "before noon",   "each day",       "after lunch"};
constexpr std::array<const char*, 6> kKinds = {"fine", "large", "cheap", "heavy", "new", "famous"};
constexpr std::array<std::string_view, 3> kBreaks = {"<br />", "<br/>", "<br>"};

template <class List>
const auto& drawn(const List& list, data::Random& random) {
  return list[random.below(list.size())];
}

bool closes(char c) { return c == '"' || c == '\'' || c == ')' || c == ']'; }

void put_sentence(std::string_view text, Sentences& out) {
  const std::string_view sentence = data::trimmed(text);
  if (!sentence.empty()) out.emplace_back(sentence);
}

void split_line(std::string_view text, Sentences& out) {
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.' && text[i] != '!' && text[i] != '?') continue;
    size_t end = i + 1;
    while (end < text.size() && closes(text[end])) ++end;
    if (end < text.size() && text[end] != ' ') continue;
    put_sentence(text.substr(start, end - start), out);
    start = end;
  }
  put_sentence(text.substr(std::min(start, text.size())), out);
}

std::string_view column_of(std::string_view line, const DocumentRequest& request,
                           const std::string& path, size_t number) {
  if (request.column == 0) return line.substr(line.rfind('\t') + 1);
  for (int64_t column = 1;; ++column) {
    const size_t tab = line.find('\t');
    if (column == request.column) return line.substr(0, tab);
    if (tab == line.npos)
      throw data::FileError(path, number,
                            fmt::format("column {}: there are {}", request.column, column));
    line.remove_prefix(tab + 1);
  }
}

std::string key_text(const Sentences& sentences) {
  return fmt::format("{}", fmt::join(sentences, "\n"));
}

void split_documents(Documents& documents, const Source& source) {
  data::SplitRequest request = split_request(source);
  for (const Sentences& sentences : documents.texts)
    request.keys.push_back(data::item_key(key_text(sentences)));
  documents.splits = data::split(static_cast<int64_t>(documents.texts.size()), request);
}

}  // namespace

Sentences sentences_of(std::string_view text) {
  Sentences out;
  while (!text.empty()) {
    size_t at = std::string_view::npos, length = 0;
    for (const std::string_view one : kBreaks)
      if (const size_t found = text.find(one); found < at) at = found, length = one.size();
    split_line(text.substr(0, at), out);
    text.remove_prefix(at == text.npos ? text.size() : at + length);
  }
  return out;
}

Documents read_documents(const Source& source, const DocumentRequest& request) {
  const std::string bytes = data::read_file(source.path);
  std::vector<std::string> lines;
  bool parted = false;  // by blank lines
  data::each_line(bytes, source.path, [&](size_t number, std::string_view line) {
    lines.emplace_back(data::trimmed(line).empty() ? ""
                                                   : column_of(line, request, source.path, number));
    parted |= lines.size() > 1 && lines.back().empty() && !lines[lines.size() - 2].empty();
  });
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  parted &= std::find(lines.begin(), lines.end(), "") != lines.end();

  Documents out;
  const auto put = [&](Sentences sentences) {
    if (!sentences.empty()) out.texts.push_back(std::move(sentences));
  };
  Sentences open;
  for (const std::string& line : lines) {
    if (!parted) {
      put(sentences_of(line));
    } else if (line.empty()) {
      put(std::exchange(open, {}));
    } else {
      open.push_back(line);
    }
  }
  put(std::move(open));
  if (out.texts.size() < 2)
    throw data::FileError(
        source.path, 0,
        fmt::format("{} document{}, expected at least 2: a false next part comes from another",
                    out.texts.size(), out.texts.size() == 1 ? "" : "s"));
  if (const auto most = static_cast<size_t>(request.most); most > 1 && out.texts.size() > most) {
    std::vector<Sentences> some;
    for (size_t i = 0; i < most; ++i)
      some.push_back(std::move(out.texts[i * out.texts.size() / most]));
    out.texts = std::move(some);
  }
  split_documents(out, source);
  return out;
}

const std::vector<Trade>& trades() {
  static const std::vector<Trade> all = {
      {"baker", "bakery", "oven", "bread"},        {"tailor", "workshop", "needle", "coats"},
      {"farmer", "field", "tractor", "potatoes"},  {"fisher", "harbour", "net", "herring"},
      {"painter", "studio", "brush", "portraits"}, {"smith", "forge", "hammer", "horseshoes"},
      {"writer", "library", "pen", "novels"},      {"brewer", "brewery", "barrel", "beer"},
      {"potter", "pottery", "wheel", "bowls"},     {"gardener", "nursery", "spade", "roses"},
      {"printer", "press", "ink", "newspapers"},   {"beekeeper", "orchard", "hive", "honey"}};
  return all;
}

Sentences draw_document(uint64_t seed, size_t trade) {
  data::Random random(seed);
  const Trade& t = trades()[trade];
  const Person& person = drawn(kPeople, random);
  Sentences out = {fmt::format("{} is a {} .", person.name, t.name)};
  std::vector<std::string> rest = {
      fmt::format("{} works in the {} .", person.pronoun, t.place),
      fmt::format("{} {} takes the {} .", drawn(kTimes, random), person.pronoun, t.tool),
      fmt::format("with the {} {} makes {} .", t.tool, person.pronoun, t.product),
      fmt::format("the {} of {} is {} .", t.place, person.name, drawn(kKinds, random)),
      fmt::format("people come to the {} for {} .", t.place, t.product)};
  for (size_t i = rest.size(); i > 1; --i) std::swap(rest[i - 1], rest[random.below(i)]);
  rest.resize(3 + random.below(3));
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

Documents generate_documents(const Source& source, int64_t count) {
  Documents out;
  data::Random random(data::mix(source.seed, 28));
  for (int64_t i = 0; i < count; ++i)
    out.texts.push_back(draw_document(data::mix(source.seed, static_cast<uint64_t>(i) + 1000),
                                      random.below(trades().size())));
  split_documents(out, source);
  return out;
}

Question draw_question(uint64_t seed) {
  data::Random random(data::mix(seed, 281));
  const size_t trade = random.below(trades().size());
  const Trade& t = trades()[trade];
  const Person& person = drawn(kPeople, random);
  // The document says everything that can be asked.
  std::vector<std::string> facts = {
      fmt::format("{} works in the {} .", person.pronoun, t.place),
      fmt::format("{} {} takes the {} .", drawn(kTimes, random), person.pronoun, t.tool),
      fmt::format("people come for {} .", t.product)};
  for (size_t i = facts.size(); i > 1; --i) std::swap(facts[i - 1], facts[random.below(i)]);
  Question out;
  out.context = fmt::format("{} is a {} . {}", person.name, t.name, fmt::join(facts, " "));
  switch (random.below(4)) {
    case 0:
      out.question = fmt::format("where does {} work ?", person.name), out.answer = t.place;
      break;
    case 1:
      out.question = fmt::format("what does {} take ?", person.name), out.answer = t.tool;
      break;
    case 2:
      out.question = "what do people come for ?", out.answer = t.product;
      break;
    default:
      out.question = "who is it ?", out.answer = person.name;
  }
  out.start = static_cast<int64_t>(out.context.find(" " + out.answer + " ") + 1);
  if (out.context.starts_with(out.answer + " ")) out.start = 0;
  return out;
}

}  // namespace fovea::systems::bert
