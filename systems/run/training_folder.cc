// The folder of a training: whether the request may use it, what of the RUN is there already, and the
// drafts that the new one is written to.
#include <fmt/format.h>

#include "io/folder.h"
#include "systems/run/run_config.h"
#include "systems/run/training.h"

namespace fovea::systems {
namespace {

namespace fs = std::filesystem;
using train::Draft;
using train::RunFolder;

}  // namespace

Training::Place::Place(const fs::path& given) : path(given) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    throw UsageError(fmt::format("--out {}: a file is there, expected a folder", path.string()));
  made = io::make_folder(path);
}

Training::Place::~Place() {
  std::error_code ignored;
  if (made) fs::remove(path, ignored);  // fails if the folder is not empty
}

// The configuration of the run that the request continues.
std::optional<Json> Training::config_before() const {
  if (draft_.begun() && (!request_.overwrite || !request_.only.empty()))
    return parse_config(draft_.read(kConfigFile), (draft_ / kConfigFile).string());
  if (request_.resume && RunFolder::is_whole(request_.out))
    return read_config(RunFolder(request_.out));
  return std::nullopt;
}

// Checks whether the request may use the folder, as far as that is known before the data are read.
void Training::check_room() const {
  const std::string out = request_.out.string();
  const bool whole = RunFolder::is_whole(request_.out), begun = draft_.begun();
  const Json now = config_of(members_[0]);
  check_recordable(now);
  if (whole) RunFolder(request_.out).manifest();  // throws if the manifest is not ours
  if (!whole && !begun && train::has_foreign_files(request_.out))
    throw UsageError(fmt::format(
        "--out {}: holds files and no run of fovea; choose a new or an empty folder", out));
  const bool others_only = !request_.only.empty() && !whole;  // see open_member_draft
  if (!request_.resume && !request_.overwrite && (whole || begun) && !others_only)
    throw UsageError(
        fmt::format("{}: holds {} already: --resume continues it, --overwrite replaces it", out,
                    whole ? "a run" : "an unfinished run"));
  if (const auto before = config_before())
    check_resumable(out, *before, several() ? config_of_all(now) : now);
}

// Whether a folder has a complete RUN of this request.
bool Training::is_finished(const fs::path& place, const Json& config) const {
  if (request_.overwrite && !opened_) return false;
  if (!RunFolder::is_whole(place)) return false;
  const Json found = read_config(RunFolder(place));
  return found.at("options") == config.at("options") &&
         found.value("members", Json()) == config.value("members", Json());
}

void Training::open_draft(const Json& config) {
  const fs::path& out = request_.out;
  if (opened_) {
    const std::string first = (draft_ / kConfigFile).string();
    return check_unchanged(out.string(), parse_config(draft_.read(kConfigFile), first), config);
  }
  const auto before = config_before();
  if (before) check_same_data(out.string(), *before, config);
  const bool alone = request_.only.empty();  // otherwise other parts may be written at this moment
  if (before && draft_.begun()) {
    if (alone) draft_.go_on();
  } else if (before) {
    draft_.begin_with(RunFolder(out));
  } else if (alone) {
    draft_.begin();
  } else {
    draft_.begin_among_others();
  }
  const std::string text = config.dump(2) + "\n";
  if (!draft_.begun() || draft_.read(kConfigFile) != text) draft_.write(kConfigFile, text);
  opened_ = true;
}

// The same for the folder of a seed or a fold, which is in the draft of the whole RUN.
void Training::open_member_draft(Draft& draft, const fs::path& place, const Json& config) const {
  train::finish_publication(place);
  const bool whole = RunFolder::is_whole(place);
  if (!request_.only.empty() && !request_.resume && !request_.overwrite && (whole || draft.begun()))
    throw UsageError(
        fmt::format("{}: holds {} already: --resume continues it, --overwrite replaces it",
                    request_.out.string(), request_.only));
  const bool afresh = request_.overwrite && !request_.only.empty();
  if (draft.begun() && !afresh) {
    const Json before = parse_config(draft.read(kConfigFile), (draft / kConfigFile).string());
    check_resumable(place.string(), before, config);
    check_same_data(place.string(), before, config);
    draft.go_on();
  } else if (whole && !afresh) {
    const RunFolder run(place);
    check_resumable(place.string(), read_config(run), config);
    check_same_data(place.string(), read_config(run), config);
    draft.begin_with(run);
  } else {
    draft.begin();
  }
}

}  // namespace fovea::systems
