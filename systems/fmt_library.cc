// libtorch's headers bring a newer {fmt} than the library of Debian, and the compiler finds it
// first. Its functions that are not inline are compiled here, once for everything that links the
// systems.
#include <fmt/format-inl.h>

// Templates that its headers declare and one source must instantiate. Without them a program that
// binds every symbol at its start would not start.
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
