#include "train/run/manifest.h"

#include <fmt/format.h>

#include <filesystem>

#include "data/files/file.h"
#include "data/files/json.h"
#include "io/sha256.h"
#include "fovea/error.h"
#include "train/types.h"

namespace fovea::train {
namespace {

constexpr int kManifestVersion = 1;

// A name that leads out of the RUN is refused.
bool stays_inside(const std::string& name) {
  const std::filesystem::path path(name);
  if (path.empty() || path.is_absolute()) return false;
  for (const auto& part : path)
    if (part == ".." || part == "." || part.empty()) return false;
  return true;
}

Json fields(const Manifest& manifest) {
  Json files = Json::object();
  for (const auto& [name, file] : manifest.files)
    files[name] = {{"sha256", file.sha256}, {"bytes", file.bytes}};
  return {{"fovea", "run"},
          {"version", kManifestVersion},
          {"program", manifest.program},
          {"configuration", manifest.configuration},
          {"files", files}};
}

}  // namespace

void Manifest::add(const std::string& name, std::string_view bytes) {
  files[name] = {io::sha256(bytes), bytes.size()};
}

std::string Manifest::text() const {
  Json out = fields(*this);
  out["sha256"] = io::sha256(out.dump());  // of the fields before it
  return out.dump(2) + "\n";
}

Manifest Manifest::parse(const std::string& text, const std::string& path) {
  const auto wrong = [&](const std::string& what) { return data::FileError(path, 0, what); };
  const Json given = data::json_in(text);
  if (!given.is_object() || given.value("fovea", Json()) != "run")
    throw wrong("expected the manifest of a run");
  if (given.value("version", Json()) != kManifestVersion)
    throw wrong(fmt::format("expected a run of version {}, found {}", kManifestVersion,
                            data::shown(given.value("version", Json()).dump())));
  Manifest out;
  try {
    out.program = given.at("program").get<std::string>();
    out.configuration = given.at("configuration").get<std::string>();
    for (const auto& [name, file] : given.at("files").items()) {
      if (!stays_inside(name)) throw wrong(data::shown(name) + " is not a file of the run");
      out.files[name] = {file.at("sha256").get<std::string>(), file.at("bytes").get<uint64_t>()};
    }
    if (given.at("sha256") != io::sha256(fields(out).dump()))
      throw wrong("damaged: it is not as it was written");
  } catch (const Json::exception&) {
    throw wrong("damaged: a field is missing or of another kind");
  }
  return out;
}

void Manifest::check(const std::string& name, std::string_view bytes,
                     const std::string& path) const {
  const auto found = files.find(name);
  if (found == files.end())
    throw InvalidArgument(
        fmt::format("{}: not a file of the run: {} does not list it", path, kManifestFile));
  const File& expected = found->second;
  if (bytes.size() != expected.bytes)
    throw InvalidArgument(fmt::format("{}: damaged: {} bytes, expected {} ({})", path, bytes.size(),
                                      expected.bytes, kManifestFile));
  if (const std::string sum = io::sha256(bytes); sum != expected.sha256)
    throw InvalidArgument(fmt::format("{}: damaged: its sha256 begins {}, expected {} ({})", path,
                                      sum.substr(0, 12), expected.sha256.substr(0, 12),
                                      kManifestFile));
}

}  // namespace fovea::train
