// Writing goes along the reference: a block's statements are aligned with the reference's, `at_`
// says how far its bytes are copied, and each pair is written in place of the old statement, from
// its own tokens outwards. Whether a statement changed is decided by its CUDA words, not by its TL:
// the same TL may be spelled anew because a name around it became an argument, or because a
// division is no longer provably of non-negative numbers.
#include "lower/lower.h"

#include <algorithm>

#include "lower/layout.h"
#include "lower/print_module.h"
#include "tl/analysis/diff.h"
#include "tl/scope/scope.h"
#include "tl/syntax/statements.h"
#include "tl/syntax/table.h"

namespace kw::lower {
namespace {
using namespace tl;
using lift::Place;

class Lowering {
 public:
  Lowering(const lift::Lifted& reference, Diagnostics& diagnostics)
      : source_(reference.program.source),
        text_(source_->text),
        tokens_(reference.tokens),
        diagnostics_(diagnostics) {}

  // The whole text; nothing after a report.
  std::optional<std::string> run(const Program& program, const lift::Lifted& reference) {
    Scope module;
    size_t at = 0;
    if (!reference.places.empty()) at = line_begin(text_, begin(reference.places[0]));
    std::string out = text_.substr(0, at);
    out += block(program.body, reference.program.body, reference.places, at, "", module);
    return good_ ? std::optional(out + text_.substr(at_)) : std::nullopt;
  }

 private:
  size_t begin(const Place& p) const { return tokens_[p.first].begin; }
  size_t head_end(const Place& p) const { return tokens_[p.head_end - 1].end; }
  size_t end(const Place& p) const { return tokens_[p.end - 1].end; }

  // The indentation of a statement; a directive before it stands at the margin.
  std::string indentation(const Place& p) const {
    size_t k = p.first;
    if (tokens_[k].text == "#") {
      while (tokens_[k].text != "\n") ++k;
      ++k;
    }
    return indent_of(text_, tokens_[k].begin);
  }

  // The statement's own words in CUDA.
  std::string words(const Stmt& stmt, const Scope& scope, const Lambda* lambda) {
    std::string problem;
    std::optional<std::string> out = print_cuda(stmt, scope, lambda, problem);
    if (out) return *out;
    good_ = false;
    diagnostics_.error("lower.unspellable", stmt.span, problem + ", in '" + print_head(stmt) + "'");
    return {};
  }

  void warn_of_comment(const Place& p, const char* what) {
    const Range r = comment_beside(text_, begin(p), head_end(p));
    if (r.end > r.begin)
      diagnostics_
          .warning("lower.stale_comment", Span{source_, uint32_t(r.begin), uint32_t(r.end)},
                   std::string("the comment stands beside a statement that was ") + what)
          .hint = "read it beside kernel.patch; it is the expert's, and nothing rewrites it";
  }

  // ---- a statement of the reference

  // Constants of the same names: the comment beside them says what they are, whatever their values.
  static bool only_values_differ(const Stmt& now, const Stmt& was) {
    if (now.op != was.op || (now.op != Op::param && now.op != Op::toggle)) return false;
    const auto &a = now.names(), &b = was.names();
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const tl::Item& x, const tl::Item& y) { return x.name == y.name; });
  }

  // The reference's text of a statement's own words with only the differing tokens replaced.
  std::string patched(const std::string& head, const Place& p) {
    const std::vector<Token> now = lex(head, Spelling::cuda);
    const size_t old_count = p.head_end - p.first;
    const auto old = [&](size_t k) -> const Token& { return tokens_[p.first + k]; };
    size_t front = 0, back = 0;
    const size_t shorter = std::min(now.size(), old_count);
    while (front < shorter && now[front].text == old(front).text) ++front;
    if (front == now.size() && front == old_count)
      return text_.substr(begin(p), head_end(p) - begin(p));
    while (back < shorter - front &&
           now[now.size() - 1 - back].text == old(old_count - 1 - back).text)
      ++back;
    const size_t now_kept = now.size() - back, kept = old_count - back;
    std::string out;
    if (front > 0) out = text_.substr(begin(p), old(front - 1).end - begin(p));
    const size_t from = front > 0 ? now[front - 1].end : 0;
    if (now_kept > front) out += head.substr(from, now[now_kept - 1].end - from);
    if (back == 0) return out;
    return out + gap(head, now, now_kept, p, kept) +
           text_.substr(old(kept).begin, head_end(p) - old(kept).begin);
  }

