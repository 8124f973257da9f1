#include "driver/start/by_rules.h"

#include <algorithm>

#include "driver/family.h"
#include "propose/bindings.h"
#include "tl/syntax/lexer.h"
#include "transfer/editing/declarations.h"

namespace kw::driver {
namespace {

// Values of a kernel's constants, as TL writes them.
std::vector<std::pair<std::string, std::string>> constants_of(const tl::Program& program) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const tl::Stmt& s : program.body)
    if (s.op == tl::Op::param || s.op == tl::Op::toggle)
      for (const tl::Item& d : s.names()) out.emplace_back(d.name, d.expr ? tl::print(d.expr) : "");
  return out;
}

}  // namespace

std::optional<transfer::Result> by_rules(const tl::Program& source, const spec::Form& form,
                                         const transfer::Target& target, bool plain,
                                         Diagnostics& diagnostics) {
  if (plain) return transfer::transfer(source, form, target, diagnostics);
  auto taken = transfer::begin(source, form, {target.name, {}, 0}, diagnostics);
  propose::Refusal refusal;
  if (!taken || propose::bind_arguments(*taken, {}, form, refusal)) return taken;
  diagnostics.error(refusal.code, {}, refusal.sentence).hint =
      "arguments have the names that they have in the function";
  return std::nullopt;
}

std::vector<transfer::Constant> constants_set(const tl::Program& was, const tl::Program& now) {
  std::vector<transfer::Constant> out;
  const auto before = constants_of(was);
  for (const auto& [name, value] : constants_of(now)) {
    const auto same = std::find(before.begin(), before.end(), std::pair(name, value));
    if (same != before.end()) continue;
    if (value == "true" || value == "false") out.push_back({name, value == "true"});
    if (tl::is_integer(value) && value.size() <= 18)  // what is longer is no constant of a kernel
      out.push_back({name, int64_t{std::stoll(value)}});
  }
  return out;
}

transfer::Tiles row_of(const std::vector<transfer::Constant>& constants, const spec::Form& form,
                       const std::string& target, const tl::Program& kernel) {
  transfer::Tiles row;
  row.targets = {target};
  Family::of(form).set_dims(form, row);
  row.place = "the earlier variant";
  row.users = true;
  for (const transfer::Constant& c : constants)
    if (transfer::constant_named(kernel, c.name)) row.constants.push_back(c);
  return row;
}

}  // namespace kw::driver
