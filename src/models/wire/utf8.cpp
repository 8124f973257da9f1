// Base64 is OpenSSL's, which the programs have for SHA-256 and TLS.
#include "models/wire/utf8.h"

#include <openssl/evp.h>

namespace kw::models {

std::optional<size_t> not_utf8(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  for (size_t at = 0; at < text.size();) {
    const unsigned first = byte(at);
    const int more = first < 0x80 ? 0 : first >= 0xC2 && first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || at + more >= text.size()) return at;
    // The second byte's range keeps out what is overlong, the surrogates and what is too large.
    unsigned low = 0x80, high = 0xBF;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    for (int k = 1; k <= more; ++k, low = 0x80, high = 0xBF)
      if (byte(at + k) < low || byte(at + k) > high) return at;
    at += more + 1;
  }
  return std::nullopt;
}

std::string to_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  out.resize(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                             reinterpret_cast<const unsigned char*>(bytes.data()),
                             static_cast<int>(bytes.size())));
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string out(text.size() / 4 * 3 + 1, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  size_t padding = 0;  // which EVP_DecodeBlock counts as bytes
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  out.resize(size - padding);
  if (to_base64(out) != text) return std::nullopt;
  return out;
}

}  // namespace kw::models
