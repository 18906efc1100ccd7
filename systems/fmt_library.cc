// libtorch's headers come with a newer {fmt} than Debian's library is built from, and find it
// first. What that {fmt} does not define inline is compiled here, once for everything that links
// the systems.
#include <fmt/format-inl.h>
