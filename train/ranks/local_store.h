// The store for ranks that this process starts on this machine. No other machine can reach it. Does not
// include libtorch.
#pragma once

#include <memory>

namespace fovea::train {

class LocalStore {
 public:
  LocalStore();
  ~LocalStore();
  int port() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace fovea::train
