#include "propose/bindings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "transfer/change.h"
#include "transfer/families/attention/facts.h"

namespace kw::propose {
namespace {

std::set<std::string> names_of_arguments(const tl::Program& program) {
  std::set<std::string> out;
  if (const tl::Stmt* args = program.find(tl::Op::args))
    for (const tl::Stmt& s : args->body)
      for (const tl::Item& d : s.names()) out.insert(d.name);
  return out;
}

// `x > -2^29`, `x < 2^29`
void bound(transfer::Result& result, const std::string& argument) {
  constexpr int64_t kFar = 1 << 29;
  const tl::ExprPtr x = tl::name(argument), far = tl::integer(kFar);
  const char* why = "positions are computed in 32 bits";
  result.conditions.push_back({tl::binary(">", x, tl::unary("-", far)), why});
  result.conditions.push_back({tl::binary("<", x, far), why});
}

// Whether the caller gives it: no output, no memory of the kernel's own, no value of its own.
bool is_given(const tl::Stmt& s, const tl::Item& d) {
  if (s.op == tl::Op::arg_tensor || s.op == tl::Op::arg_tiled) return s.access()[0].name == "in";
  return (s.op == tl::Op::arg_i32 || s.op == tl::Op::arg_f32) && !d.expr;
}

bool is_bound(const transfer::Result& result, const std::string& argument) {
  return std::any_of(result.bindings.begin(), result.bindings.end(),
                     [&](const transfer::Binding& b) { return b.argument == argument; });
}

bool is_size(const tl::Program& program, const std::string& letter) {
  bool found = false;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (s.op == tl::Op::arg_size)
      for (const tl::Item& d : s.names()) found |= d.name == letter;
  });
  return found;
}

// An operand of a later product may be declared over sizes of its own; these are the kernel's.
void sizes_agree(transfer::Result& result, const std::string& operand, const std::string& heads,
                 const std::string& rows) {
  const tl::Stmt* declared = transfer::declaration_of_argument(result.program, operand);
  if (!declared || declared->dims().size() != 4) return;
  const std::vector<tl::Item>& letters = declared->dims();
  const tl::ExprPtr due[] = {tl::name("B"), heads.empty() ? tl::integer(1) : tl::name(heads),
                             tl::name(rows)};
  for (size_t d = 0; d < std::size(due); ++d)
    if (is_size(result.program, letters[d].name) && !due[d]->is_name(letters[d].name))
      result.conditions.push_back({tl::binary("==", tl::name(letters[d].name), due[d]),
                                   "an operand has the function's sizes"});
}

void of_operands(transfer::Result& result, const spec::Form& form) {
  std::set<std::string> told = {"q", "k", "v"};
  const auto look = [&](size_t term, char letter, size_t product, const spec::Operand& o) {
    const spec::ExprPtr head = spec::head_of(o);
    const std::string name = form.operand_name(term, letter, product);
    const bool shared = head && head->kind == spec::Kind::index && letter != 'q';
    const bool as_queries = form.H.constant != form.G.constant && shared;
    if (told.insert(name).second)
      sizes_agree(result, name,
                  !head                         ? ""
                  : letter == 'q' || as_queries ? "H"
                                                : "G",
                  letter == 'q' ? "M" : "N");
  };
  for (size_t t = 0; t < form.terms.size(); ++t) {
    const spec::Term& term = form.terms[t];
    look(t, 'q', 0, term.q), look(t, 'k', 0, term.k), look(t, 'v', 0, term.v);
    for (size_t p = 0; p < term.more.size(); ++p)
      look(t, 'q', p + 1, term.more[p].q), look(t, 'k', p + 1, term.more[p].k);
  }
}

}  // namespace

bool bind_arguments(transfer::Result& result, const tl::Program& source, const spec::Form& form,
                    Refusal& refusal) {
  const std::set<std::string> known = names_of_arguments(source);
  const tl::Stmt* args = result.program.find(tl::Op::args);
  for (const tl::Stmt& s : args ? args->body : std::vector<tl::Stmt>())
    for (const tl::Item& d : s.names()) {
      if (known.count(d.name) || !is_given(s, d) || is_bound(result, d.name)) continue;
      const std::string user = form.user_name(d.name);
      const spec::Argument* a = form.argument(user);
      const bool tensor = s.op == tl::Op::arg_tensor || s.op == tl::Op::arg_tiled;
      if (!a || a->is_tensor != tensor || (tensor && a->dims.size() != s.dims().size())) {
        refusal = {"propose.argument",
                   fmt::format("the program takes `{}` and the function has no such argument",
                               tl::print_head(s))};
        return false;
      }
      transfer::Binding binding{d.name, user, {}};
      for (size_t n = 0; tensor && n < a->dims.size(); ++n)
        binding.dims.push_back(static_cast<int>(n));
      result.bindings.push_back(std::move(binding));
      if (s.op == tl::Op::arg_i32) bound(result, d.name);
    }
  of_operands(result, form);
  return true;
}

void describe_change(transfer::Result& result, const tl::Program& source, const std::string& who) {
  const transfer::Change c = transfer::change(source, result.program);
  result.statements_removed = static_cast<int>(c.removed.size());
  result.statements_added = static_cast<int>(c.added.size());
  result.proposer = fmt::format("model ({})", who);
  result.rules.push_back({result.proposer, fmt::format("{}\n", fmt::join(c.removed, "\n")),
                          fmt::format("{}\n", fmt::join(c.added, "\n"))});
}

}  // namespace kw::propose
