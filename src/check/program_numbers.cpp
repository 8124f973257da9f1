#include "check/program_numbers.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "tl/scope/scope.h"

namespace kw::check {
namespace {

// a + b - 3 -> -3, and whether there is more.
struct Sum {
  int64_t constant = 0;
  bool varies = false, of_tiles = false;
};

bool names_a_parameter(const tl::ExprPtr& e, const tl::Scope& scope) {
  if (e->kind == tl::ExprKind::name) {
    const tl::Symbol* s = scope.find(e->text);
    return s && s->category == tl::Category::param;
  }
  for (const tl::ExprPtr& a : e->args)
    if (names_a_parameter(a, scope)) return true;
  return false;
}

bool is_binary(const tl::Expr& e, const char* op) {
  return e.kind == tl::ExprKind::binary && e.text == op;
}

class Collector {
 public:
  explicit Collector(const tl::Program& program) {
    tl::walk_scoped(program, [&](const tl::Stmt& s, const tl::Scope& scope) {
      if (s.op == tl::Op::param)
        tl::each_expr(s, scope,
                      [&](const tl::ExprPtr& e, const tl::Scope& at) { parameter(s, e, at); });
    });
    tl::walk_scoped(program, [&](const tl::Stmt& s, const tl::Scope& scope) {
      tl::each_expr(s, scope, [&](const tl::ExprPtr& e, const tl::Scope& at) { read(s, e, at); });
    });
    for (const tl::Stmt& s : program.body)
      if (s.op == tl::Op::def)
        tl::walk(s.body, [&](const tl::Stmt& inside) {
          for (const auto& [name, value] : parameters_)
            if (value > 4 && !out_.tiles.contains(value) && reads(inside, name))
              out_.counts.insert(value);
        });
    std::set<int64_t> edges = out_.tiles;
    for (const char* of : {"BM", "BN", "BK"})
      if (const auto value = parameters_.find(of); value != parameters_.end())
        if (value->second <= 2 * kCovered) edges.insert(value->second);
    Turns turns = turns_of(program, edges);
    out_.turns = std::move(turns.of_sizes);
    for (const int64_t value : turns.of_others) {
      out_.bounds.insert(value);
      if (value >= kCovered) out_.numbers.insert(value);
    }
  }
  ProgramNumbers take() { return std::move(out_); }

 private:
  std::optional<int64_t> constant(const tl::ExprPtr& e, const tl::Scope& scope) {
    const tl::Interval range = tl::interval_of(e, scope);
    if (range.lo == range.hi) return range.lo;
    return integers_.constant(e, scope);
  }

  void add_up(const tl::ExprPtr& e, int sign, const tl::Scope& scope, Sum& sum) {
    if (const auto value = constant(e, scope)) {
      sum.constant += sign * *value;
    } else if (is_binary(*e, "+") || is_binary(*e, "-")) {
      add_up(e->args[0], sign, scope, sum);
      add_up(e->args[1], e->text == "+" ? sign : -sign, scope, sum);
    } else {
      sum.varies = true;
      if (is_binary(*e, "*"))
        for (const tl::ExprPtr& factor : e->args)
          if (const auto value = constant(factor, scope))
            sum.of_tiles |= out_.tiles.count(*value) > 0;
    }
  }

  // But how many bits a shift is by: what it comes to is the number.
  template <typename Take>
  static void literals(const tl::ExprPtr& e, const Take& take) {
    const bool shifts = is_binary(*e, "<<") || is_binary(*e, ">>");
    for (const tl::ExprPtr& a : e->args)
      if (!shifts || a != e->args[1] || a->kind != tl::ExprKind::integer) literals(a, take);
    if (e->kind == tl::ExprKind::integer && e->text.size() < 12) take(std::stoll(e->text));
  }

  static bool reads(const tl::Stmt& s, const std::string& name) {
    for (const tl::Field& field : s.fields)
      for (const tl::Item& item : field.items)
        if (tl::mentions(item.expr, name)) return true;
    return false;
  }

  void parameter(const tl::Stmt& s, const tl::ExprPtr& e, const tl::Scope& scope) {
    for (const tl::Item& item : s.names()) {
      if (item.expr != e) continue;
      if (const auto value = constant(e, scope)) parameters_[item.name] = *value;
      if (item.name != "BM" && item.name != "BN" && item.name != "BK") continue;
      std::set<int64_t>& to = item.name == "BK" ? out_.steps : out_.tiles;
      if (!names_a_parameter(e, scope) && parameters_.count(item.name))
        to.insert(parameters_.at(item.name));
      else
        literals(e, [&](int64_t value) { to.insert(value); });
    }
  }

