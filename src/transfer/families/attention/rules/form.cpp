// What the rules take for granted, checked: nothing is changed here.
//
// The kernel computes weights of scores q k^T, times v, for grouped heads, and writes the
// output and its log-sum-exp. A form that is anything else is refused. Operands in another order of
// dimensions are only a matter of strides: the binding says which of the user's dimensions is which
// of the kernel's. Sizes that the user's code fixes become conditions.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "transfer/editing/edits.h"
#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

bool is_index(const ExprPtr& e, const std::string& name) {
  return e->kind == Kind::index && e->name == name;
}

bool is_zero(const ExprPtr& e) { return e->kind == Kind::number && e->value == 0; }

// A batch or a head of its own may be left out by the user's tensor.
bool may_be_absent(const spec::Size& size) { return size.name.empty() && size.constant == 1; }

// The kernel's dims (batch, head, row, column) as places among the user's `rank` dims, of which
// `is_dim(dim, n)` says what they are; nothing if the two do not match. Of the first two `absent`
// says whether the user's tensor may lack them.
template <class IsDim>
std::optional<std::vector<int>> match_dims(const bool (&absent)[2], size_t rank,
                                           const IsDim& is_dim) {
  std::vector<int> out;
  std::vector<bool> used(rank, false);
  for (int dim = 0; dim < 4; ++dim) {
    size_t n = 0;
    while (n < rank && (used[n] || !is_dim(dim, n))) ++n;
    if (n < rank) {
      used[n] = true;
      out.push_back(static_cast<int>(n));
    } else if (dim <= 1 && absent[dim]) {
      out.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  if (std::find(used.begin(), used.end(), false) != used.end()) return std::nullopt;
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// Of a packed kernel, heads and rows are both of the user's heads, and the one query is left out.
Binding of_rows(const Edit& edit, Binding binding) {
  binding.group = edit.group;
  if (edit.group > 1) binding.dims[2] = binding.dims[1];
  return binding;
}

// Of the kernel's argument that is read at `head`, or has one head (null).
bool bind_operand(Edit& edit, const spec::Operand& operand, const std::string& argument, bool key,
                  const ExprPtr& head) {
  const spec::Form& form = edit.form;
  const spec::Argument* given = form.argument(operand.argument);
  const auto equals_head = [&](const ExprPtr& e) { return head && spec::equal(e, head); };
  const std::optional<spec::Pages> pages = key ? spec::pages_of(operand) : std::nullopt;
  const bool reads_head = std::any_of(operand.indices.begin(), operand.indices.end(), equals_head);
  const auto is_dim = [&](int dim, size_t n) {
    const ExprPtr& e = operand.indices[n];
    const bool single = given && n < given->dims.size() && given->dims[n].constant == 1;
    const bool one_head = single && is_zero(e) && !reads_head;
    const bool one_query = single && is_zero(e) && !key && (form.M.constant == 1 || edit.group > 1);
    if (dim == 1) return (head && spec::equal(e, head)) || one_head;
    if (pages && (dim == 0 || n == pages->page)) return dim == 0 && n == pages->page;
    if (pages && (dim == 2 || n == pages->row)) return dim == 2 && n == pages->row;
    if (dim == 2 && one_query) return true;
    return is_index(e, dim == 0 ? "b" : dim == 2 ? (key ? "j" : "i") : "d");
  };
  const bool absent[] = {may_be_absent(form.B), !head || may_be_absent(key ? form.G : form.H)};
  const auto dims = match_dims(absent, operand.indices.size(), is_dim);
  if (!dims) {
    std::vector<std::string> indices;
    for (const ExprPtr& e : operand.indices) indices.push_back(print(e));
    return edit.refuse(
        "transfer.operand", given ? given->span : Span{},
        fmt::format("the function reads {}[{}] where the kernel reads {}[b, {}, {}, d]",
                    operand.argument, joined(indices), argument, head ? print(head) : "0",
                    key ? "j" : "i"),
        "supported are batch, heads, sequence and head dimension, in any order; a batch or a head "
        "of size 1 may be absent");
  }
  if (key)
    edit.result.bindings.push_back({argument, operand.argument, *dims});
  else
    edit.result.bindings.push_back(of_rows(edit, {argument, operand.argument, *dims}));
  return true;
}

bool bind_output(Edit& edit) {
  const std::vector<std::string>& user = edit.form.output_dims;
  const auto is_dim = [&](int dim, size_t n) { return user[n] == std::string(1, "bhid"[dim]); };
  const bool absent[] = {may_be_absent(edit.form.B), may_be_absent(edit.form.H)};
  const auto dims = match_dims(absent, user.size(), is_dim);
  if (!dims)
    return edit.refuse(
        "transfer.output", edit.place(nullptr),
        fmt::format("the output is [{}], the kernel writes [b, h, i, d]", joined(user)),
        "supported is an output of these dimensions in any order");
  edit.result.bindings.push_back(of_rows(edit, {edit.facts.o, "", *dims}));
  for (const spec::Output& lse : edit.form.outputs) {
    if (lse.name != "lse" || (edit.group == 1 && lse.dims.empty())) continue;
    Binding binding{edit.facts.lse, "", {0, 1, 2}};
    for (size_t n = 0; n < lse.dims.size(); ++n) binding.dims[lse.axes.find(lse.dims[n])] = int(n);
    edit.result.bindings.push_back(of_rows(edit, std::move(binding)));
  }
  return true;
}

bool fixed_sizes(Edit& edit) {
  const Facts& f = edit.facts;
  return fix_sizes(edit.result, edit.form, {f.batch, f.heads, f.groups, f.queries, f.keys},
                   edit.diagnostics);
}

}  // namespace

namespace {
// Refuses with a hint of its own: always false.
bool beyond(Edit& edit, const char* code, const Span& place, const std::string& why,
            const char* hint) {
  edit.diagnostics.error(code, place, why).hint = hint;
  return false;
}
}  // namespace

bool rule_form(Edit& edit) {
  const spec::Form& form = edit.form;
  if (form.terms.size() != 1)
    return edit.refuse("transfer.terms", edit.place(form.terms.at(1).score),
                       fmt::format("the output is a sum of {} softmax terms, the kernel has one",
                                   form.terms.size()),
                       "supported is one softmax");
  if (!edit.term.more.empty())
    return beyond(
        edit, "transfer.products", edit.place(edit.term.score),
        fmt::format("the score {} is made of {} products of q and k, the kernel has one",
                    print(edit.term.score), edit.term.more.size() + 1),
        "no rule writes more: `--proposer model` asks a language model for the program, and with "
        "`--api folder:DIR` a person who answers by hand (docs/llm/proposers.md)");
  if (edit.term.finite_mask)
    return edit.refuse("transfer.finite_mask", edit.place(edit.term.keep),
                       "scores are masked by a large finite number, and a row may keep no key: "
                       "such a row is a mean over all keys, which the kernel makes 0",
                       "supported is masking by float('-inf'), or a mask that keeps a key in "
                       "every row");
  return bind_form(edit);
}

bool bind_form(Edit& edit) {
  if (edit.form.returns("column_sums"))
    return beyond(
        edit, "transfer.column_sums", edit.place(nullptr),
        "the function returns the sums of its weights' columns, and TL has no statement that adds "
        "up the rows of a tile: its sums run along rows",
        "return the logsumexp instead; a second kernel sums the columns from it: "
        "examples/products/key_mass.py");
  const Facts& f = edit.facts;
  const spec::Form& form = edit.form;
  const ExprPtr h = spec::leaf(Kind::index, spec::Type::integer, "h");
  const int64_t group = form.G.constant ? form.H.constant / form.G.constant : 1;
  const ExprPtr of_keys = spec::binary("//", h, spec::integer(group));
  std::set<std::string> bound;
  for (size_t t = 0; t < edit.form.terms.size(); ++t) {
    const spec::Term& term = edit.form.terms[t];
    const std::tuple<char, const spec::Operand*, std::string> all[] = {
        {'q', &term.q, f.q}, {'k', &term.k, f.k}, {'v', &term.v, f.v}};
    for (const auto& [letter, operand, own] : all) {
      const std::string name = t == 0 ? own : edit.form.operand_name(t, letter);
      if (bound.insert(name).second &&
          !bind_operand(edit, *operand, name, letter != 'q', letter == 'q' ? h : of_keys))
        return false;
    }
    for (size_t p = 0; p < term.more.size(); ++p)
      for (const char letter : {'q', 'k'}) {
        const spec::Operand& operand = letter == 'q' ? term.more[p].q : term.more[p].k;
        const std::string name = form.operand_name(t, letter, p + 1);
        if (bound.insert(name).second &&
            !bind_operand(edit, operand, name, letter == 'k', spec::head_of(operand)))
          return false;
      }
  }
  return bind_output(edit) && fixed_sizes(edit);
}

}  // namespace kw::transfer
