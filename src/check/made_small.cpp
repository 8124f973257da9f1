#include "check/made_small.h"

#include <algorithm>
#include <charconv>
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

tl::ExprPtr drawn(const tl::ExprPtr& e, const Lets& lets) {
  if (is_plain(e, lets)) return tl::call("f32", {e});
  const bool bound = e->kind == tl::ExprKind::call && (is_bound(e->text) || e->text == "abs");
  if (!bound && !is_sum_or_product(*e)) return tl::call("drawn", {e});
  tl::Expr of_reals = *e;
  for (tl::ExprPtr& a : of_reals.args) a = drawn(a, lets);
  return std::make_shared<const tl::Expr>(std::move(of_reals));
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
  if (!spec::Family::of(form).turned_rows(form).empty()) return false;  // of passes behind a kernel
  spec::Form copy = form;
  spec::Family::of(copy).each_operand(copy, [](spec::Operand& o) { o.row.reset(); });
  bool any = false;
  spec::Family::of(copy).each_expression(copy, [&](spec::ExprPtr& whole, const spec::Extents&) {
    if (!whole) return;
    spec::rewrite(whole, [&](const spec::ExprPtr& e) -> spec::ExprPtr {
      for (const spec::ExprPtr& part : e->args)
        any |= e->kind != Kind::read && e->type == spec::Type::real &&
               part->type == spec::Type::integer && part->kind != Kind::number;
      return nullptr;
    });
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
  std::vector<std::optional<spec::RowMap>> rows;  // stay: a case has each of their columns
  family.each_operand(form, [&](spec::Operand& o) { rows.push_back(o.row); });
  family.each_expression(form, [&](spec::ExprPtr& whole, const spec::Extents&) {
    if (!whole) return;
    whole = spec::rewrite(whole, [&](const spec::ExprPtr& e) -> spec::ExprPtr {
      if (e->type != spec::Type::real || e->kind == Kind::read) return nullptr;
      if (e->kind == Kind::unary && e->name == "float") return drawn(e->args[0]);
      if (e->kind == Kind::binary)
        return spec::binary(e->name, drawn(e->args[0]), drawn(e->args[1]));
      return e->kind == Kind::unary ? spec::unary(e->name, drawn(e->args[0])) : nullptr;
    });
  });
  auto row = rows.begin();
  family.each_operand(form, [&](spec::Operand& o) { o.row = *row++; });
  return form;
}

tl::Program with_drawn_integers(tl::Program program) {
  Lets lets;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (s.op == tl::Op::let)
      for (const tl::Item& d : s.names())
        if (d.expr) lets[d.name] = d.expr;
  });
  const auto change = [&](const tl::ExprPtr& e) -> tl::ExprPtr {
    const bool converts = e->kind == tl::ExprKind::call && e->text == "f32";
    return converts ? drawn(e->args[0], lets) : nullptr;
  };
  if (tl::Stmt* kernel = program.kernel())
    tl::walk(kernel->body, [&](tl::Stmt& s) {
      tl::each_expression(s, [&](tl::ExprPtr& e) { e = tl::rewrite(e, change); });
    });
  return program;
}

}  // namespace kw::check
