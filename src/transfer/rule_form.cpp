// What the rules take for granted, checked: nothing is changed here.
//
// The kernel computes one softmax of scores q k^T, times v, for grouped heads, and writes the
// output and its log-sum-exp. A form that is anything else is refused. Operands in another order of
// dimensions are only a matter of strides: the binding says which of the user's dimensions is which
// of the kernel's. Sizes that the user's code fixes become conditions.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "transfer/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

bool is_index(const ExprPtr& e, const std::string& name) {
  return e->kind == Kind::index && e->name == name;
}

// The kernel's dims (batch, head, row, column) of an operand, as places among the user's.
bool bind_operand(Edit& edit, const spec::Operand& operand, const std::string& argument, bool key) {
  const spec::Form& form = edit.form;
  const int64_t group = form.G.constant ? form.H.constant / form.G.constant : 1;
  const ExprPtr h = spec::leaf(Kind::index, spec::Type::integer, "h");
  const ExprPtr head = key ? spec::binary("//", h, spec::integer(group)) : h;
  const auto is_dim = [&](int dim, const ExprPtr& e) {
    if (dim == 1) return spec::equal(e, head);
    return is_index(e, dim == 0 ? "b" : dim == 2 ? (key ? "j" : "i") : "d");
  };
  Binding binding{argument, operand.argument, {}};
  for (int dim = 0; dim < 4; ++dim)
    for (size_t n = 0; n < operand.indices.size(); ++n)
      if (is_dim(dim, operand.indices[n])) binding.dims.push_back(static_cast<int>(n));
  if (binding.dims.size() != 4 || operand.indices.size() != 4) {
    std::string indices;
    for (const ExprPtr& e : operand.indices) indices += (indices.empty() ? "" : ", ") + print(e);
    const spec::Argument* a = form.argument(operand.argument);
    return edit.refuse(
        "transfer.operand", a ? a->span : Span{},
        fmt::format("the function reads {}[{}] where the kernel reads {}[b, {}, {}, d]",
                    operand.argument, indices, argument, key ? print(head) : "h", key ? "j" : "i"),
        "supported are four dimensions, batch, heads, sequence and head dimension, in any order");
  }
  edit.result.bindings.push_back(std::move(binding));
  return true;
}

std::string dims_text(const std::vector<std::string>& dims) {
  std::string out;
  for (const std::string& d : dims) out += (out.empty() ? "" : ", ") + d;
  return out;
}

bool bind_output(Edit& edit) {
  const std::vector<std::string>& user = edit.form.output_dims;
  Binding binding{edit.facts.o, "", {}};
  for (const char* dim : {"b", "h", "i", "d"}) {
    const auto at = std::find(user.begin(), user.end(), dim);
    if (at != user.end()) binding.dims.push_back(static_cast<int>(at - user.begin()));
  }
  if (binding.dims.size() != 4 || user.size() != 4)
    return edit.refuse(
        "transfer.output", {},
        fmt::format("the output is [{}], the kernel writes [b, h, i, d]", dims_text(user)),
        "supported is an output of these four dimensions in any order");
  edit.result.bindings.push_back(std::move(binding));
  return true;
}

bool fixed_sizes(Edit& edit) {
  const spec::Form& form = edit.form;
  const Facts& f = edit.facts;
  const std::pair<const spec::Size*, std::string> sizes[] = {{&form.B, f.batch},
                                                             {&form.H, f.heads},
                                                             {&form.G, f.groups},
                                                             {&form.M, f.queries},
                                                             {&form.N, f.keys}};
  for (const auto& [size, letter] : sizes)
    if (size->name.empty() && !edit.condition(fmt::format("{} == {}", letter, size->constant),
                                              "the user's function fixes this size"))
      return false;
  if (!form.M.name.empty() && form.M.name == form.N.name)
    return edit.condition(fmt::format("{} == {}", f.queries, f.keys),
                          "the user's function has as many queries as keys");
  return true;
}

// The value of an integer param of the program; 0 if it has none of that name.
int64_t param(const tl::Program& program, const std::string& name) {
  int64_t value = 0;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (s.op != tl::Op::param) return;
    for (const tl::Item& d : s.items("d"))
      if (d.name == name && d.expr && d.expr->kind == tl::ExprKind::integer)
        value = std::stoll(d.expr->text);
  });
  return value;
}

bool head_dimension(Edit& edit) {
  const int64_t d = param(edit.program, edit.facts.dim);
  for (const spec::Size& size : {edit.form.D, edit.form.Dv}) {
    if (size.name.empty() && size.constant == d) continue;
    return edit.refuse("transfer.head_dim", {},
                       fmt::format("the head dimension is {}, the kernel's {} is {}",
                                   size.name.empty() ? std::to_string(size.constant) : size.name,
                                   edit.facts.dim, d),
                       fmt::format("supported is {} for q, k and v", d));
  }
  return true;
}

bool element_type(Edit& edit) {
  const tl::Stmt* element = edit.program.find(tl::Op::element);
  if (element && element->word("t") == kw::name(edit.form.dtype)) return true;
  return edit.refuse(
      "transfer.dtype", {},
      fmt::format("the function computes in {}, the kernel in {}", kw::name(edit.form.dtype),
                  element ? element->word("t") : "no element type"),
      "supported is the kernel's element type");
}

}  // namespace

bool rule_form(Edit& edit) {
  const spec::Form& form = edit.form;
  if (form.terms.size() != 1)
    return edit.refuse("transfer.terms", {},
                       fmt::format("the output is a sum of {} softmax terms, the kernel has one",
                                   form.terms.size()),
                       "supported is one softmax");
  if (form.epilogue && form.epilogue->kind != Kind::output)
    return edit.refuse("transfer.epilogue", form.epilogue->span,
                       fmt::format("the output is {} of the attention's o", print(form.epilogue)),
                       "supported is the attention's output as it is; apply the rest outside");
  if (edit.term.finite_mask)
    return edit.refuse("transfer.finite_mask", edit.term.keep ? edit.term.keep->span : Span{},
                       "scores are masked by a large finite number, and a row may keep no key: "
                       "such a row is a mean over all keys, which the kernel makes 0",
                       "supported is masking by float('-inf'), or a mask that keeps a key in "
                       "every row");
  const spec::Term& term = edit.term;
  return element_type(edit) && head_dimension(edit) &&
         bind_operand(edit, term.q, edit.facts.q, false) &&
         bind_operand(edit, term.k, edit.facts.k, true) &&
         bind_operand(edit, term.v, edit.facts.v, true) && bind_output(edit) && fixed_sizes(edit);
}

}  // namespace kw::transfer
