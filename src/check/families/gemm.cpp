// The check of a product of matrices: its operands, and cases in what is summed over.

#include "check/families/gemm_balanced.h"
#include "check/families/gemm_products.h"
#include "check/family.h"

namespace kw::check::families {

using spec::Form;
using spec::Problem;

namespace {

class Gemm : public Family {
 public:
  // b is [B, H, N, K] where the program says that its last size is that of a.
  void bind(const tl::Program& program, const Form& form, const Problem& problem, const Case&,
            const std::vector<int64_t>&, exec::Launch& launch) const override {
    const int64_t M = spec::value_of(form.M, problem.sizes),
                  N = spec::value_of(form.N, problem.sizes),
                  K = spec::value_of(form.D, problem.sizes);
    std::map<std::string, std::string> last;  // the letter of an argument's last dimension
    tl::walk(program.body, [&](const tl::Stmt& s) {
      if (s.op != tl::Op::arg_tensor && s.op != tl::Op::arg_tiled) return;
      for (const tl::Item& d : s.names()) last[d.name] = s.dims().back().name;
    });
    const spec::Operand &a = form.product->a, &b = form.product->b;
    launch.tensors = {{"a", operand_of(a, problem, form, "i", M, "d", K)},
                      {"b", last["a"] == last["b"] ? operand_of(b, problem, form, "j", N, "d", K)
                                                   : operand_of(b, problem, form, "d", K, "j", N)}};
  }

  void resize(const Form& form, int64_t m, int64_t n,
              std::map<std::string, int64_t>& sizes) const override {
    if (!form.D.name.empty()) sizes[form.D.name] = 8 + (3 * m + n) % 200;
  }

  std::vector<Planted> further_planted(const Form& form) const override {
    if (!has_balanced(form)) return {Planted::products};
    return {Planted::balanced, Planted::products};
  }
  bool plant(Planted what, const Form& form, Problem& problem) const override {
    if (what == Planted::products) return plant_products(form, problem);
    if (what == Planted::ends) plant_ends(form, problem);
    if (what == Planted::balanced) plant_balanced(form, problem);
    return true;
  }

  int64_t depth(const Form& form, const std::map<std::string, int64_t>& sizes) const override {
    return 1 + spec::value_of(form.D, sizes) / 64;
  }
};

}  // namespace

const Family& gemm() {
  static const Gemm family;
  return family;
}

}  // namespace kw::check::families
