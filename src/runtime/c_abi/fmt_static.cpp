// {fmt} for programs that must run on machines without its shared library: Debian ships no static
// one, but the header-only form holds the same functions, and this file instantiates them.
#include <fmt/format-inl.h>
