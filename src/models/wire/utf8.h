// Whether bytes are UTF-8, and base64 for those that are not.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace kw::models {

// The offset of the first byte that begins no UTF-8 character (RFC 3629: no surrogates, nothing
// overlong); nothing where there is none.
std::optional<size_t> not_utf8(std::string_view text);

// RFC 4648, with padding.
std::string to_base64(std::string_view bytes);
// Nothing for what to_base64 does not give.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace kw::models
