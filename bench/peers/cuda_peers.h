// The rows on a CUDA device. Their best peers (FlexAttention, what torch.compile makes) are Python's,
// so they are a script, cuda_peers.py, which the program holds as a text.
#pragma once

namespace fovea::bench {

extern const char* const kCudaPeers;

}  // namespace fovea::bench
