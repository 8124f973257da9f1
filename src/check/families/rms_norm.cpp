// The check of an RMS normalisation: its rows and its weight, by the names that its kernels have.
#include <cmath>

#include "check/family.h"

namespace kw::check::families {
namespace {

// Rows of a norm, as far as squares in fp32 go: whole rows of 2^50 (beyond which nothing is
// claimed), one such number among ordinary ones, and rows of each power of two up to it and down to
// 2^-63, whose squares are the last normal ones. Of two that are added one is large, and small are
// both.
void plant_reach(const spec::Form& form, spec::Problem& problem) {
  std::vector<std::string> added = {form.norm->x.argument};
  if (form.norm->residual) added.push_back(form.norm->residual->argument);
  for (size_t which = 0; which < added.size(); ++which) {
    Tensor& t = problem.tensors.at(added[which]);
    const int top = t.dtype == Dtype::f16 ? 15 : 50, bottom = t.dtype == Dtype::f16 ? 14 : 63;
    const int64_t columns = t.shape.empty() ? 1 : t.shape.back();
    for (int64_t n = 0; n < t.count(); ++n) {
      const int64_t row = n / columns, turn = row / 4, kind = row % 4;
      double& x = t.values[n];
      const double largest = std::copysign(std::ldexp(1, top), x);
      const bool large = turn % int64_t(added.size()) == int64_t(which);
      const bool here = kind == 0 || (kind == 1 && n % columns == turn * 37 % columns);
      if (large && here) x = largest;
      if (large && kind == 2) x = std::ldexp(x, int(turn * 11 % (top - 2)));
      if (kind == 3) x = std::ldexp(x, -1 - int(turn * 11 % bottom));
      x = drawn(t.dtype, x);
    }
  }
}

class RmsNorm : public Family {
 public:
  void bind(const tl::Program&, const spec::Form& form, const spec::Problem& problem, const Case&,
            const std::vector<int64_t>&, exec::Launch& launch) const override {
    const spec::Norm& n = *form.norm;
    const auto rows = [&](const spec::Operand& operand) {
      return operand_of(operand, problem, form, "i", spec::value_of(form.M, problem.sizes), "d",
                        form.D.constant);
    };
    launch.tensors["x"] = rows(n.x);
    if (n.residual) launch.tensors["residual"] = rows(*n.residual);
    launch.tensors["weight"] = problem.tensors.at(n.weight.argument);
  }

  // Squares of small numbers vanish beside what is added to them, and those of large ones overflow:
  // of a mean that is taken in another way.
  std::vector<Planted> further_planted(const spec::Form&) const override {
    return {Planted::small, Planted::large, Planted::reach};
  }

  bool plant(Planted, const spec::Form& form, spec::Problem& problem) const override {
    plant_reach(form, problem);
    return true;
  }

  // A row is as much work as it has columns.
  int64_t depth(const spec::Form& form, const std::map<std::string, int64_t>&) const override {
    return 1 + form.D.constant / 64;
  }
};

}  // namespace

const Family& rms_norm() {
  static const RmsNorm family;
  return family;
}

}  // namespace kw::check::families
