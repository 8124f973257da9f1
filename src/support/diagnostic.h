// What goes wrong, said once and rendered anywhere.
//
// Libraries collect Diagnostics and never print; tools print them and choose the exit code. A
// message states the two facts that disagree; `code` is the number of the law or the name of the
// refusal, so that `kernelwright explain CODE` can say more.
//
//   kernel.tl:41:12: error[wgmma.C3]: columns of q_r (64) and k_s (128) differ
//      41 |   wgmma s = q_r @ k_s[t].T
//         |                  ^~~
//     note: q_r is declared at kernel.tl:12:5
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/source.h"

namespace kw {

enum class Severity { note, warning, error };

struct Note {
  std::string message;
  Span span;
};

// "the message (FILE:LINE:COLUMN)"
std::string text_of(const Note& note);

struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;  // "wgmma.C3", "spec.dtype", "lift.unrecognised", ...
  Span span;
  std::string message;
  std::vector<Note> notes;
  std::string hint;  // what to do about it; may be empty
};

// The exit codes of every command (design: verdicts, not booleans).
enum class Exit { holds = 0, refuted = 1, bad_input = 2, inconclusive = 3, own_fault = 70 };

// Those that are not `holds`; of several ends, the first of these says most.
inline constexpr Exit by_gravity[] = {Exit::own_fault, Exit::refuted, Exit::bad_input,
                                      Exit::inconclusive};

// The end of two that says most.
constexpr Exit worse(Exit a, Exit b) {
  for (const Exit end : by_gravity)
    if (a == end || b == end) return end;
  return Exit::holds;
}

class Diagnostics {
 public:
  // Returns the stored diagnostic so that notes and a hint can be added to it.
  Diagnostic& error(std::string code, Span span, std::string message);
  Diagnostic& warning(std::string code, Span span, std::string message);
  void add(Diagnostic d) { all_.push_back(std::move(d)); }

  bool has_errors() const;
  const std::vector<Diagnostic>& all() const { return all_; }

 private:
  std::vector<Diagnostic> all_;
};

// Text for a person, as in the head of this file; ends with a newline.
std::string render(const Diagnostic& d);
std::string render(const Diagnostics& d);

// The same facts for a program: severity, code, file, line, column, message, notes, hint.
nlohmann::json to_json(const Diagnostic& d);
nlohmann::json to_json(const Diagnostics& d);

}  // namespace kw
