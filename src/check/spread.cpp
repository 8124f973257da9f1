#include "check/spread.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "num/random.h"
#include "operator/family.h"

namespace kw::check {
namespace {

using spec::ExprPtr;
using spec::Kind;

// What is compared with an argument's elements, and how.
struct Beside {
  ExprPtr position;
  bool strict = false;  // j < own[b]: one more than the greatest position is of interest, too
};
using Compared = std::multimap<std::string, Beside>;

bool is_position(const ExprPtr& e) {
  if (e->type != spec::Type::integer) return false;
  for (const Kind kind : {Kind::read, Kind::argument, Kind::score, Kind::output, Kind::total})
    if (spec::mentions(e, kind)) return false;
  return spec::mentions(e, Kind::index, "i") || spec::mentions(e, Kind::index, "j");
}

void look(const ExprPtr& e, Compared& compared) {
  if (!e) return;
  if (spec::is_comparison(e))
    for (const int own : {0, 1})
      if (const ExprPtr& read = e->args[own], &other = e->args[1 - own];
          read->kind == Kind::read && is_position(other)) {
        compared.emplace(read->name, Beside{other, own == 1 && e->name == "<"});
      }
  for (const ExprPtr& a : e->args) look(a, compared);
}

// Of tensors of integers; not of one that is an index too: beyond its table there is nothing.
Compared compared_in(const spec::Form& form) {
  Compared found, out;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy,
                                         [&](ExprPtr& e, const spec::Extents&) { look(e, found); });
  const std::set<std::string> of_indices = tensors_of_indices(form);
  for (const auto& [name, beside] : found) {
    const spec::Argument* a = form.argument(name);
    if (!a || !a->is_tensor || is_float(a->dtype) || a->dtype == Dtype::boolean) continue;
    if (!of_indices.count(name)) out.emplace(name, beside);
  }
  return out;
}

struct Range {
  int64_t low = INT64_MAX, high = INT64_MIN;
};

// Over the first, middle and last rows and keys.
void widen(const Beside& beside, const spec::Form& form, const spec::Problem& problem, Range& r) {
  const int64_t M = spec::value_of(form.M, problem.sizes),
                N = spec::value_of(form.N, problem.sizes);
  spec::Scope scope;
  for (const auto& [name, size] : problem.sizes) scope.indices[name] = size;
  for (const char* index : {"b", "h", "d"}) scope.indices[index] = 0;
  for (const int64_t i : {int64_t{0}, M / 2, M - 1})
    for (const int64_t j : {int64_t{0}, N / 2, N - 1}) {
      scope.indices["i"] = i, scope.indices["j"] = j;
      const auto at = int64_t(spec::evaluate(beside.position, scope));
      r.low = std::min(r.low, std::max<int64_t>(at, 0));
      r.high = std::max(r.high, at + beside.strict);
    }
}

// Each row's elements in order, one of each of as many parts of the range and of the last part the
// greatest, and turned: by another number of places in the next row, and in the next of those.
void fill(Tensor& t, const Range& range, const Random& random, uint64_t& drawn_so_far) {
  const int64_t count = int64_t(t.values.size());
  const int64_t n = t.shape.empty() || t.shape.back() == 1 ? count : t.shape.back();
  const int64_t width = range.high - range.low + 1;
  for (int64_t row = 0; n > 0 && row < count / n; ++row)
    for (int64_t k = 0; k < n; ++k) {
      const int64_t first = range.low + k * width / n,
                    last = std::max(first, range.low + (k + 1) * width / n - 1);
      const int64_t value = k + 1 == n ? range.high : random.integer(drawn_so_far++, first, last);
      t.values[row * n + (k + row + row / n) % n] = round_to(t.dtype, double(value));
    }
}

}  // namespace

std::set<std::string> tensors_of_indices(const spec::Form& form) {
  std::set<std::string> out;
  const auto add = [&](const ExprPtr& part) {
    if (part->kind == Kind::read) out.insert(part->name);
    return ExprPtr();
  };
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](ExprPtr& e, const spec::Extents&) {
    if (!e) return;
    spec::rewrite(e, [&](const ExprPtr& part) {
      if (part->kind == Kind::read)
        for (const ExprPtr& index : part->args) spec::rewrite(index, add);
      return ExprPtr();
    });
  });
  for (const spec::Term& term : form.terms)  // tables of pages
    for (const spec::Operand* operand : spec::operands(term))
      for (const ExprPtr& index : operand->indices) spec::rewrite(index, add);
  return out;
}

bool has_spread(const spec::Form& form) { return !compared_in(form).empty(); }

void plant_spread(uint64_t seed, const spec::Form& form, spec::Problem& problem) {
  std::map<std::string, Range> ranges;
  for (const auto& [name, beside] : compared_in(form)) widen(beside, form, problem, ranges[name]);
  const Random random(seed, 78);
  uint64_t n = 0;
  for (const auto& [name, range] : ranges)
    if (range.low <= range.high) fill(problem.tensors.at(name), range, random, n);
}

}  // namespace kw::check
