// The check of an RMS normalisation: its rows and its weight, by the names that its kernels have.
#include "check/family.h"

namespace kw::check::families {
namespace {

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

  std::vector<std::string> squared(const spec::Form& form) const override {
    std::vector<std::string> added = {form.norm->x.argument};
    if (form.norm->residual) added.push_back(form.norm->residual->argument);
    return added;
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
