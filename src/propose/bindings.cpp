#include "propose/bindings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "transfer/edit.h"

namespace kw::propose {
namespace {

std::set<std::string> arguments_of(const tl::Program& program) {
  std::set<std::string> out;
  if (const tl::Stmt* args = program.find(tl::Op::args))
    for (const tl::Stmt& s : args->body)
      for (const tl::Item& d : s.items("d")) out.insert(d.name);
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
  if (s.op == tl::Op::arg_tensor || s.op == tl::Op::arg_tiled) return s.items("t")[0].name == "in";
  return (s.op == tl::Op::arg_i32 || s.op == tl::Op::arg_f32) && !d.expr;
}

}  // namespace

bool bind_arguments(transfer::Result& result, const tl::Program& source, const spec::Form& form,
                    Refusal& refusal) {
  const std::set<std::string> known = arguments_of(source);
  const tl::Stmt* args = result.program.find(tl::Op::args);
  for (const tl::Stmt& s : args ? args->body : std::vector<tl::Stmt>())
    for (const tl::Item& d : s.items("d")) {
      if (known.count(d.name) || !is_given(s, d)) continue;
      const std::string user = form.user_name(d.name);
      const spec::Argument* a = form.argument(user);
      const bool tensor = s.op == tl::Op::arg_tensor || s.op == tl::Op::arg_tiled;
      if (!a || a->is_tensor != tensor || (tensor && a->dims.size() != s.items("s").size())) {
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
