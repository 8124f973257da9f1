#include "check/compared_numbers.h"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/spread.h"
#include "num/random.h"
#include "operator/family.h"

namespace kw::check {
namespace {

using spec::ExprPtr;
using spec::Kind;

using Numbers = std::map<std::string, std::set<double>>;  // by tensor

// x - 3 == 0 is so at 3: of few numbers, what two of them come to, of either sign.
std::set<double> with_sums(const std::set<double>& written) {
  std::set<double> out = written;
  if (written.size() > 4) return out;
  for (const double a : written)
    for (const double b : written) out.insert({-a, a + b, a - b, -a - b});
  return out;
}

// What its comparisons read, with the numbers that are written there.
void look(const ExprPtr& whole, Numbers& numbers) {
  spec::rewrite(whole, [&](const ExprPtr& e) {
    if (!spec::is_comparison(e)) return ExprPtr();
    std::set<std::string> read;
    std::set<double> written;
    spec::rewrite(e, [&](const ExprPtr& part) {
      if (part->kind == Kind::read) read.insert(part->name);
      if (spec::is_number(part) && part->type != spec::Type::boolean)
        written.insert(spec::number_value(part));
      return ExprPtr();
    });
    for (const std::string& name : read) numbers[name].merge(with_sums(written));
    return ExprPtr();
  });
}

// Not of a tensor that is an index, too.
Numbers compared_in(const spec::Form& form) {
  Numbers out;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](ExprPtr& e, const spec::Extents&) {
    if (e) look(e, out);
  });
  const std::set<std::string> of_indices = tensors_of_indices(form);
  std::erase_if(out, [&](const auto& entry) {
    const spec::Argument* a = form.argument(entry.first);
    return !a || !a->is_tensor || a->saved || a->dtype == Dtype::boolean || entry.second.empty() ||
           of_indices.count(entry.first) > 0;
  });
  return out;
}

bool fits(Dtype dtype, double value) {
  if (is_float(dtype)) return std::isfinite(round_to(dtype, value));
  return std::fabs(value) < 0x1p31 && round_to(dtype, value) == value;
}

}  // namespace

bool has_compared_numbers(const spec::Form& form) { return !compared_in(form).empty(); }

void plant_compared_numbers(uint64_t seed, const spec::Form& form, spec::Problem& problem) {
  const Random random(seed, 79);
  uint64_t n = 0;
  for (const auto& [name, numbers] : compared_in(form)) {
    Tensor& t = problem.tensors.at(name);
    std::vector<double> all;
    for (const double x : numbers)
      for (const double more : {-1.0, 0.0, 1.0})
        if (fits(t.dtype, x + more) && (more == 0 || !is_float(t.dtype)))
          all.push_back(round_to(t.dtype, x + more));
    if (all.empty()) continue;
    for (double& value : t.values) {
      const bool planted = random.integer(n++, 0, 1) == 1;
      const size_t which = size_t(random.integer(n++, 0, int64_t(all.size()) - 1));
      if (planted) value = all[which];
    }
  }
}

}  // namespace kw::check
