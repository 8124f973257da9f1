// Apart from files.cpp, so that a program that only writes files needs no OpenSSL.
#include <fmt/format.h>
#include <openssl/sha.h>

#include "support/files.h"

namespace kw {

std::string sha256(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string hex;
  for (unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace kw
