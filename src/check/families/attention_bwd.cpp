// The check of the gradients of attention: its operands, what the forward kernel has saved, and the
// output's gradient, which the kernel reads by tiles and by rows.
#include "operator/families/attention_bwd/attention_bwd.h"

#include "check/families/attention.h"

namespace kw::check::families {
namespace {

using spec::Form;
using spec::Gradients;
using spec::Problem;

// [B, the case's heads, M, Dv] of the output or its gradient, which are as the function returns it.
Tensor of_heads(const Form& form, const Problem& problem, const char* name, const Case& c) {
  const Tensor& from = problem.tensors.at(name);
  std::map<std::string, int64_t> stride, extent;
  int64_t step = from.count();
  for (size_t d = 0; d < from.shape.size(); ++d) {
    const std::string& index = form.gradients->dims[d];
    step = from.shape[d] ? step / from.shape[d] : 0;
    stride[index] = step;
    extent[index] = from.shape[d];
  }
  const auto extent_of = [&](const char* index) { return extent.count(index) ? extent[index] : 1; };
  Tensor to(from.dtype, {extent_of("b"), int64_t(c.heads.size()), extent_of("i"), extent_of("d")});
  double* out = to.values.data();
  for (int64_t b = 0; b < to.shape[0]; ++b)
    for (const int64_t h : c.heads)
      for (int64_t i = 0; i < to.shape[2]; ++i)
        for (int64_t d = 0; d < to.shape[3]; ++d)
          *out++ =
              from.values[b * stride["b"] + h * stride["h"] + i * stride["i"] + d * stride["d"]];
  return to;
}

class AttentionBwd : public Attention {
 public:
  void bind(const tl::Program& program, const Form& form, const Problem& problem, const Case& c,
            const std::vector<int64_t>& key_heads, exec::Launch& launch) const override {
    Attention::bind(program, form, problem, c, key_heads, launch);
    launch.tensors["o"] = of_heads(form, problem, Gradients::kOutput, c);
    launch.tensors["o_rest"] = of_heads(form, problem, Gradients::kRest, c);
    launch.tensors["d_o"] = launch.tensors["do_rows"] =
        of_heads(form, problem, Gradients::kOfOutput, c);
    const Tensor& lse = problem.tensors.at(Gradients::kLogSum);
    Tensor picked(lse.dtype, {lse.shape[0], int64_t(c.heads.size()), lse.shape[2]});
    double* out = picked.values.data();
    for (int64_t b = 0; b < lse.shape[0]; ++b)
      for (const int64_t h : c.heads)
        for (int64_t i = 0; i < lse.shape[2]; ++i) *out++ = lse.at({b, h, i});
    launch.tensors["lse"] = std::move(picked);
  }

  // Three products more for each element of the scores than the forward pass has.
  int64_t depth(const Form&, const std::map<std::string, int64_t>&) const override { return 2; }

  proofs::Report indices(const tl::Program&, const Form&, const proofs::Solver&) const override {
    proofs::Report none;
    none.not_run = "of gradients nothing is proved";
    return none;
  }

  std::optional<Counterexample> coverage(const Form&, const Problem&, const Case&,
                                         const exec::Outcome&, int&) const override {
    return std::nullopt;
  }
  bool can_locate(const Form&, const std::string&) const override { return false; }
  std::unique_ptr<Locator> exact_locator(const Case&, const Form&, const Problem&,
                                         const exec::Launch&) const override {
    return nullptr;
  }
};

}  // namespace

const Family& attention_bwd() {
  static const AttentionBwd family;
  return family;
}

}  // namespace kw::check::families
