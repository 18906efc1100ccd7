#include "data/pictures/picture_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/files/file.h"
#include "data/files/json_text.h"
#include "data/formats/text.h"

namespace fovea::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPictures = "pictures.idx";

std::string text_of(const Json& item, const char* field, const std::string& name, size_t number) {
  const auto found = item.find(field);
  if (found == item.end() || !found->is_string())
    throw FileError(name, number, fmt::format("expected \"{}\" to be a text", field));
  std::string text(trimmed(found->get<std::string>()));
  if (text.empty()) throw FileError(name, number, fmt::format("\"{}\" is empty", field));
  return text;
}

void add_answers(PictureQuestion& out, const Json& item, const std::string& name, size_t number) {
  if (item.contains("answer")) out.answers.push_back(text_of(item, "answer", name, number));
  if (!item.contains("answers")) return;
  const Json& given = item["answers"];
  if (!given.is_array() || given.empty() || !out.answers.empty())
    throw FileError(name, number, "expected \"answer\", or \"answers\", a list of texts");
  for (const Json& one : given)
    out.answers.push_back(text_of(Json{{"answers", one}}, "answers", name, number));
}

void add_cells(PictureQuestion& out, const Json& item, const std::string& name, size_t number) {
  if (!item.contains("cells")) return;
  const bool list = item["cells"].is_array();
  for (const Json& cell : list ? item["cells"] : Json::array({nullptr})) {
    if (!cell.is_number_unsigned() || cell.get<uint64_t>() < 1 ||
        cell.get<uint64_t>() > kWidestPicture)
      throw FileError(name, number, "expected \"cells\" to be a list of numbers from 1");
    out.cells.push_back(cell.get<int64_t>() - 1);
  }
}

std::string file_of(const std::string& folder, Split part) {
  for (const char* ending : {".jsonl", ".jsonl.gz"})
    for (const std::string& start :
         {std::string(name_of(part)), std::string(part == Split::kValidation ? "valid" : "?")})
      if (const fs::path path = fs::path(folder) / (start + ending); fs::exists(path))
        return path.string();
  return "";
}

}  // namespace

PictureQuestion parse_picture_question(std::string_view line, const std::string& name,
                                       size_t number) {
  PictureQuestion out;
  line = trimmed(line);
  if (line.empty())
    throw FileError(name, number, "a blank line, expected a picture and a question");
  if (line.front() != '{') {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos)
      throw FileError(name, number, "expected picture<TAB>question, or a JSON object");
    out.picture = trimmed(line.substr(0, tab));
    out.question = trimmed(line.substr(tab + 1));
    return out;
  }
  const Json item = json_in(line);
  if (!item.is_object()) throw FileError(name, number, "expected a JSON object");
  out.picture = text_of(item, "picture", name, number);
  out.question = text_of(item, "question", name, number);
  add_answers(out, item, name, number);
  add_cells(out, item, name, number);
  return out;
}

std::string json_line(const PictureQuestion& question) {
  Json out{{"picture", question.picture}, {"question", question.question}};
  if (question.answers.size() == 1)
    out["answer"] = question.answers[0];
  else if (!question.answers.empty())
    out["answers"] = question.answers;
  if (!question.cells.empty()) {
    out["cells"] = Json::array();
    for (const int64_t cell : question.cells) out["cells"].push_back(cell + 1);
  }
  return json_text(out) + "\n";
}

double agreement(const std::vector<std::string>& answers, std::string_view given) {
  const auto votes = static_cast<double>(std::count(answers.begin(), answers.end(), given));
  return answers.size() == 1 ? votes : std::min(votes / 3, 1.0);
}

const std::string& commonest(const std::vector<std::string>& answers) {
  return *std::max_element(answers.begin(), answers.end(),
                           [&](const std::string& a, const std::string& b) {
                             return std::count(answers.begin(), answers.end(), a) <
                                    std::count(answers.begin(), answers.end(), b);
                           });
}

std::vector<uint8_t> PictureStore::at(const std::string& name) {
  Image image = whole(name);
  if (image.width == side_ && image.height == side_) return std::move(image.pixels);
  return scaled(image, side_).pixels;
}

