// A proposer's answer: a list of typed edits of the numbered program, and why.
//
//   {"why": "...", "edits": [{"op": "replace", "first": 12, "last": 13, "expect": "let a = b",
//                             "text": ["    let a = c"]}]}
//
// Lines count from 1 in the program as it was asked about; all edits of an answer speak of that
// program, so their order does not matter. `expect` is the first line as it stands there, without
// its indentation: a proposer that miscounts is told so and changes nothing. `text` is whole lines
// with their indentation. An answer can say nothing else: there is no word in it for a file, a
// setting or a verdict, and what is no word of it is refused.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/providers/provider.h"

namespace kw::propose {

// Why an attempt came to nothing: a code, and one sentence for the proposer and for the record.
struct Refusal {
  std::string code;  // "answer.json", "edit.expect", "tl.syntax", "wgmma.C3", "check.refuted"
  std::string sentence;
};

enum class EditKind { replace, insert_before, insert_after, remove };
inline constexpr std::string_view kEditNames[] = {"replace", "insert_before", "insert_after",
                                                  "delete"};

struct LineEdit {
  EditKind kind = EditKind::replace;
  int first = 0, last = 0;
  std::string expect;
  std::vector<std::string> text;
};

struct Edits {
  std::string why;
  std::vector<LineEdit> edits;
};

inline constexpr size_t kMostBytes = 256 * 1024;  // of an answer
inline constexpr size_t kMostEdits = 200, kMostLines = 2000, kMostColumns = 1000;

// What constrained decoding holds an answer to, and read_answer() too: every property required and
// no other, no references, nothing that only some servers know.
nlohmann::json answer_schema();

// An answer as JSON that fits a schema of schema.h. In this order, the first breach is the refusal:
// answer.truncated, answer.size, answer.empty, answer.utf8, answer.json (no JSON, or a property
// twice), answer.schema (with the place in it).
std::optional<nlohmann::json> read_json(const models::Answer& answer, const nlohmann::json& schema,
                                        Refusal& refusal);
std::optional<Edits> read_answer(const models::Answer& answer, Refusal& refusal);
LineEdit edit_of(const nlohmann::json& json);  // one that fits

// The canonical JSON of edits, as a proposer is reminded of them.
nlohmann::ordered_json to_json(const Edits& edits);

}  // namespace kw::propose
