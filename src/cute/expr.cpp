// The precedences are the ones of TL; where C ranks an operator otherwise, parentheses say so.
#include "cute/expr.h"

#include <fmt/format.h>

#include <algorithm>

#include "tl/scope/functions.h"
#include "tl/syntax/precedence.h"

namespace kw::cute {
using namespace tl;

std::string type_name(const std::string& type) {
  if (type == "real" || type == "f32") return "float";
  if (type == "i32" || type == "index" || type == "size") return "int";
  if (type == "i64") return "int64_t";
  if (type == "bf16") return "cute::bfloat16_t";
  if (type == "f16") return "cute::half_t";
  if (type == "e4m3") return "cute::float_e4m3_t";
  return type;  // element, bool, a record
}

void ExprWriter::fail(std::string what) {
  if (problem.empty()) problem = std::move(what);
}

std::string ExprWriter::element(const Expr& e) const {
  if (!map || e.args[0]->kind != ExprKind::name) return {};
  const std::string& of = e.args[0]->text;
  const Symbol* s = scope_.find(of);
  if (!s) return {};
  if (s->category == Category::accumulator) {
    const bool own = e.args.size() == 3 && e.args[1]->is_name("i") && e.args[2]->is_name("j");
    return own && of == map->target ? of + "(vr, vc)" : "";
  }
  const std::vector<ExprPtr> at = element_indices(s);
  if (at.empty() || !is_at(e, at)) return {};
  switch (s->category) {
    case Category::row:
    case Category::lane_sum:
      return of + "(vr)";
    case Category::column:
    case Category::diagonal:
      return of + "_here";  // fetched once for the rows that have it
    case Category::operand:
      return s->element == "bool" ? "bool(" + of + "(vr, vc))" : "float(" + of + "(vr, vc))";
    default:
      return {};
  }
}

std::string ExprWriter::name(const std::string& n) {
  if (n == "-inf") return "tl::minus_infinity";
  if (n == "log2e" || n == "ln2") return "tl::" + n;
  if (n == "true" || n == "false") return n;
  if (map) {
    const auto& has = map->coordinates;
    if (std::find(has.begin(), has.end(), n) != has.end()) return n;
  }
  const Symbol* s = scope_.find(n);
  if (!s) {
    fail("unknown name '" + n + "'");
    return n;
  }
  switch (s->category) {
    case Category::size:
    case Category::scalar:
    case Category::tensor:
    case Category::tiled:
    case Category::workspace:
    case Category::scratch:
      return "args." + n;
    default:
      return n;
  }
}

std::string ExprWriter::index(const Expr& e) {
  if (const std::string own = element(e); !own.empty()) return own;
  const ExprPtr& base = e.args[0];
  const Symbol* s = base->kind == ExprKind::name ? scope_.find(base->text) : nullptr;
  if (!s || !has_elements(*s))
    fail("'" + print(base) + "[...]' is neither an element at hand nor a tensor's");
  return expr(base, kPrimary) + "(" + list({e.args.begin() + 1, e.args.end()}) + ")";
}

std::string ExprWriter::tile(const ExprPtr& e) {
  const Expr* at = e.get();
  std::vector<ExprPtr> indices;
  for (; at->kind == ExprKind::index && at->args.size() == 2; at = at->args[0].get())
    indices.insert(indices.begin(), at->args[1]);
  const Symbol* s = at->kind == ExprKind::name ? scope_.find(at->text) : nullptr;
  const bool ring = s && s->category == Category::ring;
  if (!s || (!ring && s->category != Category::tile)) {
    fail("'" + print(e) + "' is not a tile in shared memory");
    return {};
  }
  if (indices.empty()) return at->text;
  std::string out = at->text + "(_, _";
  for (size_t k = 0; k < indices.size(); ++k)
    out += ring && k + 1 == indices.size()
               ? fmt::format(", unsigned({}) % ({})", expr(indices[k]), expr(s->count))
               : ", " + expr(indices[k]);
  return out + ")";
}

std::string ExprWriter::call(const Expr& e) {
  if (e.text == "f32") return "float(" + list(e.args) + ")";
  if (e.text == "block_index") return "int(blockIdx.x)";
  const Symbol* s = scope_.find(e.text);
  if (s && s->category == Category::def)
    return e.text + "(args" + (e.args.empty() ? "" : ", ") + list(e.args) + ")";
  if (e.text == "heads_at_once" || !find_function(e.text))
    fail("'" + e.text + "' is not spelled in CuTe");
  return "tl::" + e.text + "(" + list(e.args) + ")";
}

std::string ExprWriter::list(const std::vector<ExprPtr>& all) {
  std::string out;
  for (const ExprPtr& e : all) out += (out.empty() ? "" : ", ") + expr(e);
  return out;
}

std::pair<std::string, int> ExprWriter::binary(const Expr& e) {
  const ExprPtr &a = e.args[0], &b = e.args[1];
  const std::string& op = e.text;
  if ((op == "//" || op == "%") && !division_truncates_alike(a, b, scope_))
    return {(op == "//" ? "tl::floor_div(" : "tl::floor_mod(") + list({a, b}) + ")", kPrimary};
  if ((op == "<<" || op == ">>") && !shifts_within_an_int(b, scope_))
    return {(op == "<<" ? "tl::shift_left(" : "tl::shift_right(") + list({a, b}) + ")", kPrimary};
  const bool real = type_of(a, scope_).kind == Type::real || type_of(b, scope_).kind == Type::real;
  if (comparisons_ > 0 && real && (op == "+" || op == "-"))
    return {(op == "+" ? "tl::rounded_sum(" : "tl::rounded_difference(") + list({a, b}) + ")",
            kPrimary};
  const int p = precedence(op);
  if (p == kBits)  // in parentheses: C ranks these below comparisons
    return {"(" + expr(a, kUnary) + " " + op + " " + expr(b, kUnary) + ")", kPrimary};
  const std::string c = op == "or" ? "||" : op == "and" ? "&&" : op == "//" ? "/" : op;
  const auto side = [&](const ExprPtr& x, int low) {
    const bool both = op == "or" && x->kind == ExprKind::binary && x->text == "and";
    return both ? "(" + expr(x) + ")" : expr(x, low);
  };
  const bool comparison = p == kComparison;
  comparisons_ += comparison;
  const std::string first = side(a, comparison ? kSum : p),
                    second = side(b, comparison ? kSum : p + 1);
  comparisons_ -= comparison;
  return {first + " " + c + " " + second, p};
}

std::pair<std::string, int> ExprWriter::spell(const Expr& e) {
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
      const std::string inner = expr(e.args[0], kUnary);
      const bool minus = e.text == "-";
      return {(minus ? "-" : "!") + (minus && inner.starts_with("-") ? "(" + inner + ")" : inner),
              kUnary};
    }
    case ExprKind::where:
      return {expr(e.args[0], kOr) + " ? " + expr(e.args[1], kOr) + " : " + expr(e.args[2]), kAny};
    case ExprKind::binary:
      return binary(e);
  }
  return {};
}

std::string ExprWriter::expr(const ExprPtr& e, int low) {
  auto [text, p] = spell(*e);
  return p < low ? "(" + text + ")" : text;
}

}  // namespace kw::cute