  // The white space before the first token that is kept behind a change: the expert's if it breaks
  // the line or holds a comment, else the printer's.
  std::string gap(const std::string& head, const std::vector<Token>& now, size_t now_kept,
                  const Place& p, size_t kept) const {
    const Token& next = tokens_[p.first + kept];
    if (now_kept > 0 && now[now_kept - 1].text == "\n") return "\n" + indent_of(text_, begin(p));
    if (now_kept == 0) {
      // A directive went away; where it stood at the margin, the statement has its indentation.
      const size_t line = line_begin(text_, begin(p));
      return line == begin(p) ? indent_of(text_, next.begin) : "";
    }
    const size_t end = tokens_[p.first + kept - 1].end;
    const std::string was = text_.substr(end, next.begin - end);
    if (was.find_first_not_of(" \t") != std::string::npos) return was;
    return head.substr(now[now_kept - 1].end, now[now_kept].begin - now[now_kept - 1].end);
  }

  // From the statement's first byte to its last.
  std::string changed(const Stmt& now, const Stmt& was, const Place& p, Scope& scope) {
    std::string head = words(now, scope, p.lambda ? &*p.lambda : nullptr);
    if (!p.braced && head.ends_with(" {")) head.resize(head.size() - 2);
    std::string out = patched(head, p);
    const bool differs = out != text_.substr(begin(p), head_end(p) - begin(p));
    if (differs && !only_values_differ(now, was)) warn_of_comment(p, "changed");
    if (row(now.op).holds == Block::none) return out;
    Scope inner(&scope);
    declare_inside(inner, now);
    if (!p.braced) return out + unbraced(now, was, p, inner);
    const std::string indent = p.body.empty() ? indentation(p) + "    " : indentation(p.body[0]);
    const size_t outer = at_;
    out += block(now.body, was.body, p.body, head_end(p), indent, inner);
    out += text_.substr(at_, end(p) - at_);
    at_ = outer;
    return out;
  }

  // A block that is one statement without braces in the reference.
  std::string unbraced(const Stmt& now, const Stmt& was, const Place& p, Scope& inner) {
    const std::vector<Pair> pairs = align(was.body, now.body);
    if (pairs.size() == 1 && pairs[0].from && pairs[0].to) {
      const size_t from = head_end(p), to = begin(p.body[0]);
      return text_.substr(from, to - from) + changed(now.body[0], was.body[0], p.body[0], inner);
    }
    const std::string indent = indentation(p), deeper = indent + "    ";
    std::string out = " {\n";
    for (const Pair& pair : pairs) {
      if (!pair.to) continue;
      out += deeper +
             (pair.from ? changed(*pair.to, *pair.from, p.body[0], inner)
                        : fresh(*pair.to, deeper, inner)) +
             "\n";
      declare(inner, *pair.to);
    }
    return out + indent + "}";
  }

  // ---- a block of the reference

  // The block's text from byte `from` to at_, behind the last statement of the reference.
  std::string block(const std::vector<Stmt>& now, const std::vector<Stmt>& was,
                    const std::vector<Place>& places, size_t from, const std::string& indent,
                    Scope& scope) {
    std::string out;
    at_ = from;
    for (const Pair& pair : align(was, now)) {
      if (pair.from && pair.to) {
        const Place& p = places[pair.from - was.data()];
        out += text_.substr(at_, begin(p) - at_);
        at_ = begin(p);
        out += changed(*pair.to, *pair.from, p, scope);
        at_ = end(p);
      } else if (pair.from) {
        out += removed(places[pair.from - was.data()]);
      } else {
        out += inserted(*pair.to, indent, scope);
      }
      if (pair.to) declare(scope, *pair.to);
    }
    return out;
  }

  // What stands before the statement; it goes with its line if it has it for itself.
  std::string removed(const Place& p) {
    // A comment behind it goes with it, one above it stays.
    if (comment_beside(text_, begin(p), head_end(p)).begin < begin(p))
      warn_of_comment(p, "removed");
    const size_t line = line_begin(text_, begin(p));
    std::string out;
    if (begins_line(text_, begin(p)) && ends_line(text_, end(p)) && at_ <= line) {
      out = text_.substr(at_, line - at_);
      at_ = std::min(line_end(text_, end(p)) + 1, text_.size());
    } else {
      out = text_.substr(at_, begin(p) - at_);
      at_ = end(p);
    }
    return out;
  }

