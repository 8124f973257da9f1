// Reads expressions, in either spelling, from a row of tokens.
//
// TL text is read by its form alone. CUDA text needs the names (`args.N` and a local `N` are two
// things), so it is read in a Scope. The first failure sticks: `at` stays where it happened and
// `expected` says what should have stood there; the caller tries the next statement of the table.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tl/program.h"
#include "tl/scope/scope.h"
#include "tl/syntax/lexer.h"

namespace kw::tl {

// The parameters of a map's lambda, which TL does not name.
struct Lambda {
  std::string element;
  std::vector<std::pair<std::string, std::string>> vectors;  // row vector, its parameter
};

class Reader {
 public:
  Reader(const std::vector<Token>& tokens, size_t at, Spelling spelling, SourcePtr source,
         const Scope* scope)
      : spelling(spelling), at(at), names(scope), tokens_(tokens), source_(std::move(source)) {}

  const Spelling spelling;
  size_t at;                 // the next token
  std::string expected;      // why reading failed; empty while it has not
  bool whole = false;        // it failed of the statement as a whole, not of the token at hand
  bool inside_args = false;  // CUDA: arguments are bare names among themselves
  Scope names;               // the scope, and what the statement itself declared so far
  // Of the statement that was read last from CUDA text: the lambda of a map, and whether the block
  // of an `if` or `for` is in braces.
  std::optional<Lambda> lambda;
  bool braced = true;

  bool failed() const { return !expected.empty(); }
  bool fail(std::string what);  // false

  bool cuda() const { return spelling == Spelling::cuda; }
  // The text of a coming token; empty past the end.
  const std::string& peek(size_t ahead = 0) const;
  bool take(std::string_view text);    // if it comes next
  bool expect(std::string_view text);  // fails otherwise
  std::string identifier();            // empty on failure
  ExprPtr number();                    // decimal integer

  // An expression that binds at least as tightly as `low`; null on failure.
  ExprPtr expr(int low);
  // A name, with the indices that follow it if `indices`.
  ExprPtr operand(bool indices);
  std::vector<ExprPtr> list(std::string_view close);  // up to the closing token, which is taken

  Span span(size_t first_token) const;  // from it to the last token read
  const std::vector<Token>& tokens() const { return tokens_; }

  // In a CUDA map body: what a parameter of the lambda stands for.
  struct Parameter {
    std::string name;
    ExprPtr means;
  };
  std::vector<Parameter> parameters;

 private:
  ExprPtr operators(int low);
  ExprPtr unary();
  ExprPtr signed_or_postfix();
  ExprPtr primary();
  ExprPtr postfix(ExprPtr e, size_t first);
  ExprPtr tl_name();
  ExprPtr cuda_name();
  ExprPtr member(std::string_view of);
  ExprPtr vocabulary();
  ExprPtr call_of(std::string fn);
  std::string operator_here() const;
  ExprPtr combine(const std::string& op, ExprPtr a, ExprPtr b) const;
  ExprPtr placed(ExprPtr e, size_t first) const;

  const std::vector<Token>& tokens_;
  SourcePtr source_;
  int depth_ = 0;  // of parentheses and operators being read
};

bool is_argument(const Symbol& s);
bool is_shared(const Symbol& s);

}  // namespace kw::tl
