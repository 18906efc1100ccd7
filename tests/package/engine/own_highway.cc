// The program's own Highway: functions of the same names as those the engine brings along, with a
// meaning of their own. The engine must use its own.
#include <cstdarg>
#include <cstdint>

int own_highway_calls = 0;

namespace hwy {

struct ChosenTarget {
  double another_layout = 0;
};

int64_t SupportedTargets() {
  ++own_highway_calls;
  return 0;
}
void DisableTargets(int64_t) { ++own_highway_calls; }
void SetSupportedTargetsForTest(int64_t) { ++own_highway_calls; }
ChosenTarget& GetChosenTarget() {
  ++own_highway_calls;
  static ChosenTarget chosen;
  return chosen;
}
void Abort(const char*, int, const char*, ...) { ++own_highway_calls; }

}  // namespace hwy
