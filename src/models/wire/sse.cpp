#include "models/wire/sse.h"

#include <utility>

namespace kw::models {

void SseParser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    line(std::exchange(line_, {}));
  }
}

void SseParser::line(std::string_view text) {
  if (std::exchange(first_line_, false) && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.empty()) {
    const SseEvent event = std::exchange(event_, {});
    if (std::exchange(has_data_, false)) take_(event);
    return;
  }
  const size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);  // empty: a comment
  std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_.type = value;
  if (field == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  }
}

}  // namespace kw::models
