// A shared library that is there or not: nothing of CUDA's is linked, so that one build serves
// machines with and without.
#pragma once

#include <string>
#include <vector>

namespace fovea::cuda {

class LibraryFile {
 public:
  // The first of the names that loads.
  explicit LibraryFile(const std::vector<std::string>& names);
  explicit operator bool() const { return handle_ != nullptr; }
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

 private:
  void* symbol(const char* name) const;
  void* handle_ = nullptr;  // never closed: programs live as long as the process
};

// Folders where CUDA's libraries lie beside libtorch's, as its wheels bring them.
std::vector<std::string> folders_beside_libtorch();

}  // namespace fovea::cuda
