// Transcripts: requests and what came of them, as JSON lines that replay byte for byte.
//
//   {"answer":{"complete":true,"dollars":0.01,"text":"...","tokens_in":9,"tokens_out":2,
//    "who":"model-7"},"key":"<sha256>","request":{"attempt":1,"most_tokens":16384,"sample":1,
//    "schema":null,"stage":"transfer","system":"...","user":"..."}}
//
// One record a line, keys sorted, no spaces; no time, path, host or key of an endpoint. A record's
// key is the SHA-256 of its request as it stands in the line. Bytes that are no UTF-8 stand as
// "text_base64". What ended without an answer has "error": {"kind", "line"} in place of "answer".
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/providers/provider.h"

namespace kw::models {

struct Record {
  Request request;
  std::optional<Answer> answer;
  std::optional<ProviderError> error;  // when there is no answer
};

// The request's canonical text. Known keys are blanked. Throws ProviderError (bad_request) for text
// that is no UTF-8.
std::string canonical(const Request& request);
// SHA-256 of canonical(request), lower-case hexadecimal.
std::string key_of(const Request& request);

// One line, without its newline.
std::string to_line(const Record& record);
// Throws std::runtime_error, which says what is wrong with the line.
Record from_line(const std::string& line);

// Reads a transcript. Throws ProviderError (bad_request) that names file and line.
std::vector<Record> read_transcript(const std::filesystem::path& file);

// stage, sample, attempt; what is equal there stays in order.
void sort_records(std::vector<Record>& records);

// For a person: who answered, how long requests and answers are, and their text.
std::string readable(const std::vector<Record>& records);

}  // namespace kw::models
