#include "check/made_small.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "num/random.h"
#include "operator/family.h"

namespace kw::check {
namespace {

using spec::Kind;

// Where a case of 200 to 300 rows has many turns of an integer.
constexpr int64_t kLeast = 5, kMost = 23;

void numbers_outside_data(const spec::ExprPtr& e, std::set<int64_t>& all) {
  if (!e || e->kind == Kind::read) return;
  if (e->kind == Kind::number && e->type == spec::Type::integer && std::abs(e->integer) >= kPlain)
    all.insert(std::abs(e->integer));
  for (const spec::ExprPtr& part : e->args) numbers_outside_data(part, all);
}

// What a number becomes; itself where it is none of these.
class Small {
 public:
  Small(const std::vector<int64_t>& numbers, uint64_t seed) {
    const Random draw(seed, 0);
    for (size_t n = 0; n < numbers.size(); ++n) {
      const int64_t small = draw.integer(n, kLeast, kMost);
      for (int64_t less : {2, 1, 0}) to_[numbers[n] - less] = small - less;
    }
  }
  int64_t of(int64_t value) const {
    const auto found = to_.find(std::abs(value));
    return found == to_.end() ? value : value < 0 ? -found->second : found->second;
  }

 private:
  std::map<int64_t, int64_t> to_;
};

// ---- integers that become reals
bool is_sum_or_product(const std::string& op) { return op == "+" || op == "-" || op == "*"; }
bool is_bound(const std::string& op) { return op == "min" || op == "max"; }

// Sums and products of coordinates and sizes: of reals, each of which is what it was.
spec::ExprPtr drawn(const spec::ExprPtr& e) {
  if (e->type != spec::Type::integer || e->kind == Kind::number) return e;
  if (e->kind == Kind::binary && (is_sum_or_product(e->name) || is_bound(e->name)))
    return spec::binary(e->name, drawn(e->args[0]), drawn(e->args[1]));
  if (e->kind == Kind::unary && (e->name == "-" || e->name == "abs"))
    return spec::unary(e->name, drawn(e->args[0]));
  return spec::unary("float", e);
}

// What the names of `let` stand for.
using Lets = std::map<std::string, tl::ExprPtr>;

bool is_sum_or_product(const tl::Expr& e) {
  return (e.kind == tl::ExprKind::binary && is_sum_or_product(e.text)) ||
         (e.kind == tl::ExprKind::unary && e.text == "-");
}

bool is_plain(const tl::ExprPtr& e, const Lets& lets) {
  using tl::ExprKind;
  if (e->kind == ExprKind::integer || e->kind == ExprKind::field) return true;
  if (e->kind == ExprKind::name) {
    const auto let = lets.find(e->text);
    return let == lets.end() || is_plain(let->second, lets);
  }
  return is_sum_or_product(*e) && std::all_of(e->args.begin(), e->args.end(),
                                              [&](const auto& a) { return is_plain(a, lets); });
}

// Of the columns of a row alone, of which a case has each: in a pass over rows they are j.
bool is_of_columns(const tl::ExprPtr& e, const Lets& lets) {
  using tl::ExprKind;
  if (e->kind == ExprKind::field || e->kind == ExprKind::index) return false;
  if (e->kind == ExprKind::name) {
    const auto let = lets.find(e->text);
    const bool constant = !e->text.empty() && std::isupper(static_cast<unsigned char>(e->text[0]));
    return e->text == "j" || (let == lets.end() ? constant : is_of_columns(let->second, lets));
  }
  return std::all_of(e->args.begin(), e->args.end(),
                     [&](const auto& a) { return is_of_columns(a, lets); });
}

tl::ExprPtr drawn(const tl::ExprPtr& e, const Lets& lets, bool of_rows) {
  if (is_plain(e, lets) || (of_rows && is_of_columns(e, lets))) return tl::call("f32", {e});
  const bool bound = e->kind == tl::ExprKind::call && (is_bound(e->text) || e->text == "abs");
  if (!bound && !is_sum_or_product(*e)) return tl::call("drawn", {e});
  tl::Expr of_reals = *e;
  for (tl::ExprPtr& a : of_reals.args) a = drawn(a, lets, of_rows);
  return std::make_shared<const tl::Expr>(std::move(of_reals));
}

// Of the form: what becomes a real in an expression.
spec::ExprPtr with_drawn(const spec::ExprPtr& whole) {
  return spec::rewrite(whole, [&](const spec::ExprPtr& e) -> spec::ExprPtr {
    if (e->type != spec::Type::real || e->kind == Kind::read) return nullptr;
    if (e->kind == Kind::unary && e->name == "float") return drawn(e->args[0]);
    if (e->kind == Kind::binary) return spec::binary(e->name, drawn(e->args[0]), drawn(e->args[1]));
    return e->kind == Kind::unary ? spec::unary(e->name, drawn(e->args[0])) : nullptr;
  });
}

// ---- rows before a product, and those that passes behind a kernel turn round
// Whether it is more than a sum or a product of coordinates and sizes, and of columns.
bool turns(const spec::ExprPtr& e) {
  const bool kept = e->kind == Kind::binary && (is_sum_or_product(e->name) || is_bound(e->name));
  if (kept || (e->kind == Kind::unary && (e->name == "-" || e->name == "abs")))
    return std::any_of(e->args.begin(), e->args.end(), turns);
  return (e->kind == Kind::read || !e->args.empty()) && !spec::is_of_columns(e);
}

void each_row(spec::Form& form, const std::function<void(spec::ExprPtr&)>& visit) {
  const auto of_map = [&](spec::RowMap& map) {
    for (spec::ExprPtr& sum : map.sums) visit(sum);
    if (map.element) visit(map.element);
  };
  const spec::Family& family = spec::Family::of(form);
  family.each_operand(form, [&](spec::Operand& o) {
    if (o.row) of_map(*o.row);
  });
  family.each_turned_row(form, of_map);
}

// Whether some integer part of a real operation is one that `which` tells.
bool some_integer(const spec::ExprPtr& whole,
                  const std::function<bool(const spec::ExprPtr&)>& which) {
  bool any = false;
  spec::rewrite(whole, [&](const spec::ExprPtr& e) -> spec::ExprPtr {
    for (const spec::ExprPtr& part : e->args)
      any |= e->kind != Kind::read && e->type == spec::Type::real &&
             part->type == spec::Type::integer && part->kind != Kind::number && which(part);
    return nullptr;
  });
  return any;
}

}  // namespace

std::vector<int64_t> numbers_of_scores(const spec::Form& form) {
  std::set<int64_t> all, out;
  for (const spec::Term& t : form.terms)
    for (const spec::ExprPtr& e : {t.score, t.sink, t.factor}) numbers_outside_data(e, all);
  numbers_outside_data(form.epilogue, all);
  // Of neighbours the last: one is the other's by what is computed of it.
  for (const int64_t n : all)
    if (!all.count(n + 1) && !all.count(n + 2)) out.insert(n);
  return {out.begin(), out.end()};
}

bool has_integers_in_reals(const spec::Form& form) {
  spec::Form copy = form;
  bool any = false;
  each_row(copy, [&](spec::ExprPtr& e) { any |= some_integer(e, turns); });
  spec::Family::of(copy).each_operand(copy, [](spec::Operand& o) { o.row.reset(); });
  spec::Family::of(copy).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    any |= e && some_integer(e, [](const spec::ExprPtr&) { return true; });
  });
  return any;
}

