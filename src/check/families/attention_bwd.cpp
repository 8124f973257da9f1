// The check of the gradients of attention: its operands, what the forward kernel has saved, and the
// output's gradient, which the kernel reads by tiles and by rows.
#include "operator/families/attention_bwd/attention_bwd.h"

#include "check/families/attention.h"

namespace kw::check::families {
namespace {

using spec::Form;
using spec::Gradients;
using spec::Problem;

class AttentionBwd : public Attention {
 public:
  void bind(const tl::Program& program, const Form& form, const Problem& problem, const Case& c,
            const std::vector<int64_t>& key_heads, exec::Launch& launch) const override {
    Attention::bind(program, form, problem, c, key_heads, launch);
    const int64_t B = spec::value_of(form.B, problem.sizes),
                  M = spec::value_of(form.M, problem.sizes);
    const auto of_output = [&](const char* name) {
      return gather(spec::attention_bwd::of_output(form, name), problem, "i", c.heads, B, M,
                    form.Dv.constant);
    };
    const auto of_rows = [&](const char* name, const std::vector<std::string>& dims) {
      spec::Operand by_rows{name, {}, {}};
      for (const std::string& index : dims)
        by_rows.indices.push_back(spec::leaf(spec::Kind::index, spec::Type::integer, index));
      Tensor out = gather(by_rows, problem, "i", c.heads, B, M, 1);
      out.shape.pop_back();
      return out;
    };
    launch.tensors["d_o"] = of_output(Gradients::kOfOutput);
    if (!form.gradients->log_sum_dims.empty())
      launch.tensors["d_lse"] = of_rows(Gradients::kOfLogSum, form.gradients->log_sum_dims);
    if (spec::takes_saved(form) || form.gradients->of_epilogue)
      launch.tensors["do_rows"] = launch.tensors["d_o"];
    if (!spec::takes_saved(form)) return;
    launch.tensors["o"] = of_output(Gradients::kOutput);
    launch.tensors["lse"] = of_rows(Gradients::kLogSum, {"b", "h", "i"});
  }

  // The gradients of scores.
  bool rounds_between(const Form&) const override { return true; }

  // Their rows are zeros, and that is what their weights are multiplied with.
  bool hides_keys_past_the_end(const Form&) const override { return true; }

  // Three products more for each element of the scores than the forward pass has.
  int64_t depth(const Form&, const std::map<std::string, int64_t>&) const override { return 2; }

  std::optional<Counterexample> coverage(const Form&, const Problem&, const Case&,
                                         const exec::Outcome&, int&) const override {
    return std::nullopt;
  }
  bool can_locate(const tl::Program&, const Form&, const std::string&) const override {
    return false;
  }
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
