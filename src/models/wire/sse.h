// Server-sent events: the stream in which endpoints send an answer while it is written.
//
//   event: content_block_delta
//   data: {"type":"content_block_delta", ...}
//                                               an empty line ends an event
// Source: WHATWG HTML, "Server-sent events", 9.2.6. `id` and `retry` are for reconnecting browsers
// and mean nothing here.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace kw::models {

struct SseEvent {
  std::string type;  // empty where the stream names none
  std::string data;  // lines of data joined by newlines
};

class SseParser {
 public:
  explicit SseParser(std::function<void(const SseEvent&)> take) : take_(std::move(take)) {}
  // Bytes as they come, cut anywhere. An event is taken at its empty line; one that the stream ends
  // in is never taken.
  void feed(std::string_view bytes);

 private:
  void line(std::string_view text);

  std::function<void(const SseEvent&)> take_;
  std::string line_;        // that has no end yet
  bool after_cr_ = false;   // a line feed right now belongs to the last line's end
  bool first_line_ = true;  // may begin with a byte order mark
  bool has_data_ = false;
  SseEvent event_;
};

}  // namespace kw::models
