// A file is lines: the statements' own words, cut where a person would cut them, each with the
// comment that belongs to it. Lines are collected first and laid out afterwards, since comments
// stand in one column and blank lines between parts.
#include "lower/print_module.h"

#include <memory>

#include "lower/module_comments.h"
#include "tl/scope/scope.h"
#include "tl/syntax/statements.h"
#include "tl/traits.h"

namespace kw::lower {
namespace {
using namespace tl;

constexpr size_t kCommentColumn = 65;  // where there is room
constexpr size_t kOneLine = 120;       // a block of one statement stands behind its head up to here

// What stands together in a block; between two parts there is an empty line.
enum class Part { names, steps, loops, rest };

Part part_of(const Stmt& s) {
  switch (traits(s.op).family) {
    case Family::registers:
    case Family::value:
      return s.op == Op::count ? Part::rest : Part::names;
    case Family::role:
      return s.op == Op::cluster                               ? Part::names
             : s.op == Op::warpgroup || s.op == Op::warpgroups ? Part::loops
                                                               : Part::rest;
    case Family::branch:
      return s.op == Op::step ? Part::steps : Part::rest;
    case Family::tiles:
      return is_loop(s.op) ? Part::loops : Part::rest;
    case Family::loop:
      return s.op == Op::range ? Part::rest : Part::loops;  // a range is part of a calculation
    case Family::rows:
      return s.op == Op::each_row ? Part::loops : Part::rest;
    case Family::module:
    case Family::constant:
    case Family::section:
    case Family::tensor:
    case Family::argument:
    case Family::memory:
    case Family::barrier:
    case Family::function:
    case Family::kernel:
    case Family::pass:
    case Family::plan:
    case Family::sync:
    case Family::copy_in:
    case Family::copy_out:
    case Family::move:
    case Family::result:
    case Family::contract:
    case Family::map:
    case Family::gather:
    case Family::reduce:
      return Part::rest;
  }
  return Part::rest;
}

// The blocks that a kernel is made of, in contrast to those of a calculation.
bool has_parts(Op op) {
  return is(op, Family::kernel) || op == Op::warpgroups || (is(op, Family::tiles) && is_loop(op));
}

class Module {
 public:
  explicit Module(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  std::optional<std::string> run(const Program& program) {
    Scope module;
    comments_ = std::make_unique<Comments>(program);
    const Stmt* before = nullptr;
    for (const Stmt& s : program.body) {
      if (before && apart(*before, s)) line("", "");
      statement(s, "", module);
      declare(module, s);
      before = &s;
    }
    return good_ ? std::optional(comments_->opening() + text_) : std::nullopt;
  }

 private:
  // An argument, a tile, a record: statements of one kind stand together at the top of the file.
  static bool apart(const Stmt& a, const Stmt& b) {
    const bool block = row(a.op).holds != Block::none || row(b.op).holds != Block::none;
    const auto constant = [](Op op) { return op == Op::element || is(op, Family::constant); };
    return block || !(a.op == b.op || (constant(a.op) && constant(b.op)));
  }

  std::optional<std::string> words(const Stmt& stmt, const Scope& scope) {
    std::string problem;
    std::optional<std::string> out = print_cuda(stmt, scope, nullptr, problem);
    if (out) return out;
    good_ = false;
    diagnostics_.error("lower.unspellable", stmt.span, problem + ", in '" + print_head(stmt) + "'");
    return out;
  }

  void line(const std::string& text, const std::string& comment) {
    text_ += text;
    if (!comment.empty()) {
      text_ += std::string(std::max(kCommentColumn, text.size() + 1) - text.size(), ' ');
      text_ += "// " + comment;
    }
    text_ += '\n';
  }

  void statement(const Stmt& s, const std::string& indent, const Scope& scope) {
    const std::optional<std::string> head = words(s, scope);
    if (!head) return;
    const std::string comment = comments_->beside(s);
    if (row(s.op).holds == Block::none) return line(indent + *head, comment);
    Scope inner(&scope);
    declare_inside(inner, s);
    const std::string deeper = indent + "    ";
    if (row(s.op).optional_braces && s.body.size() == 1 &&
        one_line(*head, s, indent, inner, comment))
      return;
    opened(*head, indent, deeper, comment);
    block(s, deeper, inner);
    std::string close = indent;
    for (const std::string& word : row(s.op).after) close += word;
    line(close, "");
  }

  // `if (raised) kw::map(...);` where both fit.
  bool one_line(const std::string& head, const Stmt& s, const std::string& indent,
                const Scope& inner, const std::string& comment) {
    if (row(s.body[0].op).holds != Block::none) return false;
    const std::optional<std::string> body = words(s.body[0], inner);
    if (!body) return true;
    const size_t newline = head.find('\n');
    const std::string own = newline == std::string::npos ? head : head.substr(newline + 1);
    const std::string text = own.substr(0, own.size() - 1) + *body;
    if (indent.size() + text.size() > kOneLine) return false;
    if (newline != std::string::npos) line(head.substr(0, newline), "");
    line(indent + text, comment);
    return true;
  }

  // A head with statements of its own behind the brace (a kernel's shared memory, a warpgroup's
  // registers) has a line for each of them; a directive stands at the margin.
  void opened(const std::string& head, const std::string& indent, const std::string& deeper,
              const std::string& comment) {
    size_t at = head.find('\n') + 1;  // 0 without one
    if (at > 0) line(head.substr(0, at - 1), "");
    const size_t brace = head.find("{ ", at);
    if (brace == std::string::npos) return line(indent + head.substr(at), comment);
    line(indent + head.substr(at, brace + 1 - at), comment);
    join_else(indent);
    for (at = brace + 2; at < head.size();) {
      const size_t end = head.find(';', at) + 1;
      line(deeper + head.substr(at, end - at), "");
      at = end + 1;
    }
  }

  // `} else {` stands in one line.
  void join_else(const std::string& indent) {
    const std::string apart = "}\n" + indent + "else {\n";
    if (!text_.ends_with(apart)) return;
    text_.resize(text_.size() - apart.size());
    text_ += "} else {\n";
  }

  void block(const Stmt& s, const std::string& indent, Scope& scope) {
    threads_ += s.op == Op::thread;
    const bool parts = has_parts(s.op) && threads_ == 0;
    std::optional<Part> before;
    for (const Stmt& inner : s.body) {
      Part part = part_of(inner);
      // What is declared later on belongs to what it is declared for.
      if (part == Part::names && before && *before != Part::names) part = Part::rest;
      if (parts && before && *before != part) line("", "");
      statement(inner, indent, scope);
      declare(scope, inner);
      before = part;
    }
    threads_ -= s.op == Op::thread;
  }

  Diagnostics& diagnostics_;
  std::unique_ptr<Comments> comments_;
  std::string text_;
  int threads_ = 0;  // blocks of single threads around the statement
  bool good_ = true;
};

}  // namespace

std::optional<std::string> print_cuda(const Program& program, Diagnostics& diagnostics) {
  return Module(diagnostics).run(program);
}

}  // namespace kw::lower
