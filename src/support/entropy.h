// Numbers that nobody can foresee, from the kernel: for seeds, and for what must differ from run to
// run.
#pragma once
#include <cstdint>

namespace kw {

// 64 random bits by getrandom(2). std::random_device would ask for it too, by a function that only
// glibc 2.36 has, and the wheel's programs run on older ones.
uint64_t entropy();

}  // namespace kw
