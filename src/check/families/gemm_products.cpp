#include "check/families/gemm_products.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "check/far_arguments.h"
#include "operator/family.h"

namespace kw::check::families {
namespace {

using spec::Form;
using spec::Problem;

// Binades of elements: of each size where exponentials and fp16 end, then fewer.
constexpr int kBinades[] = {5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,  16,
                            17, 20, 24, 30, 40, 50, 60, 70, 80, 90, 100, 110};

// How far an operand's numbers reach up, and where those of the right side lie.
struct Reach {
  int most, right;
};
Reach reach_of(Dtype t) {
  if (t == Dtype::f16) return {15, 7};
  if (t == Dtype::e4m3) return {8, 4};
  return {62, 50};
}

double largest_of(Dtype result) { return result == Dtype::f16 ? 60000 : 0x1p118; }

// A row of the left side, which batch entries and heads may share.
struct Row {
  int64_t b, h, i;
};

class Planter {
 public:
  Planter(const Form& form, Problem& problem)
      : form_(form),

        a_(problem.tensors.at(form.product->a.argument)),
        b_(problem.tensors.at(form.product->b.argument)),
        left_(spec::strides_of(form.product->a, a_)),
        right_(spec::strides_of(form.product->b, b_)),
        M_(spec::value_of(form.M, problem.sizes)),
        N_(spec::value_of(form.N, problem.sizes)),
        K_(spec::value_of(form.D, problem.sizes)),
        B_(spec::value_of(form.B, problem.sizes)),
        of_columns_(spec::mentions(form.product->value, spec::Kind::index, "j")),
        scope_(scope_of(problem)) {
    for (const char* index : {"b", "h", "i", "j", "d"}) scope_.indices[index] = 0;
  }

  bool plant() {
    // A matrix times itself: rows of one are columns of the other.
    if (form_.product->a.argument == form_.product->b.argument) return false;
    std::map<int64_t, std::vector<Row>> rows;  // by where they lie
    for (int64_t b = 0; b < B_; ++b)
      for (int64_t h = 0; h < form_.H.constant; ++h)
        for (int64_t i = 0; i < M_; ++i)
          rows[b * left_["b"] + h * left_["h"] + i * left_["i"]].push_back({b, h, i});
    const Reach reach = reach_of(a_.dtype);
    const int depth = int(std::log2(double(K_)));
    std::map<int64_t, double> elements;  // of each row of the left side
    size_t turn = 0;
    bool any = false;
    for (const auto& [offset, of] : rows) {
      const double sign = turn % 2 ? -1 : 1;
      double x = 0;
      for (size_t n = turn / 2 % std::size(kBinades) + 1; n-- > 0 && x == 0;) {
        const int own = kBinades[n] - depth - right_of(b_.dtype);
        if (own > reach.most) continue;
        const double element = drawn(a_.dtype, sign * std::ldexp(1, own));
        if (element != 0 && fits(of, element)) x = element;
      }
      if (x == 0 && !fits(of, 0)) return false;
      any |= x != 0;
      elements[offset] = x;
      ++turn;
    }
    if (!any) return false;
    write(elements);
    return true;
  }

 private:
  static int right_of(Dtype t) { return reach_of(t).right; }

  // Of the right side all of a column; every third is half of the others.
  double column(int64_t j) const { return std::ldexp(j % 3 == 2 ? 0.5 : 1, right_of(b_.dtype)); }

  // Whether the function is finite and has its bits in fp32 where a row has this element.
  bool fits(const std::vector<Row>& of, double element) {
    const double most = largest_of(form_.dtype);
    for (const Row& row : of) {
      scope_.indices["b"] = row.b, scope_.indices["h"] = row.h, scope_.indices["i"] = row.i;
      for (int64_t j = 0; j < (of_columns_ ? N_ : std::min<int64_t>(N_, 3)); ++j) {
        scope_.indices["j"] = j;
        scope_.scores[0] = double(K_) * element * column(j);
        const double x = spec::evaluate(form_.product->value, scope_),
                     rounded = evaluate_in_fp32(form_.product->value, scope_);
        if (!(std::fabs(x) <= most && std::fabs(rounded - x) <= 0x1p-9 * std::fabs(x) + 0x1p-120))
          return false;
      }
    }
    return true;
  }

  void write(const std::map<int64_t, double>& elements) {
    for (const auto& [offset, x] : elements)
      for (int64_t d = 0; d < K_; ++d) a_.values[offset + d * left_["d"]] = x;
    for (int64_t b = 0; b < B_; ++b)
      for (int64_t h = 0; h < form_.H.constant; ++h)
        for (int64_t d = 0; d < K_; ++d)
          for (int64_t j = 0; j < N_; ++j)
            b_.values[b * right_["b"] + h * right_["h"] + d * right_["d"] + j * right_["j"]] =
                column(j);
  }

  const Form& form_;
  Tensor &a_, &b_;
  std::map<std::string, int64_t> left_, right_;
  int64_t M_, N_, K_, B_;
  bool of_columns_;
  spec::Scope scope_;
};

}  // namespace

bool plant_products(const Form& form, Problem& problem) { return Planter(form, problem).plant(); }

void plant_ends(const Form& form, Problem& problem) {
  constexpr int64_t kEnds = 80;  // more than a step
  Tensor& a = problem.tensors.at(form.product->a.argument);
  const int64_t K = spec::value_of(form.D, problem.sizes);
  const int64_t stride = spec::strides_of(form.product->a, a)["d"];
  for (int64_t n = 0; n < a.count(); ++n) {
    const int64_t d = n / stride % K;
    if (d >= kEnds && d < K - kEnds) a.values[n] = 0;
  }
}

}  // namespace kw::check::families
