#include "operator/families/attention_bwd/adjoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "operator/expr/derivative.h"
#include "operator/expr/places.h"

namespace kw::spec {
namespace {

using Columns = std::set<int64_t>;

ExprPtr the_column() { return leaf(Kind::index, Type::integer, "d"); }
ExprPtr with_column(const ExprPtr& e, const ExprPtr& number) {
  return replace(e, the_column(), number);
}
// Of the column d + distance. By way of another name: what folds to d again is not replaced again.
ExprPtr moved_by(const ExprPtr& e, int64_t distance) {
  const ExprPtr other = leaf(Kind::index, Type::integer, "(d)");
  const ExprPtr moved = replace(e, the_column(), binary("+", other, integer(distance)));
  return replace(moved, other, the_column());
}
ExprPtr sum_number(size_t n) { return leaf(Kind::total, Type::real, std::to_string(n)); }
// What is 0 whatever is read: nothing times something, too, as the calculus has it.
bool is_nothing(const ExprPtr& e) {
  const auto of = [&](size_t n) { return is_nothing(e->args[n]); };
  if (is_number(e)) return e->value == 0;
  if (e->kind == Kind::where) return of(1) && of(2);
  if (e->kind == Kind::unary) return e->name == "-" && of(0);
  if (e->kind != Kind::binary) return false;
  if (e->name == "*") return of(0) || of(1);
  return e->name == "/" ? of(0) : (e->name == "+" || e->name == "-") && of(0) && of(1);
}

// Of `count` columns those that a condition on d tells, as that condition: all (null), those before
// or behind one, every second, fourth or eighth of a part. Nothing where it is no such set.
struct Condition {
  ExprPtr holds;
};
std::optional<Condition> condition_of(const Columns& of, int64_t count) {
  const int64_t first = *of.begin(), last = *of.rbegin();
  for (const int64_t step : {1, 2, 4, 8}) {
    Columns same;
    for (int64_t c = first; c <= last; c += step) same.insert(c);
    if (same != of) continue;
    ExprPtr out;
    const auto and_also = [&](const ExprPtr& e) { out = out ? binary("and", out, e) : e; };
    if (step > 1)
      and_also(binary("==", binary("%", the_column(), integer(step)), integer(first % step)));
    if (first >= step) and_also(binary("<=", integer(first), the_column()));
    if (last + step < count) and_also(binary("<", the_column(), integer(last + 1)));
    return Condition{out};
  }
  return std::nullopt;
}

class Adjoint {
 public:
  Adjoint(const Operand& operand, const char* row, int64_t columns, const std::string& gradient,
          std::string& why)
      : map_(*operand.row), argument_(operand.argument), columns_(columns), why_(why) {
    for (size_t n = 0; n < operand.indices.size(); ++n)
      if (equal(operand.indices[n], the_column())) place_ = n;
    const auto index = [](const char* name) { return leaf(Kind::index, Type::integer, name); };
    gradient_ = read(gradient, Type::real, {index("b"), index("h"), index(row), the_column()});
  }

  std::optional<RowMap> run() {
    const size_t sums = map_.sums.size();
    if (2 * sums > kMostSums) {
      why_ =
          fmt::format("{} sums over a row are made, and {} more go back through them", sums, sums);
      return std::nullopt;
    }
    RowMap out{map_.sums, {}};
    // What the row's sum n changes the result by: through the element, and later sums.
    std::vector<ExprPtr> of_sum(sums);
    for (size_t n = sums; n-- > 0;) {
      ExprPtr by = weighed(map_.element, sum_number(n), gradient_);
      for (size_t m = n + 1; m < sums && by; ++m) {
        const ExprPtr more = weighed(map_.sums[m], sum_number(n), of_sum[m]);
        by = more ? binary("+", by, more) : nullptr;
      }
      if (!by) return std::nullopt;
      of_sum[n] = sum_number(out.sums.size());
      out.sums.push_back(by);
    }
    if (!add(map_.element, gradient_)) return std::nullopt;
    for (size_t n = 0; n < sums; ++n)
      if (!add(map_.sums[n], of_sum[n])) return std::nullopt;
    out.element = gathered();
    return out;
  }

