// Lookup by hole is linear: a statement has at most eight.
#include "tl/program.h"

#include <cassert>

namespace kw::tl {
namespace {

const Field* field_of(const Stmt& s, Hole hole) {
  for (const Field& f : s.fields)
    if (f.hole == hole) return &f;
  return nullptr;
}

bool equal(const Item& a, const Item& b) {
  return a.name == b.name && a.type == b.type && tl::equal(a.expr, b.expr);
}

template <class Body>
auto* find_in(Body& body, Op op) {
  decltype(&body[0]) found = nullptr;
  for (auto& s : body) {
    if (s.op == op) return &s;
    if ((found = find_in(s.body, op))) return found;
  }
  return found;
}

}  // namespace

const std::vector<Item>& Stmt::items(Hole hole) const {
  const Field* f = field_of(*this, hole);
  assert(f && "the statement has no such hole");
  return f->items;
}

std::vector<Item>& Stmt::items(Hole hole) {
  return const_cast<std::vector<Item>&>(std::as_const(*this).items(hole));
}

bool Stmt::has(Hole hole) const { return field_of(*this, hole) != nullptr; }

const Stmt* Program::find(Op op) const { return find_in(body, op); }
Stmt* Program::find(Op op) { return find_in(body, op); }
const Stmt* Program::kernel() const {
  const Stmt* with_loader = find(Op::kernel);
  return with_loader ? with_loader : find(Op::warpgroups_kernel);
}

Stmt* Program::kernel() { return const_cast<Stmt*>(std::as_const(*this).kernel()); }

void each_expression(Stmt& s, const std::function<void(ExprPtr&)>& f) {
  for (Field& field : s.fields)
    for (Item& item : field.items)
      if (item.expr) f(item.expr);
}

void each_expression(const Stmt& s, const std::function<void(const ExprPtr&)>& f) {
  for (const Field& field : s.fields)
    for (const Item& item : field.items)
      if (item.expr) f(item.expr);
}

void walk(const std::vector<Stmt>& body, const std::function<void(const Stmt&)>& f) {
  for (const Stmt& s : body) {
    f(s);
    walk(s.body, f);
  }
}

bool takes_turns(const Program& program) {
  bool found = false;
  walk(program.body, [&](const Stmt& s) { found |= s.op == Op::pass_turn; });
  return found;
}

void walk(std::vector<Stmt>& body, const std::function<void(Stmt&)>& f) {
  for (Stmt& s : body) {
    f(s);
    walk(s.body, f);
  }
}

bool equal_heads(const Stmt& a, const Stmt& b) {
  if (a.op != b.op || a.fields.size() != b.fields.size()) return false;
  for (size_t i = 0; i < a.fields.size(); ++i) {
    const Field &x = a.fields[i], &y = b.fields[i];
    if (x.hole != y.hole || x.items.size() != y.items.size()) return false;
    for (size_t k = 0; k < x.items.size(); ++k)
      if (!equal(x.items[k], y.items[k])) return false;
  }
  return true;
}

bool equal(const Stmt& a, const Stmt& b) {
  if (!equal_heads(a, b) || a.body.size() != b.body.size()) return false;
  for (size_t i = 0; i < a.body.size(); ++i)
    if (!equal(a.body[i], b.body[i])) return false;
  return true;
}

bool equal(const Program& a, const Program& b) {
  if (a.body.size() != b.body.size()) return false;
  for (size_t i = 0; i < a.body.size(); ++i)
    if (!equal(a.body[i], b.body[i])) return false;
  return true;
}

}  // namespace kw::tl
