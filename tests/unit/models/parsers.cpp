// What reads an endpoint's bytes: events, waits, addresses, UTF-8, base64, records.
#include <gtest/gtest.h>

#include <random>

#include "models/providers/retry.h"
#include "models/secret.h"
#include "models/transcript.h"
#include "models/wire/sse.h"
#include "models/wire/url.h"
#include "models/wire/utf8.h"
#include "models/wire/wire.h"

namespace kw::models {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events events_of(const std::string& text, size_t piece) {
  Events all;
  SseParser parser([&](const SseEvent& e) { all.emplace_back(e.type, e.data); });
  for (size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece));
  return all;
}

TEST(Sse, EventsAreTheSameHoweverTheyAreCut) {
  const std::string text =
      "\xEF\xBB\xBF"
      ": a comment\r\nevent: first\r\ndata: one\r\ndata:two\r\ndata\r\n\r\n"
      "id: 7\ndata:  three \n\n\n\nevent: without data\n\rdata: four\r\rdata: never ended\n";
  const Events expected = {{"first", "one\ntwo\n"}, {"", " three "}, {"", "four"}};
  for (size_t piece = 1; piece <= text.size(); ++piece)
    EXPECT_EQ(events_of(text, piece), expected) << piece;
}

TEST(Sse, AnyBytesEndInSomeEvents) {
  std::mt19937 random(1);
  const std::string letters = "data: \r\n:x\xFF\xEF\xBB\xBF";
  for (int n = 0; n < 2000; ++n) {
    std::string text;
    for (int k = 0; k < 60; ++k) text += letters[random() % letters.size()];
    EXPECT_EQ(events_of(text, 1), events_of(text, 60)) << text;
  }
}

TEST(Retry, WaitsAreReadAsSecondsMillisecondsAndDates) {
  const auto wait = [](const char* name, const char* value) {
    HttpHead head;
    head.headers[name] = value;
    return asked_wait(head, 784111777 - 30);
  };
  EXPECT_EQ(wait("retry-after", "1.5"), 1.5);
  EXPECT_EQ(wait("retry-after-ms", "250"), 0.25);
  EXPECT_EQ(wait("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), 30);
  EXPECT_EQ(wait("retry-after", "Sun, 06 Nov 1993 08:49:37 GMT"), 0);
  for (const char* wrong : {"", "soon", "-1", "nan", "inf", "1 s", "Sun, 06 Nov 1994"})
    EXPECT_FALSE(wait("retry-after", wrong)) << wrong;
}

TEST(Retry, BackoffDoublesUpToEightSecondsWithJitterBelow) {
  EXPECT_DOUBLE_EQ(backoff(1, 0.5, 0), 0.5);
  EXPECT_DOUBLE_EQ(backoff(3, 0.5, 0), 2);
  EXPECT_DOUBLE_EQ(backoff(30, 0.5, 0), 8);
  EXPECT_DOUBLE_EQ(backoff(2, 20, 0), 20);
  EXPECT_DOUBLE_EQ(backoff(1, 4, 0.5), 3.5);
}

TEST(Url, AddressesAreTakenApart) {
  const Url six = parse_url("http://[::1]:8000/v1/");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.path, "/v1");
  EXPECT_EQ(six.origin(), "http://[::1]:8000");
  EXPECT_TRUE(six.loopback());
  EXPECT_EQ(parse_url("https://a.example:443/x").origin(), "https://a.example");
  EXPECT_FALSE(parse_url("http://127.0.0.1.a.example").loopback());
  EXPECT_FALSE(parse_url("http://localhost.example").loopback());
  for (const char* wrong : {"", "a.example", "https://", "https://a.example:0", "https://a:99999",
                            "https://a.example/x?y", "https://a b", "https://u:p@a", "file:///x"})
    EXPECT_THROW(parse_url(wrong), ProviderError) << wrong;
}

TEST(Utf8, ExactlyWhatTheStandardAllows) {
  for (const char* good :
       {"", "a", "\u00fc", "\u20ac", "\U0001F600", "\uD7FF", "\uE000", "\U0010FFFF"})
    EXPECT_FALSE(not_utf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\x81", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xC3("})
    EXPECT_EQ(not_utf8(bad), 0u) << bad;
  EXPECT_EQ(not_utf8("ab\xFF"), 2u);
}

TEST(Base64, BytesComeBackAndNothingElseIsRead) {
  for (const std::string bytes : {"", "f", "fo", "foo", "\xFF\xFE"})
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  EXPECT_EQ(to_base64(std::string("\0\xFF", 2)), "AP8=");
  for (const char* wrong : {"A", "AP8", "AP9=", "A===", "AP8=\n", "*P8="})
    EXPECT_FALSE(from_base64(wrong)) << wrong;
}

TEST(Secret, IsBlankedEverywhereAndShortOnesAreNone) {
  const Secret key("abcdefgh"), longer("abcdefghij"), none("EMPTY");
  EXPECT_EQ(redacted("<abcdefgh> abcdefghij EMPTY"), "<[key]> [key] EMPTY");
}

Record answered(const std::string& text) {
  Request r;
  r.stage = "transfer";
  r.system = "s";
  r.user = "u\n\u20ac";
  r.schema = {{"type", "object"}};
  Answer a{text, "model-7", false, 9, 2, 0.125};
  return {r, a, {}};
}

TEST(Transcript, RecordsReadBackWhateverBytesTheyHold) {
  for (const std::string text : {"", "plain", "\xFF\xFE", "\"\\\n\u20ac"}) {
    const Record back = from_line(to_line(answered(text)));
    EXPECT_EQ(back.answer->text, text);
    EXPECT_EQ(to_line(back), to_line(answered(text)));
    EXPECT_EQ(back.answer->complete, false);
    EXPECT_EQ(back.answer->dollars, 0.125);
  }
  Record failed{answered("").request, {}, ProviderError(ProviderError::Kind::budget, "no more")};
  const Record back = from_line(to_line(failed));
  EXPECT_EQ(back.error->kind, ProviderError::Kind::budget);
  EXPECT_STREQ(back.error->what(), "no more");
}

TEST(Transcript, AChangedLineIsRefused) {
  const std::string line = to_line(answered("yes"));
  int refused = 0, same = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    std::string changed = line;
    changed[at] = changed[at] == '0' ? '1' : '0';
    try {
      if (to_line(from_line(changed)) == line) ++same;
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  EXPECT_EQ(same, 0);
  EXPECT_GT(refused, static_cast<int>(line.size()) / 2);
}

TEST(Wire, AnyBytesOfAnEventEndInATypedFault) {
  std::mt19937 random(1);
  const std::string seed =
      R"({"type":"error","error":{"type":"x","message":"y"},"choices":[{"delta":{"content":"a"}}],)"
      R"("usage":{"prompt_tokens":1},"delta":{"type":"text_delta","text":"b","stop_reason":"c"},)"
      R"("response":{"model":"m"},"message":{"usage":{}}})";
  for (const char* api : {"chat", "responses", "anthropic"}) {
    const auto wire = make_wire(api, false);
    for (int n = 0; n < 3000; ++n) {
      std::string data = seed;
      for (int k = random() % 4; k >= 0; --k)
        data[random() % data.size()] = "{}[]\":,0a\xFF"[random() % 10];
      Reply reply;
      try {
        if (n % 2)
          wire->event({"", data}, reply);
        else
          wire->whole(object_of(data), reply);
      } catch (const WireFault&) {
      } catch (const WireError&) {
      }
    }
  }
}

}  // namespace
}  // namespace kw::models