 private:
  // weight * d e / d part; null where e has no derivative.
  ExprPtr weighed(const ExprPtr& e, const ExprPtr& part, const ExprPtr& weight) {
    ExprPtr operation;
    const auto slope = derivative_by(e, part, operation);
    if (!slope) {
      why_ = fmt::format("`{}` has no derivative", print(operation));
      return nullptr;
    }
    return is_nothing(*slope) ? *slope : binary("*", weight, *slope);
  }

  // What x[c] gets through the reads of x in e, of weight `weight` at each d.
  bool add(const ExprPtr& e, const ExprPtr& weight) {
    for (const ExprPtr& r : places_of(e, argument_)) {
      const ExprPtr by = weighed(e, r, weight);
      if (!by || !turn_round(by, r->args[place_])) return false;
    }
    return true;
  }

  // by(d) belongs to column from(d).
  bool turn_round(const ExprPtr& by, const ExprPtr& from) {
    std::map<int64_t, Columns> at;  // of a distance d - c, the columns c
    for (int64_t d = 0; d < columns_; ++d) {
      if (is_nothing(with_column(by, integer(d)))) continue;
      const ExprPtr c = with_column(from, integer(d));
      if (!is_number(c) || c->type != Type::integer || c->integer < 0 || c->integer >= columns_) {
        why_ = fmt::format("which column `{}` is, is not known", print(from));
        return false;
      }
      at[d - c->integer].insert(c->integer);
    }
    constexpr size_t kMost = 4;  // distances: a rotation has two
    for (const auto& [distance, columns] : at) {
      const auto where_it_is = condition_of(columns, columns_);
      if (at.size() > kMost || !where_it_is) {
        why_ = fmt::format("no rule turns the columns `{}` round", print(from));
        return false;
      }
      const ExprPtr share = decided(moved_by(by, distance), columns);
      const auto same = std::find_if(shares_.begin(), shares_.end(),
                                     [&, c = &columns](const Share& s) { return s.columns == *c; });
      if (same == shares_.end())
        shares_.push_back({columns, where_it_is->holds, share});
      else
        same->value = binary("+", same->value, share);
    }
    return true;
  }

  // What depends on the column alone, where these columns decide it; without what is 0 there.
  static ExprPtr decided(const ExprPtr& e, const Columns& columns) {
    return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->type == Type::real && is_nothing(x)) return real(0);
      if (x->kind != Kind::where) return nullptr;
      std::set<bool> is;
      for (const int64_t c : columns) {
        const ExprPtr at = with_column(x->args[0], integer(c));
        if (!is_number(at)) return nullptr;
        is.insert(at->integer != 0);
      }
      return is.size() == 1 ? x->args[*is.begin() ? 1 : 2] : nullptr;
    });
  }

  // All shares: of one condition and its contrary, one choice.
  ExprPtr gathered() const {
    ExprPtr out = real(0);
    std::vector<bool> done(shares_.size());
    for (size_t n = 0; n < shares_.size(); ++n) {
      if (done[n]) continue;
      const Share& s = shares_[n];
      ExprPtr otherwise = real(0);
      for (size_t m = n + 1; m < shares_.size() && s.holds; ++m) {
        Columns both = s.columns;
        both.insert(shares_[m].columns.begin(), shares_[m].columns.end());
        if (done[m] || int64_t(both.size()) != columns_ ||
            int64_t(s.columns.size() + shares_[m].columns.size()) != columns_)
          continue;
        otherwise = shares_[m].value;
        done[m] = true;
        break;
      }
      out = binary("+", out, s.holds ? where(s.holds, s.value, otherwise) : s.value);
    }
    return out;
  }

  struct Share {
    Columns columns;
    ExprPtr holds;  // null: of all columns
    ExprPtr value;
  };

  const RowMap& map_;
  const std::string& argument_;
  const int64_t columns_;
  std::string& why_;
  size_t place_ = 0;  // of the column among the argument's indices
  ExprPtr gradient_;
  std::vector<Share> shares_;
};

}  // namespace

std::optional<RowMap> adjoint(const Operand& operand, const char* row, int64_t columns,
                              const std::string& gradient, std::string& why) {
  return Adjoint(operand, row, columns, gradient, why).run();
}

}  // namespace kw::spec
