#include "systems/picture_lines.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "data/files/file.h"
#include "data/files/read.h"
#include "data/formats/text.h"
#include "data/pictures/image.h"
#include "train/usage_error.h"

namespace fovea::systems {

namespace {

// Regions of pictures, as some runs take them.
std::vector<std::string> arrays_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::filesystem::path& path : data::entries_of(folder))
    if (path.extension() == ".npy" || path.extension() == ".safetensors")
      out.push_back(path.string());
  return out;
}

std::vector<std::string> picture_paths(const std::string& input, size_t number,
                                       std::string_view line) {
  const std::string path(data::trimmed(line));
  if (path.empty()) throw data::FileError(input, number, "a blank line, expected a picture's path");
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::string> out = data::image_files_within(path);
  if (out.empty()) out = arrays_in(path);
  if (out.empty())
    throw data::FileError(path, 0, "no pictures in this folder, expected PNG or JPEG files");
  return out;
}

}  // namespace

void each_picture(const Input& input, size_t number, std::string_view line,
                  const std::function<void(const std::string& path)>& show) {
  const std::vector<std::string> paths = picture_paths(input.name, number, line);
  for (const std::string& path : paths) {
    try {
      show(path);
    } catch (const UsageError&) {  // wrong for every picture
      throw;
    } catch (const InvalidArgument& error) {
      if (paths.size() == 1 || !input.refused) throw;
      input.refused(error.what());
    }
  }
}

Answered answer_pictures(const Input& input, size_t number, std::string_view line,
                         const AnswerPicture& answer) {
  const std::vector<std::string> paths = picture_paths(input.name, number, line);
  if (paths.size() == 1) return answer(paths.front());
  Answered out;
  const auto objects = std::make_shared<std::vector<std::function<Json()>>>();
  for (const std::string& path : paths) {
    try {
      const Answered one = answer(path);
      out.text += one.text;
      objects->push_back(one.fields);
    } catch (const UsageError&) {
      throw;
    } catch (const InvalidArgument& error) {
      if (!input.refused) throw;
      input.refused(error.what());
      out.text += path + "\n";
      objects->push_back([path, what = std::string(error.what())] {
        return Json{{"picture", path}, {"error", what}};
      });
    }
  }
  out.fields = [objects] {
    Json all = Json::array();
    for (const auto& one : *objects) all.push_back(one());
    return all;
  };
  return out;
}

}  // namespace fovea::systems
