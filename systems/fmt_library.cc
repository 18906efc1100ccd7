// libtorch's headers come with a newer {fmt} than Debian's library is built from, and find it
// first. What that {fmt} does not define inline is compiled here, once for everything that links
// the systems.
#include <fmt/format-inl.h>

// What it declares and leaves to one place to make: without them a program that binds every symbol
// when it starts would not start.
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
