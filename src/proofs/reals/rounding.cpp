#include "proofs/reals/rounding.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

constexpr double kFp32 = 0x1p-24;  // of one operation, relative
constexpr double kFast = 0x1p-22;  // of exp2, log2, reciprocal and rsqrt as the GPU has them
constexpr double kTanh = 0x1p-11;  // of tanh.approx, of its largest value
constexpr double kTerm = 0x1p-25;  // of a term of a product's step, of the largest term
constexpr int kStep = 16;          // terms of a step
constexpr int kLanes = 4;          // that divide a row's elements among them

// Relative roundings of a formula of reals, all of them on the same value.
double roundings(const ExprPtr& e) {
  if (e->kind == ExprKind::index || e->kind == ExprKind::name) return 0;
  double all = 0;
  if (e->kind == ExprKind::binary) all = kFp32;
  if (e->kind == ExprKind::call) all = e->text == "tanh" ? kTanh : kFast;
  const size_t first = e->kind == ExprKind::where ? 1 : 0;  // a question rounds nothing
  for (size_t n = first; n < e->args.size(); ++n) all += roundings(e->args[n]);
  return all;
}

// param D = 128; 0 where there is none.
int64_t terms_of_a_score(const tl::Program& program) {
  for (const Stmt& s : program.body)
    if (s.op == Op::param)
      for (const tl::Item& d : s.names())
        if (d.name == "D" && d.expr->kind == ExprKind::integer) return std::stoll(d.expr->text);
  return 0;
}

}  // namespace

std::optional<Rounding> rounding_of(const tl::Program& program, const spec::Form& form,
                                    int64_t columns) {
  const int64_t terms = terms_of_a_score(program);
  if (!program.find(Op::online_max) || terms <= 0 || columns <= 0) return std::nullopt;
  std::set<std::string> outputs;
  tl::walk(program.body, [&](const Stmt& s) {
    if (tl::adds_product(s.op) && !tl::traits(s.op).transposed)
      outputs.insert(tl::base_name(s.acc()));
  });
  double maps = 0, behind = 0;
  tl::walk(program.body, [&](const Stmt& s) {
    if (!tl::is(s.op, tl::Family::map) || !s.has(tl::Hole::value) || s.op == Op::fill) return;
    const bool output = s.op == Op::map_rows || outputs.count(tl::base_name(s.target()));
    (output ? behind : maps) += roundings(s.value());
  });
  const double steps = std::ceil(double(terms) / kStep);
  const double product = steps * (kStep + 1) * kTerm;
  const double exponent = kBinades * (product + maps + 4 * kFp32);
  const double u = half_ulp(form.dtype);
  const double tiles = 1.0 / double(columns);
  Rounding r;
  r.fixed = 2 * std::log(2) * exponent + kFast + u + u + behind + 4 * kFp32;
  r.per_key = kFp32 / kLanes + 3 * tiles * kFp32              // the sum, its factor, its lanes
              + (kStep + 1) * kTerm / kStep + tiles * kFp32;  // the output, its factor
  if (form.dtype == Dtype::f16) r.per_key += 0x1p-25;  // weights below the least number are 0
  return r;
}

bool rounds_in_a_map(const tl::Program& program) {
  return tl::print(program).find("to_bf16(") != std::string::npos;
}

std::string print(const Rounding& r) {
  return fmt::format("rounding: at most {:.2g} of a row's largest value at 4096 keys, {:.2g} at {}",
                     r.at(4096), r.at(kMostKeys), kMostKeys);
}

}  // namespace kw::proofs
