#include "transfer/editing/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tl/traits.h"
#include "transfer/editing/declarations.h"
#include "transfer/editing/edits.h"
#include "transfer/editing/spell.h"

namespace kw::transfer {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

std::optional<spec::RowMap> named_rows(Arguments& arguments, const spec::RowMap& map,
                                       const spec::Operand& operand, const std::string& argument,
                                       const char* row,
                                       const std::map<std::string, std::string>& others) {
  size_t column = 0;
  while (!spec::mentions(operand.indices[column], Kind::index, "d")) ++column;
  const auto index = [](const char* name) {
    return spec::leaf(Kind::index, spec::Type::integer, name);
  };
  std::set<std::string> own = {operand.argument};
  for (const auto& [name, of_kernel] : others) own.insert(name);
  const auto named = [&](const ExprPtr& e) -> ExprPtr {
    if (!arguments.add(e, own)) return nullptr;
    // Whose names are taken is told apart while the arguments get the kernel's.
    const ExprPtr apart = spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind != Kind::read || !own.contains(x->name)) return nullptr;
      const auto args = x->name != operand.argument
                            ? x->args
                            : std::vector{index("b"), index("h"), index(row), x->args[column]};
      return spec::read("(" + x->name + ")", x->type, args);
    });
    return spec::rewrite(arguments.renamed(apart), [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind != Kind::read || x->name[0] != '(') return nullptr;
      const std::string name = x->name.substr(1, x->name.size() - 2);
      return spec::read(name == operand.argument ? argument : others.at(name), x->type, x->args);
    });
  };
  spec::RowMap out;
  for (const ExprPtr& e : map.sums) out.sums.push_back(named(e));
  out.element = named(map.element);
  const bool refused = std::count(out.sums.begin(), out.sums.end(), nullptr) > 0;
  return refused || !out.element ? std::nullopt : std::optional(out);
}

namespace {

// Declares the argument anew, read or written element by element, and `rows` as it was declared.
bool declare(Editing& edit, const std::string& argument, const std::string& access,
             const std::string& rows) {
  const Stmt* found = declaration_of_argument(edit.program, argument);
  if (!found || (found->op != Op::arg_tiled && found->op != Op::arg_tensor))
    return edit.refuse("transfer.kernel", {}, "this kernel has no argument " + argument, "");
  std::vector<Stmt>& args = edit.program.find(Op::args)->body;
  size_t at = size_t(found - args.data());
  Stmt& s = args[at++];
  std::string dims;
  for (const tl::Item& d : s.dims()) dims += (dims.empty() ? "" : ", ") + d.name;
  const char* tiled = s.op == Op::arg_tiled ? "tiled " : "";
  std::vector<tl::Item>& names = s.names();
  std::erase_if(names, [&](const tl::Item& d) { return d.name == argument; });
  if (names.empty()) args.erase(args.begin() + --at);
  return edit.insert({&args, at},
                     std::vector{fmt::format("{}: {}[{}]", argument, access, dims),
                                 fmt::format("{}: {}scratch element[{}]", rows, tiled, dims)});
}

void move_to(std::vector<Stmt>& body, const std::string& from, const std::string& rows, bool in) {
  for (Stmt& s : body) {
    const bool moves = tl::is(s.op, in ? tl::Family::copy_in : tl::Family::copy_out);
    if ((moves || (!in && s.op == Op::round_sums)) && tl::base_name(s.tensor()) == from)
      s.tensor() = tl::name(rows);
    move_to(s.body, from, rows, in);
  }
}

}  // namespace

bool load_rows(Editing& edit, const std::string& argument, Dtype type, const std::string& rows) {
  move_to(edit.program.body, argument, rows, true);
  return declare(edit, argument, fmt::format("in {}", name(type)), rows);
}

bool store_rows(Editing& edit, const std::string& argument, const std::string& rows) {
  move_to(edit.program.body, argument, rows, false);
  return declare(edit, argument, "out element", rows);
}

RowLoops::RowLoops(Editing& edit, std::string warp) : edit_(edit), warp_(std::move(warp)) {
  for (const char* name : {"b", "h", "r"}) locals_[name] = edit.local(name);
}

std::string RowLoops::pass(const std::string& name, const std::string& batch,
                           const std::vector<std::string>& counts,
                           const std::vector<std::string>& loops) const {
  constexpr int kThreads = 256;
  // Rows of a CTA: eight for each warp, so that what belongs to no row is fetched once for them.
  constexpr int kRows = 64;
  const std::string most =
      counts.size() == 1 ? counts[0] : fmt::format("max({})", fmt::join(counts, ", "));
  std::string out = fmt::format("rows {}, threads {}, {} of ceil_div({} * {}, {}):\n", name,
                                kThreads, warp_, batch, most, kRows);
  for (const std::string& loop : loops)
    for (size_t at = 0; at < loop.size();) {
      const size_t end = loop.find('\n', at) + 1;
      out += "    " + loop.substr(at, end - at);
      at = end;
    }
  return out;
}

std::optional<std::string> RowLoops::loop(const std::string& to, const std::string& columns,
                                          const spec::RowMap& map, const char* row) {
  Spelling how;
  how.indices = {{"b", tl::name(locals_["b"])},
                 {"h", tl::name(locals_["h"])},
                 {row, tl::name(locals_["r"])},
                 {"d", tl::name("j")}};
  const std::string place = fmt::format("{}, {}, {}", locals_["b"], locals_["h"], locals_["r"]);
  std::string out = fmt::format("for {} in each_row({}, {}):\n", place, to, warp_);
  norms_.clear();
  for (size_t n = 0; n <= map.sums.size(); ++n) {
    const bool last = n == map.sums.size();
    const ExprPtr body = with_norms(last ? map.element : map.sums[n], how, out);
    const auto text = body ? spell(body, how, edit_.diagnostics) : std::nullopt;
    if (!text) return std::nullopt;
    const std::string total = edit_.local(n ? fmt::format("row_total{}", n + 1) : "row_total");
    const std::string head =
        last ? fmt::format("write_row {}[{}]", to, place) : fmt::format("sum {}", total);
    out += fmt::format("    {} over j < {} = {}\n", head, columns, tl::print(*text));
    if (!last) how.totals.push_back(tl::name(total));
  }
  return out;
}

// What is computed from sums and is the same for the whole row is a `let` before it.
ExprPtr RowLoops::with_norms(const ExprPtr& e, const Spelling& how, std::string& out) {
  if (e->kind == Kind::total || !spec::mentions(e, Kind::total)) return e;
  if (!spec::mentions(e, Kind::index, "d")) {
    for (const auto& [known, name] : norms_)
      if (spec::equal(known, e)) return spec::leaf(Kind::argument, e->type, name);
    const auto text = spell(e, how, edit_.diagnostics);
    if (!text) return nullptr;
    const std::string name =
        edit_.local(norms_.empty() ? "norm" : fmt::format("norm{}", norms_.size() + 1));
    out += fmt::format("    let {} = {}\n", name, tl::print(*text));
    norms_.push_back({e, name});
    return spec::leaf(Kind::argument, e->type, name);
  }
  spec::Expr copy = *e;
  for (ExprPtr& a : copy.args)
    if (a = with_norms(a, how, out); !a) return nullptr;
  return std::make_shared<const spec::Expr>(std::move(copy));
}

}  // namespace kw::transfer
