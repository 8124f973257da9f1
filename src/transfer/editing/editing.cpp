#include "transfer/editing/editing.h"

#include <fmt/format.h>

#include <algorithm>

#include "transfer/editing/edits.h"

namespace kw::transfer {
namespace {

void collect_names(const tl::ExprPtr& e, std::set<std::string>& names) {
  if (!e) return;
  if (e->kind == tl::ExprKind::name || e->kind == tl::ExprKind::call) names.insert(e->text);
  for (const tl::ExprPtr& a : e->args) collect_names(a, names);
}

// Every name that the program declares or mentions.
std::set<std::string> names_of(const tl::Program& program) {
  std::set<std::string> names;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    names.insert(std::string(tl::word(s.op)));
    for (const tl::Field& f : s.fields)
      for (const tl::Item& item : f.items) {
        names.insert(item.name);
        collect_names(item.expr, names);
      }
  });
  return names;
}

}  // namespace

Editing::Editing(const tl::Program& source, const spec::Form& form, const Target& target,
                 Diagnostics& diagnostics)
    : form(form),
      term(form.terms.front()),
      target(target),
      diagnostics(diagnostics),
      result{source, {}, {}, {}, {}},
      program(result.program),
      names_(names_of(source)) {}

Span Editing::place(const spec::ExprPtr& e) const {
  const Span found = spec::place_of(e);
  const spec::Argument* q = form.argument(term.q.argument);
  return found.known() || !q ? found : q->span;
}

bool Editing::refuse(std::string code, const Span& where, std::string message, std::string hint) {
  diagnostics.error(std::move(code), where, std::move(message)).hint = std::move(hint);
  return false;
}

bool Editing::condition(const std::string& holds, std::string why) {
  return add_condition(result, holds, std::move(why), diagnostics);
}

std::string Editing::fresh(std::initializer_list<std::string> candidates) {
  for (const std::string& name : candidates)
    if (!name.empty() && names_.insert(name).second) return name;
  const auto* base = std::find_if(candidates.begin(), candidates.end(),
                                  [](const std::string& name) { return !name.empty(); });
  for (int n = 2;; ++n)
    if (std::string name = fmt::format("{}{}", *base, n); names_.insert(name).second) return name;
}

std::string Editing::local(const std::string& name) {
  bool taken = false;
  const auto look = [&](const tl::Stmt& s) {
    for (const tl::Hole hole : {tl::Hole::names, tl::Hole::name})
      if (s.has(hole))
        for (const tl::Item& item : s.items(hole)) taken = taken || item.name == name;
  };
  for (const tl::Stmt& s : program.body) {
    if (s.op != tl::Op::record) look(s);  // fields are no names
    if (s.op == tl::Op::args || s.op == tl::Op::shared)
      std::for_each(s.body.begin(), s.body.end(), look);
  }
  return taken ? fresh({name + "_here"}) : name;
}

Place Editing::behind_arguments(tl::Op kind) {
  std::vector<tl::Stmt>& args = program.find(tl::Op::args)->body;
  size_t at = 0;
  for (size_t n = 0; n < args.size(); ++n)
    if (args[n].op == kind) at = n + 1;
  return {&args, at};
}

bool Editing::insert(Place place, const std::string& text) {
  std::optional<tl::Stmt> s = tl::parse_statement(text, diagnostics);
  if (!s) return false;
  place.block->insert(place.block->begin() + place.at, std::move(*s));
  return true;
}

bool Editing::insert(Place place, const std::vector<std::string>& texts) {
  return std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return insert(Place{place.block, place.at++}, text);
  });
}

bool Editing::replace(std::vector<tl::Stmt>& block, const std::vector<std::string>& texts) {
  return replace_block(block, texts, diagnostics);
}

spec::ExprPtr Editing::hoist(const spec::ExprPtr& value,
                             std::initializer_list<std::string> candidates) {
  std::string name = hoisted(value);
  if (name.empty()) {
    name = fresh(candidates);
    if (!declare(name, value)) return nullptr;
    hoisted_.push_back({value, name});
  }
  return spec::leaf(spec::Kind::argument, value->type, name);
}

std::string Editing::hoisted(const spec::ExprPtr& value) const {
  for (const Hoisted& h : hoisted_)
    if (spec::equal(h.value, value)) return h.name;
  return "";
}

std::string singular(const std::string& name) {
  const size_t n = name.size();
  if (n < 3 || name[n - 1] != 's' ||
      std::string_view("saiu").find(name[n - 2]) != std::string::npos)
    return "";
  return name.substr(0, n - 1);
}

}  // namespace kw::transfer
