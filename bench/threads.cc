#include "bench/threads.h"

#include <ATen/Parallel.h>

namespace fovea::bench {

engine::Parallel torch_threads() {
  return {.workers = static_cast<size_t>(at::get_num_threads()),
          .run = [](size_t n, const std::function<void(size_t)>& body) {
            at::parallel_for(0, static_cast<int64_t>(n), 1, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) body(static_cast<size_t>(i));
            });
          }};
}

}  // namespace fovea::bench
