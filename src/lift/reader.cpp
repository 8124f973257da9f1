// Statements from tokens, by the table: the first row that fits is the statement. A row that is
// more special (warpgroup, thread) stands before the one that would also fit (if).
#include "lift/lift.h"
#include "tl/syntax/statements.h"
#include "tl/syntax/table.h"

namespace kw::lift {
namespace {
using namespace tl;

class StatementReader {
 public:
  StatementReader(const SourcePtr& source, const std::vector<Token>& tokens,
                  Diagnostics& diagnostics)
      : source_(source), tokens_(tokens), diagnostics_(diagnostics) {}

  // Statements until the closing token (or the end of the text); false once one was refused.
  bool block(Block where, const std::vector<std::string>& after, Scope& scope,
             std::vector<Stmt>& body, std::vector<Place>& places) {
    const std::string close = after.empty() ? "" : after[0];
    while (at_ < tokens_.size() && tokens_[at_].text != close)
      if (!statement(where, scope, body, places)) return false;
    for (const std::string& text : after) {
      if (at_ >= tokens_.size() || tokens_[at_].text != text)
        return refuse(at_, "expected '" + text + "'");
      ++at_;
    }
    return true;
  }

 private:
  bool refuse(size_t at, const std::string& message) {
    const Token& t = at < tokens_.size() ? tokens_[at] : tokens_.back();
    diagnostics_.error("lift.unrecognised", Span{source_, t.begin, t.end}, message).hint =
        what_to_do();
    return false;
  }

  // By how the statement at hand begins.
  std::string what_to_do() const {
    const auto is = [&](size_t k, std::string_view text) {
      return at_ + k < tokens_.size() && tokens_[at_ + k].text == text;
    };
    const bool holds_vocabulary = is(2, "{") && is(3, "kw") && !is(5, "index");
    if (is(0, "struct") && holds_vocabulary && !is(1, "Args") && !is(1, "Shared"))
      return "call the struct of the kernel's arguments Args, and that of its shared memory Shared";
    if (is(1, "(") && is_identifier(tokens_[at_].text))
      return "call what the vocabulary has, kw::NAME of docs/tl.md, or a lambda of this kernel; "
             "code below the vocabulary would run unchecked";
    return "kernels are written in the statements of docs/tl.md, in their CUDA spelling";
  }

  bool statement(Block where, Scope& scope, std::vector<Stmt>& body, std::vector<Place>& places) {
    Place place{at_};
    std::optional<Stmt> stmt = head(where, scope, place);
    if (!stmt) return false;
    if (stmt->op == Op::include && stmt->file() != "kw/kw.cuh")
      return refuse(place.first + 2, "only \"kw/kw.cuh\" may be included");
    if (!block_of(*stmt, scope, place)) return false;
    declare(scope, *stmt);
    place.end = at_;
    body.push_back(std::move(*stmt));
    places.push_back(std::move(place));
    return true;
  }

  // The statement's own words; where none fits, says what the row that came furthest expected.
  std::optional<Stmt> head(Block where, const Scope& scope, Place& place) {
    size_t furthest = at_, place_of_fault = at_;
    std::string expected = "no statement begins like this";
    for (const Row& row : table()) {
      if (row.where != where || row.cuda.empty()) continue;
      const Part& first = row.cuda.parts[0];
      if (!first.hole() && first.text != tokens_[at_].text) continue;
      Reader reader(tokens_, at_, Spelling::cuda, source_, &scope);
      std::optional<Stmt> stmt = read_statement(row, reader);
      if (stmt) {
        at_ = place.head_end = reader.at;
        place.braced = reader.braced;
        place.lambda = std::move(reader.lambda);
        return stmt;
      }
      if (reader.at > furthest) {
        furthest = reader.at;
        place_of_fault = reader.whole ? at_ : reader.at;
        expected = reader.expected;
      }
    }
    refuse(place_of_fault, expected);
    return std::nullopt;
  }

  bool block_of(Stmt& stmt, Scope& scope, Place& place) {
    const Row& r = row(stmt.op);
    if (r.holds == Block::none) return true;
    Scope inner(&scope);
    declare_inside(inner, stmt);
    if (!place.braced) return single(r, inner, stmt, place);
    if (!block(r.holds, r.after, inner, stmt.body, place.body)) return false;
    return !stmt.body.empty() || stmt.op == Op::shared ||  // which lines do without
           refuse(place.first, "the block is empty");
  }

  // The one statement of a block without braces.
  bool single(const Row& r, Scope& inner, Stmt& stmt, Place& place) {
    if (at_ >= tokens_.size()) return refuse(at_, "the text ends before the statement");
    if (!statement(r.holds, inner, stmt.body, place.body)) return false;
    const Op op = stmt.body[0].op;
    // An `else` after it would belong to the inner `if`.
    return (op != Op::warpgroup && op != Op::warpgroups) ||
           refuse(place.body[0].first, "a warpgroup stands in braces");
  }

  SourcePtr source_;
  const std::vector<Token>& tokens_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
};

// The first statement that its TL text does not give back, or null: a field called T, say, is TL's
// sign of a transposition.
const Stmt* first_difference(const std::vector<Stmt>& was, const std::vector<Stmt>& read) {
  for (size_t k = 0; k < was.size(); ++k) {
    if (k >= read.size() || !equal_heads(was[k], read[k])) return &was[k];
    if (const Stmt* inside = first_difference(was[k].body, read[k].body)) return inside;
  }
  return nullptr;
}

bool reads_back(const Program& program, Diagnostics& diagnostics) {
  Diagnostics of_text;
  const std::optional<Program> read = parse(make_source("<lifted>", print(program)), of_text);
  if (!read) {
    diagnostics
        .error("lift.unrecognised", {},
               "the TL text of this kernel cannot be read:\n" + render(of_text))
        .hint = "a name that is a word of TL needs another one";
    return false;
  }
  const Stmt* s = first_difference(program.body, read->body);
  if (!s) return true;
  diagnostics
      .error("lift.unrecognised", s->span,
             "its TL text, '" + print_head(*s) + "', reads as another statement")
      .hint = "a name that is a word of TL needs another one";
  return false;
}

}  // namespace

std::optional<Lifted> read_statements(const SourcePtr& cuda, std::vector<Token> tokens,
                                      Diagnostics& diagnostics) {
  Lifted out{{{}, cuda}, std::move(tokens), {}};
  Scope module;
  StatementReader reader(cuda, out.tokens, diagnostics);
  if (!reader.block(Block::top, {}, module, out.program.body, out.places)) return std::nullopt;
  if (!reads_back(out.program, diagnostics)) return std::nullopt;
  return out;
}

std::optional<Lifted> lift_with_places(const SourcePtr& cuda, const Toolchain& toolchain,
                                       Diagnostics& diagnostics) {
  std::optional<std::vector<Token>> tokens = cuda_tokens(cuda, toolchain, diagnostics);
  if (!tokens) return std::nullopt;
  return read_statements(cuda, std::move(*tokens), diagnostics);
}

std::optional<tl::Program> lift(const SourcePtr& cuda, const Toolchain& toolchain,
                                Diagnostics& diagnostics) {
  std::optional<Lifted> lifted = lift_with_places(cuda, toolchain, diagnostics);
  if (!lifted) return std::nullopt;
  return std::move(lifted->program);
}

}  // namespace kw::lift
