// Precedence climbing, one level table for both spellings: C's `!` and `?:` are the only operators
// that TL binds differently. CUDA's names lose their prefix here (`args.N` is N) and the writer
// gives it back, which is how a name that means something else is noticed.
#include "tl/syntax/reader.h"

#include <algorithm>

#include "tl/scope/functions.h"
#include "tl/syntax/precedence.h"

namespace kw::tl {
namespace {

// TL's operator behind a function of the vocabulary that stands for one.
std::string operator_named(std::string_view function) {
  if (function == "floor_div") return "//";
  if (function == "floor_mod") return "%";
  if (function == "rounded_sum") return "+";
  if (function == "rounded_difference") return "-";
  if (function == "shift_left") return "<<";
  if (function == "shift_right") return ">>";
  return {};
}

constexpr int kDeepest = 200;  // of an expression: far beyond any kernel, far below the stack

std::string in_quotes(std::string_view text) {
  if (text.empty()) return "the end";
  if (text == "\n") return "the end of the line";
  return "'" + std::string(text) + "'";
}

}  // namespace

bool is_argument(const Symbol& s) {
  switch (s.category) {
    case Category::size:
    case Category::scalar:
    case Category::tiled:
    case Category::tensor:
    case Category::workspace:
    case Category::scratch:
      return true;
    default:
      return false;
  }
}

bool is_shared(const Symbol& s) {
  return s.category == Category::tile || s.category == Category::ring ||
         s.category == Category::row_ring || s.category == Category::barrier ||
         s.category == Category::queue;
}

// ---- tokens

bool Reader::fail(std::string what) {
  if (!failed()) expected = std::move(what);
  return false;
}

const std::string& Reader::peek(size_t ahead) const {
  static const std::string none;
  return at + ahead < tokens_.size() ? tokens_[at + ahead].text : none;
}

bool Reader::take(std::string_view text) {
  if (failed() || peek() != text) return false;
  ++at;
  return true;
}

bool Reader::expect(std::string_view text) {
  return take(text) || fail("expected " + in_quotes(text) + ", found " + in_quotes(peek()));
}

std::string Reader::identifier() {
  if (failed() || !is_identifier(peek())) {
    fail("expected a name, found " + in_quotes(peek()));
    return {};
  }
  return tokens_[at++].text;
}

ExprPtr Reader::number() {
  if (failed() || !is_integer(peek())) {
    fail("expected a decimal number, found " + in_quotes(peek()));
    return nullptr;
  }
  const size_t first = at++;
  return placed(std::make_shared<const Expr>(Expr{ExprKind::integer, tokens_[first].text, {}, {}}),
                first);
}

Span Reader::span(size_t first) const {
  if (first >= tokens_.size()) return {source_, 0, 0};
  const size_t last = at > first ? at - 1 : first;
  return {source_, tokens_[first].begin, tokens_[last].end};
}

ExprPtr Reader::placed(ExprPtr e, size_t first) const {
  if (!e) return e;
  Expr copy = *e;
  copy.span = span(first);
  return std::make_shared<const Expr>(std::move(copy));
}

// ---- operators

// The TL operator that comes next, or nothing.
std::string Reader::operator_here() const {
  const std::string& t = peek();
  if (cuda()) {
    if (t == "||") return "or";
    if (t == "&&") return "and";
    if (t == "or" || t == "and" || t == "not" || t == "!") return {};
  } else if (t == "not") {
    return {};
  }
  return precedence(t) > 0 ? t : std::string();
}

// C's `/` is a real quotient or a floor, by the types.
ExprPtr Reader::combine(const std::string& op, ExprPtr a, ExprPtr b) const {
  if (cuda() && op == "/" && type_of(a, names).kind != Type::real &&
      type_of(b, names).kind != Type::real)
    return binary("//", std::move(a), std::move(b));
  return binary(op, std::move(a), std::move(b));
}

ExprPtr Reader::expr(int low) {
  const size_t first = at;
  ExprPtr e = operators(low);
  if (!e || !cuda() || low > kAny || !take("?")) return e;
  ExprPtr yes = expr(kAny);
  if (!expect(":")) return nullptr;
  ExprPtr no = expr(kAny);
  return failed() ? nullptr : placed(where(e, yes, no), first);
}

ExprPtr Reader::operators(int low) {
  const size_t first = at;
  ExprPtr e;
  if (!cuda() && low <= kNot && take("not")) {
    if (peek() == "not") fail("'not not' says nothing");
    e = operators(kNot);
    if (e) e = placed(tl::unary("not", e), first);
  } else {
    e = unary();
  }
  bool compared = false;
  int before = kAny;  // how tightly the last operator bound
  int joined = 0;     // a + b + c ... is as deep a tree as parentheses make
  while (e && !failed()) {
    const std::string op = operator_here();
    const int p = op.empty() ? 0 : precedence(op);
    if (p == 0 || p < low) break;
    if (p == kComparison && compared) {
      fail("comparisons do not chain: join two with 'and', or write parentheses");
      return nullptr;
    }
    if (std::min(p, before) > kComparison && (p == kBits || before == kBits)) {
      fail("an operator on bits stands between two operands without operators: write parentheses");
      return nullptr;
    }
    compared = p == kComparison;
    before = p;
    if (++joined == kDeepest) {
      fail("the expression has too many operators");
      return nullptr;
    }
    ++at;
    ExprPtr right = operators(p == kBits ? kUnary : p + 1);
    e = right ? placed(combine(op, e, right), first) : nullptr;
  }
  return failed() ? nullptr : e;
}

ExprPtr Reader::unary() {
  if (depth_ == kDeepest) {
    fail("the expression is nested too deeply");
    return nullptr;
  }
  ++depth_;
  ExprPtr e = signed_or_postfix();
  --depth_;
  return e;
}

ExprPtr Reader::signed_or_postfix() {
  const size_t first = at;
  if (!cuda() && peek() == "-" && peek(1) == "inf") {
    at += 2;
    return placed(name("-inf"), first);
  }
  const bool negation = cuda() && take("!");
  if (negation || take("-")) {
    ExprPtr e = unary();
    return e ? placed(tl::unary(negation ? "not" : "-", e), first) : nullptr;
  }
  return postfix(primary(), first);
}

ExprPtr Reader::primary() {
  const size_t first = at;
  const std::string t = peek();
  if (take("(")) {
    ExprPtr e = expr(kAny);
    return e && expect(")") ? e : nullptr;
  }
  std::string_view real_text = t;
  if (cuda() && real_text.ends_with('f')) real_text.remove_suffix(1);
  if (is_real(real_text) && (!cuda() || t.ends_with('f'))) {
    if (!is_normal(real_text)) {
      fail("'" + t + "' is none of fp32's normal numbers, which are 0 and those of 1.18e-38 to " +
           "3.40e+38: write one of them, or " + (cuda() ? "kw::minus_infinity" : "-inf"));
      return nullptr;
    }
    ++at;
    return placed(
        std::make_shared<const Expr>(Expr{ExprKind::real, std::string(real_text), {}, {}}), first);
  }
  if (is_integer(t)) return number();
  if (!is_identifier(t)) {
    fail(is_real(t) ? "'" + t + "' is a double: write " + t + "f"
                    : "expected an expression, found " + in_quotes(t));
    return nullptr;
  }
  return placed(cuda() ? cuda_name() : tl_name(), first);
}

ExprPtr Reader::postfix(ExprPtr e, size_t first) {
  for (int joined = 0; e && !failed(); ++joined) {
    if (joined == kDeepest) {
      fail("the expression has too many indices");
      break;
    }
    if (take("[")) {
      std::vector<ExprPtr> indices = list("]");
      if (failed()) break;
      if (indices.empty() || (cuda() && indices.size() != 1)) {
        fail("expected one index");
        break;
      }
      e = placed(index(e, std::move(indices)), first);
    } else if (peek() == "." && peek(1) != "T") {
      ++at;
      e = placed(field(e, identifier()), first);
    } else {
      return e;
    }
  }
  return nullptr;
}

std::vector<ExprPtr> Reader::list(std::string_view close) {
  std::vector<ExprPtr> out;
  if (take(close)) return out;
  do {
    out.push_back(expr(kAny));
  } while (take(","));
  expect(close);
  return out;
}

// ---- names

ExprPtr Reader::call_of(std::string fn) {
  std::vector<ExprPtr> args = list(")");
  return failed() ? nullptr : call(std::move(fn), std::move(args));
}

ExprPtr Reader::tl_name() {
  std::string n = identifier();
  if (n == "inf" || n == "and" || n == "or" || n == "not") {
    fail("'" + n + "' is not a value");
    return nullptr;
  }
  if (!take("(")) return name(std::move(n));
  if (n != "where") return call_of(std::move(n));
  std::vector<ExprPtr> a = list(")");
  if (!failed() && a.size() != 3) fail("where() takes a condition and two values");
  return failed() ? nullptr : where(a[0], a[1], a[2]);
}

// args.X or shared.X, the prefix already taken.
ExprPtr Reader::member(std::string_view of) {
  if (!expect(".")) return nullptr;
  const std::string n = identifier();
  const Symbol* s = names.find(n);
  const bool arguments = of == "args";
  if (failed() || !s || (arguments ? inside_args || !is_argument(*s) : !is_shared(*s))) {
    fail("no '" + n + "' in " + (arguments ? "Args" : "Shared"));
    return nullptr;
  }
  if (!has_elements(*s) || !take("(")) return name(n);
  std::vector<ExprPtr> indices = list(")");
  return failed() ? nullptr : index(name(n), std::move(indices));
}

// kw::X, the prefix already taken.
ExprPtr Reader::vocabulary() {
  if (!expect("::")) return nullptr;
  const std::string n = identifier();
  if (const Constant* c = find_cuda_constant(n)) return name(std::string(c->name));
  const std::string op = operator_named(n);
  if ((op.empty() && (!find_function(n) || n == "f32")) || !take("(")) {
    fail("'kw::" + n + "' is not a scalar function of the vocabulary");
    return nullptr;
  }
  if (op.empty()) return call_of(n);
  std::vector<ExprPtr> a = list(")");
  if (!failed() && a.size() != 2) fail("kw::" + n + " takes two values");
  return failed() ? nullptr : binary(op, a[0], a[1]);
}

ExprPtr Reader::cuda_name() {
  const std::string n = identifier();
  for (const Parameter& p : parameters)
    if (p.name == n) return p.means;
  if (n == "args" || n == "shared") return member(n);
  if (n == "kw") return vocabulary();
  if (n == "true" || n == "false") return name(n);
  if (n == "float" && take("(")) return call_of("f32");
  const Symbol* s = names.find(n);
  if (s && s->category == Category::def && take("(")) {
    if (!expect("args")) return nullptr;
    if (peek() != ")" && !expect(",")) return nullptr;
    return call_of(n);
  }
  if (s && (is_shared(*s) || (is_argument(*s) && !inside_args))) s = nullptr;
  if (!s) {
    fail("unknown name '" + n + "'");
    return nullptr;
  }
  return name(n);
}

ExprPtr Reader::operand(bool indices) {
  const size_t first = at;
  ExprPtr e;
  if (cuda()) {
    e = placed(cuda_name(), first);
  } else {
    e = placed(name(identifier()), first);
  }
  while (!failed() && indices && peek() == "[") {
    ++at;
    ExprPtr i = expr(kAny);
    if (!i || !expect("]")) return nullptr;
    e = placed(index(e, {i}), first);
  }
  if (!failed() && cuda()) {
    const Expr* base = e.get();
    while (base->kind == ExprKind::index) base = base->args[0].get();
    if (base->kind != ExprKind::name) fail("expected a name");
  }
  return failed() ? nullptr : e;
}

}  // namespace kw::tl