  std::string inserted(const Stmt& stmt, const std::string& indent, Scope& scope) {
    const std::string text = fresh(stmt, indent, scope), line = indented(text, indent);
    const bool apart = row(stmt.op).where == Block::top && row(stmt.op).holds != Block::none;
    if (at_ == 0 || text_[at_ - 1] == '\n') return line + (apart ? "\n\n" : "\n");
    if (!ends_line(text_, at_))
      return text.starts_with('#') ? "\n" + text + "\n" + indent : " " + text;
    const size_t newline = line_end(text_, at_);
    const std::string rest = text_.substr(at_, newline - at_);
    at_ = newline;
    return rest + (apart ? "\n\n" : "\n") + line;
  }

  // ---- a new statement

  // Directives stand at the left margin.
  static std::string indented(const std::string& text, const std::string& indent) {
    return text.starts_with('#') ? text : indent + text;
  }

  std::string fresh(const Stmt& stmt, const std::string& indent, const Scope& scope) {
    std::string head = words(stmt, scope, nullptr);
    const size_t newline = head.find('\n');
    if (newline != std::string::npos) head.insert(newline + 1, indent);
    const Row& r = row(stmt.op);
    if (r.holds == Block::none) return head;
    Scope inner(&scope);
    declare_inside(inner, stmt);
    if (r.optional_braces && stmt.body.size() == 1 && row(stmt.body[0].op).holds == Block::none)
      return head.substr(0, head.size() - 2) + " " + fresh(stmt.body[0], indent, inner);
    const std::string deeper = indent + "    ";
    std::string out = head + "\n";
    for (const Stmt& s : stmt.body) {
      out += indented(fresh(s, deeper, inner), deeper) + "\n";
      declare(inner, s);
    }
    out += indent;
    for (const std::string& word : r.after) out += word;
    return out;
  }

  SourcePtr source_;
  const std::string& text_;
  const std::vector<Token>& tokens_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;  // how far the reference is copied
  bool good_ = true;
};

// In a text whose every line ends with a carriage return, the new ones do, too.
std::string with_ends_of(const std::string& reference, const std::string& text) {
  const auto returns = [](const Lines& lines) {
    return std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
      return !line.ends_with('\n') || line.ends_with("\r\n");
    });
  };
  const Lines lines = split_lines(text);
  if (reference.find("\r\n") == std::string::npos || !returns(split_lines(reference))) return text;
  std::string out;
  for (std::string_view line : lines) {
    const bool ours = line.ends_with('\n') && !line.ends_with("\r\n");
    out += line.substr(0, line.size() - ours);
    if (ours) out += "\r\n";
  }
  return out;
}

// The law PutGet, on this very result.
bool gives_back(const Program& program, const Program& lifted, Diagnostics& diagnostics) {
  if (equal(lifted, program)) return true;
  diagnostics.error(
      "lower.put_get", {},
      "lifting the lowered text gives another program:\n" + print_diff(program, lifted));
  return false;
}

}  // namespace

std::optional<Lowered> lower(const Program& program, const SourcePtr& reference,
                             const lift::Toolchain& toolchain, Diagnostics& diagnostics) {
  const std::optional<lift::Lifted> lifted =
      lift::lift_with_places(reference, toolchain, diagnostics);
  if (!lifted) return std::nullopt;
  std::optional<std::string> text = Lowering(*lifted, diagnostics).run(program, *lifted);
  if (!text) return std::nullopt;
  *text = with_ends_of(reference->text, *text);
  std::optional<Program> back = lifted->program;
  if (*text != reference->text) {
    const SourcePtr lowered = make_source(reference->name + " (lowered)", *text);
    back = lift::lift(lowered, toolchain, diagnostics);
  }
  if (!back || !gives_back(program, *back, diagnostics)) return std::nullopt;
  Lowered out{std::move(*text), {}, 0, std::move(*back)};
  out.changes = line_changes(reference->name, reference->text, out.text);
  for (char c : out.text) out.lines += c == '\n';
  return out;
}

std::optional<Lowered> lower_alone(const Program& program, const lift::Toolchain& toolchain,
                                   Diagnostics& diagnostics) {
  std::optional<std::string> text = print_cuda(program, diagnostics);
  if (!text) return std::nullopt;
  const std::string name = program.source ? program.source->name : "program";
  std::optional<Program> back =
      lift::lift(make_source(name + " (printed)", *text), toolchain, diagnostics);
  if (!back || !gives_back(program, *back, diagnostics)) return std::nullopt;
  Lowered out{std::move(*text), {}, 0, std::move(*back)};
  for (char c : out.text) out.lines += c == '\n';
  return out;
}

}  // namespace kw::lower
