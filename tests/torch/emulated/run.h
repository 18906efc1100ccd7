// Runs a kernel of the text before it, block after block.
#pragma once

namespace emulated {

template <void (*kernel)(fovea::cuda::Arguments)>
void body(const void* arguments) {
  kernel(*static_cast<const fovea::cuda::Arguments*>(arguments));
}

inline void run(void (*body)(const void*), unsigned blocks, unsigned chunks, unsigned threads,
                const fovea::cuda::Arguments* arguments) {
  const auto block = std::make_unique<Block>();
  block->grid = {blocks, chunks};
  block->body = body;
  block->threads = threads;
  block->arguments = arguments;
  for (unsigned y = 0; y < chunks; ++y) {
    for (unsigned x = 0; x < blocks; ++x) {
      block->block = {x, y};
      run_block(*block);
    }
  }
}

}  // namespace emulated
