// What the rules take for granted, checked, and which argument is which: nothing is changed here.
//
// Gradients have the order of dimensions that their operands have, the output's gradient that of
// the output: all are a matter of strides. Sizes that the user's code fixes become conditions.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/editing/declarations.h"
#include "transfer/editing/edits.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

bool has_arguments(Edit& edit) {
  for (const char* name : {"q", "k", "v", "o", "d_o", "do_rows", "lse", "dq", "dk", "dv", "scale"})
    if (!declaration_of_argument(edit.program, name))
      return edit.refuse("transfer.kernel", {},
                         fmt::format("this kernel gives no gradients of attention: it has no "
                                     "argument {}",
                                     name),
                         "kernels/sm90/attention_bwd.cu is one");
  if (edit.queries_def() && edit.places()) return true;
  return edit.refuse("transfer.kernel", {},
                     edit.places() ? "this kernel has no function query_blocks"
                                   : "this kernel has no step with a mask of its scores, their "
                                     "weights and their gradients",
                     "kernels/sm90/attention_bwd.cu has them");
}

bool bind_operands(Edit& edit) {
  const char* names[] = {"q", "k", "v"};
  for (size_t n = 0; n < 3; ++n) {
    const spec::Output& gradient = edit.form.outputs[n];
    const spec::Argument* given = edit.form.argument(gradient.of);
    if (gradient.dims.size() != given->dims.size())
      return edit.refuse("transfer.operand", given->span,
                         fmt::format("{} has {} dimensions, of which {} are read", gradient.of,
                                     given->dims.size(), gradient.dims.size()),
                         "supported are batch, heads, sequence and head dimension, in any order");
    edit.result.bindings.push_back({names[n], gradient.of, places(gradient.axes, gradient.dims)});
  }
  return true;
}

void bind_others(Edit& edit) {
  using spec::Gradients;
  const std::vector<int> of_output = places("bhid", edit.form.gradients->dims);
  if (spec::takes_saved(edit.form)) {
    edit.result.bindings.push_back({"do_rows", Gradients::kOfOutput, of_output});
    edit.result.bindings.push_back({"o", Gradients::kOutput, {0, 1, 2, 3}});
    edit.result.bindings.push_back({"lse", Gradients::kLogSum, {0, 1, 2}});
  }
  edit.result.bindings.push_back({"d_o", Gradients::kOfOutput, of_output});
  for (const spec::Output& o : edit.form.outputs)
    edit.result.bindings.push_back({o.name, "", places(o.axes, o.dims)});
}

}  // namespace

std::vector<int> places(const std::string& axes, const std::vector<std::string>& dims) {
  std::vector<int> out;
  for (const char axis : axes) {
    const auto at = std::find(dims.begin(), dims.end(), std::string(1, axis));
    out.push_back(at == dims.end() ? -1 : static_cast<int>(at - dims.begin()));
  }
  return out;
}

bool rule_form(Edit& edit) {
  if (!has_arguments(edit) || !bind_operands(edit)) return false;
  bind_others(edit);
  return fix_sizes(edit.result, edit.form, kLetters, edit.diagnostics);
}

}  // namespace kw::transfer::bwd
