#include "support/entropy.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace kw {

uint64_t entropy() {
  uint64_t bits = 0;
  // Eight bytes come whole or not at all; a signal may come before the first of the system's start.
  while (getrandom(&bits, sizeof bits, 0) != sizeof bits)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  return bits;
}

}  // namespace kw
