#include "transfer/editing/edits.h"

#include <fmt/format.h>

#include <tuple>

namespace kw::transfer {

bool add_condition(Result& result, const std::string& holds, std::string why,
                   Diagnostics& diagnostics) {
  const tl::ExprPtr read = tl::parse_expr(holds, diagnostics);
  if (!read) return false;
  for (const auto& known : result.conditions)
    if (tl::print(known.holds) == tl::print(read) && known.why == why) return true;
  result.conditions.push_back({read, std::move(why)});
  return true;
}

bool fix_sizes(Result& result, const spec::Form& form, const Letters& letters,
               Diagnostics& diagnostics) {
  const bool own = form.heads == spec::Form::Heads::own;
  const bool any_heads = spec::heads_are_alike(form) && !own && form.H.constant > 1;
  const char *heads = own ? "the function computes with the number of heads, or fixes it"
                          : "the function computes with the number of a head",
             *fixed = "the user's function fixes this size";
  const auto condition = [&](const std::string& holds, const char* why) {
    return add_condition(result, holds, why, diagnostics);
  };
  const std::tuple<const spec::Size*, std::string, const char*> sizes[] = {
      {&form.B, letters.batch, fixed},
      {&form.H, letters.heads, heads},
      {&form.G, letters.groups, heads},
      {&form.M, letters.queries, fixed},
      {&form.N, letters.keys, fixed}};
  for (const auto& [size, letter, why] : sizes)
    if (size->name.empty() && !(why == heads && any_heads && size->constant > 1) &&
        !condition(fmt::format("{} == {}", letter, size->constant), why))
      return false;
  return form.M.name.empty() || form.M.name != form.N.name ||
         condition(fmt::format("{} == {}", letters.queries, letters.keys),
                   "the user's function has as many queries as keys");
}

bool replace_block(std::vector<tl::Stmt>& block, const std::vector<std::string>& texts,
                   Diagnostics& diagnostics) {
  std::vector<tl::Stmt> out;
  for (const std::string& text : texts) {
    std::optional<tl::Stmt> s = tl::parse_statement(text, diagnostics);
    if (!s) return false;
    out.push_back(std::move(*s));
  }
  block = std::move(out);
  return true;
}

spec::ExprPtr renamed(const spec::ExprPtr& e, const std::map<std::string, std::string>& sizes,
                      const std::map<std::string, std::string>& arguments) {
  using spec::Kind;
  return spec::rewrite(e, [&](const spec::ExprPtr& x) -> spec::ExprPtr {
    if (x->kind != Kind::size && x->kind != Kind::argument && x->kind != Kind::read) return nullptr;
    const auto& names = x->kind == Kind::size ? sizes : arguments;
    const auto found = names.find(x->name);
    if (found == names.end() || found->second == x->name) return nullptr;
    spec::Expr out = *x;
    out.name = found->second;
    return std::make_shared<const spec::Expr>(std::move(out));
  });
}

}  // namespace kw::transfer
