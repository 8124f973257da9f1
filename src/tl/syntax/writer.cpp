// In a map body an element node is a parameter of the lambda; everything else is a capture.
#include "tl/syntax/writer.h"

#include <algorithm>

#include "tl/scope/functions.h"
#include "tl/syntax/precedence.h"

namespace kw::tl {
namespace {

bool is_element(const Expr& e, const std::string& of, bool rows) {
  return e.kind == ExprKind::index && e.args[0]->is_name(of) && e.args.size() == (rows ? 2u : 3u) &&
         e.args[1]->is_name("i") && (rows || e.args[2]->is_name("j"));
}

}  // namespace

void CudaWriter::fail(std::string what) {
  if (problem.empty()) problem = std::move(what);
}

namespace {
bool is_element_of(const Expr& e, const std::string& vector, const Symbol* s) {
  const std::vector<ExprPtr> at = element_indices(s);
  return e.kind == ExprKind::index && e.args[0]->is_name(vector) && !at.empty() && is_at(e, at);
}
}  // namespace

std::vector<std::string> vectors_of(const ExprPtr& body, const std::string& target,
                                    const Scope& scope) {
  std::vector<std::string> out;
  const std::function<void(const ExprPtr&)> visit = [&](const ExprPtr& e) {
    if (e->kind == ExprKind::index && e->args[0]->kind == ExprKind::name) {
      const std::string& v = e->args[0]->text;
      if (v != target && is_element_of(*e, v, scope.find(v)) &&
          std::find(out.begin(), out.end(), v) == out.end())
        out.push_back(v);
    }
    for (const ExprPtr& a : e->args) visit(a);
  };
  visit(body);
  return out;
}

std::string CudaWriter::parameter(const Expr& e) const {
  if (!map) return {};
  if (is_element(e, map->target, map->rows)) return map->lambda.element;
  for (const auto& [vector, parameter] : map->lambda.vectors)
    if (is_element_of(e, vector, names.find(vector))) return parameter;
  return {};
}

std::string CudaWriter::name(const std::string& n) {
  if (const Constant* c = find_constant(n)) return "kw::" + std::string(c->cuda);
  if (n == "true" || n == "false") return n;
  if (map) {
    const auto& has = map->coordinates;
    if (std::find(has.begin(), has.end(), n) != has.end()) return n;
    if (n == "i" || n == "j") {
      fail("'" + n + "' is a coordinate: only map_at and map_real have them");
      return n;
    }
  }
  const Symbol* s = names.find(n);
  if (!s) {
    fail("unknown name '" + n + "'");
    return n;
  }
  if (is_argument(*s)) return inside_args ? n : "args." + n;
  if (is_shared(*s)) return "shared." + n;
  return n;
}

std::string CudaWriter::index(const Expr& e) {
  const std::string own = parameter(e);
  if (!own.empty()) return own;
  const std::vector<ExprPtr> at(e.args.begin() + 1, e.args.end());
  const ExprPtr& base = e.args[0];
  const Symbol* s = base->kind == ExprKind::name ? names.find(base->text) : nullptr;
  if (s && has_elements(*s)) return expr(base, kPrimary) + "(" + list(at) + ")";
  if (s && !is_shared(*s))
    fail("'" + base->text + "' is " + std::string(word(s->category)) +
         (map ? ", and no element of it is at hand here" : ", which has no indices here"));
  if (at.size() != 1) fail("one index is expected in '" + print(base) + "[...]'");
  return expr(base, kPrimary) + "[" + list(at) + "]";
}

std::string CudaWriter::call(const Expr& e) {
  if (e.text == "f32") return "float(" + list(e.args) + ")";
  const Symbol* s = names.find(e.text);
  if (s && s->category == Category::def)
    return e.text + "(args" + (e.args.empty() ? "" : ", ") + list(e.args) + ")";
  if (!find_function(e.text)) fail("'" + e.text + "' is not a function of the vocabulary");
  return "kw::" + e.text + "(" + list(e.args) + ")";
}

std::string CudaWriter::list(const std::vector<ExprPtr>& all) {
  std::string out;
  for (const ExprPtr& e : all) out += (out.empty() ? "" : ", ") + expr(e);
  return out;
}

std::pair<std::string, int> CudaWriter::binary(const Expr& e) {
  const ExprPtr &a = e.args[0], &b = e.args[1];
  const bool real = type_of(a, names).kind == Type::real || type_of(b, names).kind == Type::real;
  if (e.text == "/" && !real) fail("'/' divides reals, and neither side is one: write '//'");
  if ((e.text == "//" || e.text == "%") && real)
    fail("'" + e.text + "' is for integers, and a side is real");
  if ((e.text == "//" || e.text == "%") && !division_truncates_alike(a, b, names))
    return {(e.text == "//" ? "kw::floor_div(" : "kw::floor_mod(") + list({a, b}) + ")", kPrimary};
  if (comparisons_ > 0 && real && (e.text == "+" || e.text == "-"))
    return {(e.text == "+" ? "kw::rounded_sum(" : "kw::rounded_difference(") + list({a, b}) + ")",
            kPrimary};
  const int p = precedence(e.text);
  if (p == kBits && real) fail("'" + e.text + "' is for integers, and a side is real");
  if ((e.text == "<<" || e.text == ">>") && !shifts_within_an_int(b, names))
    return {(e.text == "<<" ? "kw::shift_left(" : "kw::shift_right(") + list({a, b}) + ")",
            kPrimary};
  if (p == kBits) return {expr(a, kUnary) + " " + e.text + " " + expr(b, kUnary), p};
  const std::string op = e.text == "or"    ? "||"
                         : e.text == "and" ? "&&"
                         : e.text == "//"  ? "/"
                                           : e.text;
  // The operands of || are comparisons at least, but || associates to the left without parentheses.
  const auto side = [&](const ExprPtr& x, int low) {
    const bool both = e.text == "or" && x->kind == ExprKind::binary && x->text == "and";
    return both ? "(" + expr(x) + ")" : expr(x, low);
  };
  // C's & binds looser than its ==.
  const int right = p == kComparison ? kSum : p + 1, left = p == kComparison ? kSum : p;
  comparisons_ += p == kComparison;
  const std::string first = side(a, left), second = side(b, right);
  comparisons_ -= p == kComparison;
  return {first + " " + op + " " + second, p};
}

std::pair<std::string, int> CudaWriter::spell(const Expr& e) {
  switch (e.kind) {
    case ExprKind::integer:
      return {e.text, kPrimary};
    case ExprKind::real:
      return {e.text + "f", kPrimary};
    case ExprKind::name:
      return {name(e.text), kPrimary};
    case ExprKind::index:
      return {index(e), kPrimary};
    case ExprKind::field:
      return {expr(e.args[0], kPrimary) + "." + e.text, kPrimary};
    case ExprKind::call:
      return {call(e), kPrimary};
    case ExprKind::unary: {
      const bool nested = e.text == "-" && e.args[0]->kind == ExprKind::unary;
      return {(e.text == "not" ? "!" : "-") + expr(e.args[0], nested ? kPrimary : kUnary), kUnary};
    }
    case ExprKind::where: {
      const std::string condition = expr(e.args[0], kOr), yes = expr(e.args[1], kOr);
      return {condition + " ? " + yes + " : " + expr(e.args[2]), kAny};
    }
    case ExprKind::binary:
      return binary(e);
  }
  return {};
}

std::string CudaWriter::expr(const ExprPtr& e, int low) {
  auto [text, p] = spell(*e);
  return p < low ? "(" + text + ")" : text;
}

}  // namespace kw::tl
