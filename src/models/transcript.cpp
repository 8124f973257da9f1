#include "models/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "models/providers/provider_error.h"
#include "models/secret.h"
#include "models/wire/utf8.h"
#include "support/files.h"
#include "support/source.h"

namespace kw::models {
namespace {

using Json = nlohmann::json;

// nlohmann's objects are sorted by key.
Json request_json(const Request& r) {
  for (const std::string* text : {&r.stage, &r.system, &r.user})
    if (const auto at = not_utf8(*text))
      throw ProviderError(ProviderError::Kind::bad_request,
                          fmt::format("the request is not UTF-8 at byte {}: convert it", *at));
  return {{"stage", redacted(r.stage)},   {"attempt", r.attempt},     {"sample", r.sample},
          {"system", redacted(r.system)}, {"user", redacted(r.user)}, {"schema", r.schema},
          {"most_tokens", r.most_tokens}};
}

// Under `name`, or in base64 under `name`_base64.
void put_bytes(Json& object, const std::string& name, const std::string& bytes) {
  if (not_utf8(bytes))
    object[name + "_base64"] = to_base64(bytes);
  else
    object[name] = bytes;
}

std::string bytes_of(const Json& object, const std::string& name) {
  if (object.contains(name)) return object.at(name).get<std::string>();
  const auto bytes = from_base64(object.at(name + "_base64").get<std::string>());
  if (!bytes) throw std::runtime_error(fmt::format("'{}_base64' is not base64", name));
  return *bytes;
}

// A number of 1e63 is no int, and converting it is undefined.
template <class Int>
Int whole(const Json& object, const char* name) {
  constexpr int64_t kMost = std::numeric_limits<Int>::max();
  const Json& n = object.at(name);
  const bool fits = n.is_number_unsigned()  ? n.get<uint64_t>() <= uint64_t(kMost)
                    : n.is_number_integer() ? n.get<int64_t>() >= std::numeric_limits<Int>::min()
                                            : false;
  if (!fits) throw std::runtime_error(fmt::format("'{}' is not a whole number in range", name));
  return n.get<Int>();
}

Request request_of(const Json& j) {
  Request r;
  r.stage = j.at("stage").get<std::string>();
  r.attempt = whole<int>(j, "attempt");
  r.sample = whole<int>(j, "sample");
  r.system = j.at("system").get<std::string>();
  r.user = j.at("user").get<std::string>();
  r.schema = j.at("schema");
  r.most_tokens = whole<int>(j, "most_tokens");
  return r;
}

}  // namespace

std::string canonical(const Request& request) { return request_json(request).dump(); }

std::string key_of(const Request& request) { return sha256(canonical(request)); }

std::string to_line(const Record& record) {
  Json line = {{"request", request_json(record.request)}, {"key", key_of(record.request)}};
  if (record.answer) {
    const Answer& a = *record.answer;
    Json answer = {{"complete", a.complete},
                   {"tokens_in", a.tokens_in},
                   {"tokens_out", a.tokens_out},
                   {"dollars", a.dollars}};
    put_bytes(answer, "text", redacted(a.text));
    put_bytes(answer, "who", redacted(a.who));
    line["answer"] = answer;
  } else {
    line["error"] = {{"kind", name(record.error->kind)}};
    put_bytes(line["error"], "line", redacted(record.error->what()));
  }
  return line.dump();
}

Record from_line(const std::string& text) {
  try {
    const Json line = Json::parse(text);
    Record record;
    record.request = request_of(line.at("request"));
    const std::string key = key_of(record.request), said = line.at("key").get<std::string>();
    if (key != said)
      throw std::runtime_error(
          fmt::format("its key is {:.12}..., and its request's is {:.12}...", said, key));
    if (line.contains("answer")) {
      const Json& a = line["answer"];
      record.answer = Answer{bytes_of(a, "text"),          bytes_of(a, "who"),
                             a.at("complete").get<bool>(), whole<long>(a, "tokens_in"),
                             whole<long>(a, "tokens_out"), a.at("dollars").get<double>()};
      return record;
    }
    const std::string kind = line.at("error").at("kind").get<std::string>();
    const auto known = kind_named(kind);
    if (!known) throw std::runtime_error(fmt::format("unknown kind of error '{}'", kind));
    record.error = ProviderError(*known, bytes_of(line["error"], "line"));
    return record;
  } catch (const Json::exception& e) {
    throw std::runtime_error(e.what());
  } catch (const ProviderError& e) {
    throw std::runtime_error(e.what());
  }
}

std::vector<Record> read_transcript(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& what) {
    throw ProviderError(ProviderError::Kind::bad_request,
                        fmt::format("{}: {}", file.string(), what));
  };
  const SourcePtr source = read_source(file.string());
  if (!source) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  std::vector<Record> records;
  size_t at = 0;
  for (int line = 1; at < source->text.size(); ++line) {
    const size_t end = std::min(source->text.find('\n', at), source->text.size());
    const std::string text = source->text.substr(at, end - at);
    at = end + 1;
    if (text.empty()) continue;
    try {
      records.push_back(from_line(text));
    } catch (const std::runtime_error& e) {
      refuse(fmt::format("line {} is not a record of a transcript: {}", line, e.what()));
    }
  }
  return records;
}

void sort_records(std::vector<Record>& records) {
  const auto place = [](const Record& r) {
    return std::tie(r.request.stage, r.request.sample, r.request.attempt);
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const Record& a, const Record& b) { return place(a) < place(b); });
}

std::string readable(const std::vector<Record>& records) {
  std::string out;
  const auto indented = [](const std::string& text) {
    std::string lines = "    ";
    for (const char c : text) lines += c == '\n' ? std::string("\n    ") : std::string(1, c);
    while (!lines.empty() && (lines.back() == ' ' || lines.back() == '\n')) lines.pop_back();
    return lines + "\n";
  };
  int number = 0;
  for (const Record& record : records) {
    const Request& r = record.request;
    out += fmt::format("{}{}. {}, sample {}, attempt {}  [{:.12}]\n", number ? "\n" : "",
                       number + 1, r.stage, r.sample, r.attempt, key_of(r));
    ++number;
    if (!r.system.empty()) out += "  system\n" + indented(r.system);
    out += "  user\n" + indented(r.user);
    if (!r.schema.is_null())
      out += fmt::format("  schema: {} bytes of JSON\n", r.schema.dump().size());
    if (!record.answer) {
      out += fmt::format("  no answer, {}: {}\n", name(record.error->kind), record.error->what());
      continue;
    }
    const Answer& a = *record.answer;
    out += fmt::format("  answered {}{}; {} tokens read, {} written{}\n",
                       a.who == "by hand" ? "" : "by ", a.who, a.tokens_in, a.tokens_out,
                       a.complete ? "" : "; cut off");
    const auto bad = not_utf8(a.text);
    out += bad ? fmt::format("    {} bytes, not UTF-8 from byte {} on; base64:\n", a.text.size(),
                             *bad) +
                     indented(to_base64(a.text))
               : indented(a.text);
  }
  return out;
}

}  // namespace kw::models
