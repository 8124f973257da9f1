#include "check/made_small.h"

#include <charconv>
#include <map>
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

tl::ExprPtr made_small(const tl::ExprPtr& e, const Small& small) {
  return tl::rewrite(e, [&](const tl::ExprPtr& part) -> tl::ExprPtr {
    int64_t value = 0;
    if (part->kind != tl::ExprKind::integer) return nullptr;
    std::from_chars(part->text.data(), part->text.data() + part->text.size(), value);
    return small.of(value) == value ? nullptr : tl::integer(small.of(value));
  });
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
  tl::walk(program.body, [&](tl::Stmt& s) {
    if (s.op == tl::Op::param) return;
    for (tl::Field& f : s.fields)
      for (tl::Item& item : f.items)
        if (item.expr) item.expr = made_small(item.expr, small);
  });
  return program;
}

}  // namespace kw::check
