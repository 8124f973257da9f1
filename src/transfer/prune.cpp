#include "transfer/prune.h"

#include <algorithm>

#include "tl/traits.h"

namespace kw::transfer {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Item;
using tl::Op;
using tl::Stmt;

bool is_constant(const ExprPtr& e) { return e->is_name("true") || e->is_name("false"); }

ExprPtr truth(bool value) { return tl::name(value ? "true" : "false"); }

// Conditions with what is known of them decided.
ExprPtr folded(const ExprPtr& e) {
  return tl::rewrite(e, [](const ExprPtr& x) -> ExprPtr {
    if (x->kind == ExprKind::unary && x->text == "not" && is_constant(x->args[0]))
      return truth(x->args[0]->is_name("false"));
    if (x->kind != ExprKind::binary || (x->text != "and" && x->text != "or")) return nullptr;
    const bool absorbing = x->text == "or";
    for (size_t n = 0; n < 2; ++n) {
      if (!is_constant(x->args[n])) continue;
      return x->args[n]->is_name(absorbing ? "true" : "false") ? truth(absorbing) : x->args[1 - n];
    }
    return nullptr;
  });
}

void each_expr(Stmt& s, const std::function<void(ExprPtr&)>& f) {
  for (tl::Field& field : s.fields)
    for (Item& item : field.items)
      if (item.expr) f(item.expr);
}

void collect_names(const ExprPtr& e, std::set<std::string>& names) {
  if (e->kind == ExprKind::name) names.insert(e->text);
  for (const ExprPtr& a : e->args) collect_names(a, names);
}

// Whether what a statement declares, in its hole `d`, can go where nothing needs it.
bool can_go(Op op) {
  return op == Op::row || op == Op::lane_sum || op == Op::flag || op == Op::toggle ||
         op == Op::arg_f32 || op == Op::arg_tensor;
}

}  // namespace

std::string written_by(const Stmt& s) {
  if (s.op == Op::fill) return tl::base_name(s.target());
  if (s.op == Op::map_rows) return tl::base_name(s.target());
  const bool sums = tl::is(s.op, tl::Family::reduce) && s.has(tl::Hole::sum) &&
                    tl::access(s.op, tl::Hole::sum) == tl::Access::update;
  return sums ? tl::base_name(s.sum()) : "";
}

bool mentions(const Stmt& s, const std::string& name) {
  for (const tl::Field& field : s.fields)
    for (const Item& item : field.items)
      // A word names a vector or a flag where it is written; others name fields and functions.
      if (item.expr ? tl::mentions(item.expr, name)
                    : item.name == name && tl::writes(tl::access(s.op, field.hole)))
        return true;
  return false;
}

void Pruner::suspect(const ExprPtr& e) { collect_names(e, suspects_); }

void Pruner::gone(const Stmt& s) {
  for (const tl::Field& field : s.fields)
    for (const Item& item : field.items) {
      if (item.expr) collect_names(item.expr, suspects_);
      if (!item.name.empty()) suspects_.insert(item.name);
    }
  for (const Stmt& inner : s.body) gone(inner);
}

void Pruner::remove(const std::function<bool(const Stmt&)>& test) {
  const std::function<void(std::vector<Stmt>&)> clean = [&](std::vector<Stmt>& block) {
    for (Stmt& s : block) clean(s.body);
    for (const Stmt& s : block)
      if (test(s)) gone(s);
    block.erase(std::remove_if(block.begin(), block.end(), test), block.end());
  };
  clean(program_.body);
  fold(program_.body);
}

void Pruner::substitute(std::vector<Stmt>& block, const std::string& name, bool value) {
  tl::walk(block, [&](Stmt& s) {
    each_expr(s, [&](ExprPtr& e) {
      if (!tl::mentions(e, name)) return;
      e = folded(tl::rewrite(
          e, [&](const ExprPtr& x) { return x->is_name(name) ? truth(value) : nullptr; }));
    });
  });
  fold(block);
}

// Decided ifs give way to their blocks, and empty ones go.
void Pruner::fold(std::vector<Stmt>& block) {
  std::vector<Stmt> out;
  for (Stmt& s : block) {
    fold(s.body);
    if (s.op != Op::if_) {
      out.push_back(std::move(s));
    } else if (s.body.empty() || s.condition()->is_name("false")) {
      gone(s);
    } else if (s.condition()->is_name("true")) {
      std::move(s.body.begin(), s.body.end(), std::back_inserter(out));
    } else {
      out.push_back(std::move(s));
    }
  }
  block = std::move(out);
}

void Pruner::decide(const std::string& toggle, bool value) {
  suspects_.insert(toggle);
  substitute(program_.body, toggle, value);
}

void Pruner::settle_parameters() {
  std::vector<Stmt*> steps;
  tl::walk(program_.body, [&](Stmt& s) {
    if (s.op == Op::step) steps.push_back(&s);
  });
  for (size_t k = 0; k < steps.size(); ++k)
    for (size_t n = steps[k]->params().size(); n-- > 0;)
      if (settle_parameter(*steps[k], n)) return settle_parameters();
}

bool Pruner::settle_parameter(Stmt& step, size_t n) {
  const Item parameter = step.params()[n];
  const std::string name = step.name();
  std::vector<Stmt*> calls;
  tl::walk(program_.body, [&](Stmt& s) {
    if (s.op == Op::call && s.name() == name) calls.push_back(&s);
  });
  if (calls.empty()) return false;
  const ExprPtr first = calls[0]->arguments()[n].expr;
  const bool same = is_constant(first) && std::all_of(calls.begin(), calls.end(), [&](Stmt* c) {
                      return tl::equal(c->arguments()[n].expr, first);
                    });
  bool read = false;
  tl::walk(step.body, [&](const Stmt& s) { read = read || mentions(s, parameter.name); });
  if (!same && (read || parameter.type != "bool")) return false;
  for (Stmt* call : calls) {
    collect_names(call->arguments()[n].expr, suspects_);
    call->arguments().erase(call->arguments().begin() + n);
  }
  step.params().erase(step.params().begin() + n);
  if (same) substitute(step.body, parameter.name, first->is_name("true"));
  return true;
}

bool Pruner::is_read(const std::string& name) const {
  bool read = false;
  tl::walk(program_.body,
           [&](const Stmt& s) { read = read || (mentions(s, name) && written_by(s) != name); });
  return read;
}

// Takes the name out of its declaration, and what writes it; false if it is no such name.
bool Pruner::erase(const std::string& name) {
  bool found = false;
  tl::walk(program_.body, [&](Stmt& s) {
    if (!can_go(s.op)) return;
    std::vector<Item>& items = s.names();
    for (size_t n = items.size(); n-- > 0;) {
      if (items[n].name != name) continue;
      if (items[n].expr) collect_names(items[n].expr, suspects_);
      items.erase(items.begin() + n);
      found = true;
    }
  });
  if (!found) return false;
  remove(
      [&](const Stmt& s) { return (can_go(s.op) && s.names().empty()) || written_by(s) == name; });
  return true;
}

void Pruner::prune() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string& name : std::set<std::string>(suspects_)) {
      if (is_read(name)) continue;
      suspects_.erase(name);
      changed = erase(name) || changed;
    }
  }
}

}  // namespace kw::transfer