Image PictureStore::whole(const std::string& name) {
  const size_t mark = name.rfind(".idx#");
  const std::string file =
      (fs::path(folder_) / (mark == std::string::npos ? name : name.substr(0, mark + 4))).string();
  if (mark == std::string::npos) return read_colour_image(file);
  if (!opened_.contains(file)) {
    Idx idx = read_idx(file);
    if (idx.shape.size() != 4 || idx.shape[3] != 3 || idx.shape[1] < 1 || idx.shape[2] < 1)
      throw FileError(file, 0, "expected pictures × height × width × 3 bytes");
    opened_.emplace(file, std::move(idx));
  }
  const Idx& idx = opened_.at(file);
  const int64_t place = parse_integer(name.substr(mark + 5), "picture", name, 0);
  if (place < 0 || place >= idx.shape[0])
    throw FileError(file, 0, fmt::format("picture {}, expected 0 to {}", place, idx.shape[0] - 1));
  const int64_t size = idx.shape[1] * idx.shape[2] * 3;
  const auto from = idx.values.begin() + place * size;
  return {idx.shape[2], idx.shape[1], 3, {from, from + size}};
}

PictureQuestions read_picture_questions(const std::string& folder, const PictureRequest& request) {
  PictureQuestions out;
  PictureStore store(folder, request.side);
  SplitRequest shares = request.split;
  std::vector<uint64_t> keys;
  const auto add = [&](const std::string& file, std::vector<int64_t>& split) {
    const std::string text = read_file(file);
    each_line(std::string_view(text), file, [&](size_t number, std::string_view line) {
      PictureQuestion question = parse_picture_question(line, file, number);
      if (question.answers.empty())
        throw FileError(file, number, "expected \"answer\" or \"answers\"");
      split.push_back(static_cast<int64_t>(out.questions.size()));
      out.pictures.push_back(store.at(question.picture));
      // The questions about a picture go to the same side.
      const std::vector<uint8_t>& pixels = out.pictures.back();
      const std::string picture(pixels.begin(), pixels.end());
      shares.keys.push_back(item_key(picture));
      keys.push_back(item_key(question.question + picture));
      out.questions.push_back(std::move(question));
    });
  };
  if (!fs::is_directory(folder)) throw FileError(folder, 0, "expected a folder");
  const fs::path single = fs::path(folder) / "questions.jsonl";
  if (fs::exists(single)) {
    add(single.string(), out.splits.train);
    out.splits = split(static_cast<int64_t>(out.questions.size()), shares);
    out.splits.keys = std::move(keys);
    return out;
  }
  const std::string train = file_of(folder, Split::kTrain), test = file_of(folder, Split::kTest),
                    validation = file_of(folder, Split::kValidation);
  if (test.empty() || (train.empty() && !request.split.all_test))
    throw FileError(folder, 0, "expected questions.jsonl, or train.jsonl and test.jsonl, in it");
  if (shares.folds > 0)
    throw FileError(
        folder, 0,
        "--folds: this data has a test part of its own; give questions.jsonl to cross-validate");
  if (!request.split.all_test) {
    add(train, out.splits.train);
    shares.test = 0;
    if (validation.empty())
      out.splits = split(static_cast<int64_t>(out.questions.size()), shares);
    else
      add(validation, out.splits.validation);
  }
  add(test, out.splits.test);
  out.splits.keys = std::move(keys);
  return out;
}

std::map<std::string, std::string> picture_question_files(const PictureQuestions& set,
                                                          int64_t side) {
  std::map<std::string, std::string> out;
  Idx all{{static_cast<int64_t>(set.pictures.size()), side, side, 3}, {}};
  for (const auto& picture : set.pictures)
    all.values.insert(all.values.end(), picture.begin(), picture.end());
  out[kPictures] = idx_bytes(all);
  for (const Split part : {Split::kTrain, Split::kValidation, Split::kTest})
    for (const int64_t i : set.splits.of(part)) {
      PictureQuestion question = set.questions[static_cast<size_t>(i)];
      question.picture = fmt::format("{}#{}", kPictures, i);
      out[fmt::format("{}.jsonl", name_of(part))] += json_line(question);
    }
  return out;
}

}  // namespace fovea::data