  // a // 64 // 64   ->   4096: 1 where e is no quotient.
  int64_t divisor_of(const tl::ExprPtr& e, const tl::Scope& scope) {
    if (!is_binary(*e, "//") && !is_binary(*e, ">>")) return 1;
    const int64_t own = divided_by(*e, scope).value_or(0);
    const int64_t inner = divisor_of(e->args[0], scope);
    return own > 0 && inner <= kFarthest / own ? own * inner : kFarthest + 1;
  }

  // What a quotient or remainder divides by: `x >> 8` and `x & 255` by 256.
  std::optional<int64_t> divided_by(const tl::Expr& e, const tl::Scope& scope) {
    if (is_binary(e, "//") || is_binary(e, "%") ||
        (e.kind == tl::ExprKind::call && e.text == "ceil_div"))
      return constant(e.args[1], scope);
    if (is_binary(e, ">>"))
      if (const auto count = constant(e.args[1], scope); count && *count >= 0 && *count <= 40)
        return int64_t{1} << *count;
    if (is_binary(e, "&"))
      for (const tl::ExprPtr& side : e.args)
        if (const auto mask = constant(side, scope); mask && *mask >= 0 && *mask < kFarthest)
          return *mask + 1;
    return std::nullopt;
  }

  void bound(int64_t value, bool of_tiles) {
    value = std::abs(value);
    if (of_tiles)  // the edge of a tile
      for (const int64_t tile : out_.tiles)
        if (std::abs(value - tile) <= 1) return;
    if (value > 4 && value <= kFarthest) out_.bounds.insert(value);
  }

  Sum sum_of(const tl::ExprPtr& e, const tl::Scope& scope) {
    Sum sum;
    add_up(e, 1, scope, sum);
    return sum;
  }

  // What two integers differ by, one of them no number.
  void compare(const tl::ExprPtr& a, const tl::ExprPtr& b, const tl::Scope& scope) {
    const Sum x = sum_of(a, scope), y = sum_of(b, scope);
    if (x.varies || y.varies) bound(x.constant - y.constant, x.of_tiles || y.of_tiles);
  }

  void bounds_of(const tl::Expr& e, const tl::Scope& scope) {
    static const std::set<std::string> compared = {"<", "<=", ">", ">=", "==", "!="};
    const bool bounded = e.kind == tl::ExprKind::call && (e.text == "min" || e.text == "max");
    if ((bounded || (e.kind == tl::ExprKind::binary && compared.count(e.text))) &&
        e.args.size() == 2)
      compare(e.args[0], e.args[1], scope);
    const auto by = divided_by(e, scope);
    const bool fixed = std::all_of(e.args.begin(), e.args.end(), [&](const tl::ExprPtr& a) {
      return constant(a, scope).has_value();
    });
    if (by && !fixed) {
      bound(*by, true);
      // Shifts and masks are numbers by another spelling.
      if ((e.text == ">>" || e.text == "&") && *by <= kFarthest) out_.numbers.insert(*by);
    }
  }

  // `1 << 14` is 16384, and `8 * limit` what it comes to.
  void folded(const tl::ExprPtr& e, const tl::Scope& scope) {
    if (e->args.empty() || names_a_parameter(e, scope)) return;
    if (const auto value = constant(e, scope))
      if (std::abs(*value) <= kFarthest) out_.numbers.insert(*value);
  }

  void read(const tl::Stmt& s, const tl::ExprPtr& e, const tl::Scope& scope) {
    tl::rewrite(e, [&](const tl::ExprPtr& part) {
      const int64_t by = divisor_of(part, scope);
      if (by >= kCovered && by <= kFarthest) out_.numbers.insert(by);
      if (s.op != tl::Op::param) bounds_of(*part, scope), folded(part, scope);
      return tl::ExprPtr();
    });
    if (s.op != tl::Op::param) literals(e, [&](int64_t value) { out_.numbers.insert(value); });
    if (s.op == tl::Op::arg_size)
      tl::rewrite(e, [&](const tl::ExprPtr& part) {
        if (part->kind == tl::ExprKind::binary && part->text == "*" &&
            part->args[1]->kind == tl::ExprKind::integer && part->args[1]->text.size() < 6)
          if (const int64_t by = std::stoll(part->args[1]->text); by > 4) out_.counts.insert(by);
        return tl::ExprPtr();
      });
  }

  Integers integers_;
  std::map<std::string, int64_t> parameters_;
  ProgramNumbers out_;
};

}  // namespace

ProgramNumbers numbers_of(const tl::Program& program) { return Collector(program).take(); }

}  // namespace kw::check