spec::Form made_small(spec::Form form, const std::vector<int64_t>& numbers, uint64_t seed) {
  const Small small(numbers, seed);
  spec::Family::of(form).each_expression(form, [&](spec::ExprPtr& e, const spec::Extents&) {
    if (!e) return;
    e = spec::rewrite(e, [&](const spec::ExprPtr& part) -> spec::ExprPtr {
      const bool integer = part->kind == Kind::number && part->type == spec::Type::integer;
      return integer ? spec::integer(small.of(part->integer)) : nullptr;
    });
  });
  return form;
}

tl::Program made_small(tl::Program program, const std::vector<int64_t>& numbers, uint64_t seed) {
  const Small small(numbers, seed);
  const auto change = [&](const tl::ExprPtr& part) -> tl::ExprPtr {
    int64_t value = 0;
    if (part->kind != tl::ExprKind::integer) return nullptr;
    std::from_chars(part->text.data(), part->text.data() + part->text.size(), value);
    return small.of(value) == value ? nullptr : tl::integer(small.of(value));
  };
  tl::walk(program.body, [&](tl::Stmt& s) {
    if (s.op == tl::Op::param) return;
    tl::each_expression(s, [&](tl::ExprPtr& e) { e = tl::rewrite(e, change); });
  });
  return program;
}

spec::Form with_drawn_integers(spec::Form form) {
  const spec::Family& family = spec::Family::of(form);
  std::vector<std::optional<spec::RowMap>> rows;
  family.each_operand(form, [&](spec::Operand& o) { rows.push_back(o.row), o.row.reset(); });
  family.each_expression(form, [&](spec::ExprPtr& e, const spec::Extents&) {
    if (e) e = with_drawn(e);
  });
  auto row = rows.begin();
  family.each_operand(form, [&](spec::Operand& o) { o.row = *row++; });
  each_row(form, [&](spec::ExprPtr& e) { e = with_drawn(e); });
  return form;
}

tl::Program with_drawn_integers(tl::Program program) {
  Lets lets;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (s.op == tl::Op::let)
      for (const tl::Item& d : s.names())
        if (d.expr) lets[d.name] = d.expr;
  });
  const tl::Stmt* const kernel = program.kernel();
  for (tl::Stmt& top : program.body) {
    const bool passes = top.op == tl::Op::rows || top.op == tl::Op::after;
    if (&top != kernel && !passes) continue;
    const auto change = [&](const tl::ExprPtr& e) -> tl::ExprPtr {
      const bool converts = e->kind == tl::ExprKind::call && e->text == "f32";
      return converts ? drawn(e->args[0], lets, passes) : nullptr;
    };
    tl::walk(top.body, [&](tl::Stmt& s) {
      tl::each_expression(s, [&](tl::ExprPtr& e) { e = tl::rewrite(e, change); });
    });
  }
  return program;
}

}  // namespace kw::check
