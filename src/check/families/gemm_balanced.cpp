#include "check/families/gemm_balanced.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "check/far_arguments.h"
#include "check/planted.h"
#include "operator/family.h"

namespace kw::check::families {
namespace {

using spec::ExprPtr;
using spec::Form;
using spec::Kind;
using spec::Problem;

constexpr double kNear = 100;  // where exp(x) is beyond fp32, and exp(-x) below it

// An exponential's argument, and what of it an argument of the function is.
struct Balance {
  ExprPtr exponent, read;
  bool of_two = false;  // exp2
};

void find_read(const ExprPtr& e, const std::set<std::string>& names, Balance& out) {
  if (e->kind == Kind::read && names.count(e->name) && !out.read) out.read = e;
  for (const ExprPtr& a : e->args) find_read(a, names, out);
}

void find(const ExprPtr& e, const std::set<std::string>& names, std::optional<Balance>& out) {
  if (out) return;
  if (e->kind == Kind::unary && (e->name == "exp" || e->name == "exp2")) {
    Balance b{e->args[0], nullptr, e->name == "exp2"};
    find_read(e->args[0], names, b);
    if (b.read && spec::mentions(b.exponent, Kind::score)) out = b;
  }
  for (const ExprPtr& a : e->args) find(a, names, out);
}

std::optional<Balance> balance_of(const Form& form) {
  std::optional<Balance> out;
  const std::vector<std::string> names = further_arguments(form);
  find(form.product->value, {names.begin(), names.end()}, out);
  return out;
}

// All rows of one batch entry and head: sums over d.
std::vector<double> products_of(const Form& form, const Problem& problem, int64_t b, int64_t h) {
  const int64_t M = spec::value_of(form.M, problem.sizes),
                N = spec::value_of(form.N, problem.sizes),
                K = spec::value_of(form.D, problem.sizes);
  const Tensor &x = problem.tensors.at(form.product->a.argument),
               &y = problem.tensors.at(form.product->b.argument);
  auto l = spec::strides_of(form.product->a, x), r = spec::strides_of(form.product->b, y);
  const double *left = &x.values[b * l["b"] + h * l["h"]],
               *right = &y.values[b * r["b"] + h * r["h"]];
  const int64_t l_i = l["i"], l_d = l["d"], r_d = r["d"], r_j = r["j"];
  std::vector<double> out(M * N);
  for (int64_t i = 0; i < M; ++i)
    for (int64_t d = 0; d < K; ++d)
      for (int64_t j = 0; j < N; ++j)
        out[i * N + j] += left[i * l_i + d * l_d] * right[d * r_d + j * r_j];
  return out;
}

// The exponent where the argument has the value `x` everywhere.
double exponent_at(const Balance& balance, spec::Scope scope, double product, double x) {
  scope.scores[0] = product;
  const auto read = scope.read;
  scope.read = [&](const std::string& name, const std::vector<int64_t>& at) {
    return name == balance.read->name ? x : read(name, at);
  };
  return spec::evaluate(balance.exponent, scope);
}

// Operands of one sign, so that exponents without the argument lie near 100.
void bring_products_near(const Form& form, double product, Problem& problem) {
  Tensor &a = problem.tensors.at(form.product->a.argument),
         &b = problem.tensors.at(form.product->b.argument);
  const double K = double(spec::value_of(form.D, problem.sizes)),
               factor = product / (mean_size(a) * mean_size(b) * K);
  for (double& x : b.values) x = std::fabs(x);
  for (double& x : a.values) x = drawn(a.dtype, std::fabs(x) * factor);
}

}  // namespace

bool has_balanced(const Form& form) { return balance_of(form).has_value(); }

void plant_balanced(const Form& form, Problem& problem) {
  const std::optional<Balance> balance = balance_of(form);
  if (!balance) return;
  spec::Scope scope = scope_of(problem);
  for (const char* index : {"b", "h", "i", "j", "d"}) scope.indices[index] = 0;
  const double none = exponent_at(*balance, scope, 0, 0),
               slope = exponent_at(*balance, scope, 1, 0) - none,
               of_argument = exponent_at(*balance, scope, 0, 1) - none;
  if (slope == 0 || of_argument == 0 || !std::isfinite(slope) || !std::isfinite(of_argument))
    return;
  bring_products_near(form, kNear * (balance->of_two ? std::log2(std::exp(1.0)) : 1) / slope,
                      problem);
  Tensor& t = problem.tensors.at(balance->read->name);
  std::vector<double> largest(t.values.size(), -HUGE_VAL);
  const int64_t M = spec::value_of(form.M, problem.sizes),
                N = spec::value_of(form.N, problem.sizes);
  for (int64_t b = 0; b < spec::value_of(form.B, problem.sizes); ++b)
    for (int64_t h = 0; h < form.H.constant; ++h) {
      const std::vector<double> products = products_of(form, problem, b, h);
      scope.indices["b"] = b, scope.indices["h"] = h;
      for (int64_t n = 0; n < M * N; ++n) {
        scope.indices["i"] = n / N, scope.indices["j"] = n % N;
        std::vector<int64_t> at;
        for (const ExprPtr& place : balance->read->args)
          at.push_back(int64_t(spec::evaluate(place, scope)));
        double& most = largest[nearest_element(t, at)];
        most = std::max(most, none + slope * products[n]);
      }
    }
  for (size_t n = 0; n < largest.size(); ++n)
    if (std::isfinite(largest[n])) t.values[n] = drawn(t.dtype, -largest[n] / of_argument);
}

}  // namespace kw::check::families
