#include <cmath>
#include <stdexcept>

#include "operator/expr/fold.h"
#include "transfer_evaluate.h"

namespace kw::transfer {
namespace {

double of_call(const tl::Expr& e, const std::vector<double>& a) {
  if (e.text == "ceil_div") return std::ceil(a[0] / a[1]);
  if (e.text == "min") return std::fmin(a[0], a[1]);
  if (e.text == "max") return std::fmax(a[0], a[1]);
  if (e.text == "abs") return std::fabs(a[0]);
  if (e.text == "f32") return a[0];
  if (e.text == "exp2") return std::exp2(a[0]);
  throw std::runtime_error("no value for a call of " + e.text);
}

const tl::Stmt* function(const tl::Program* program, const std::string& name) {
  if (program)
    for (const tl::Stmt& s : program->body)
      if (s.op == tl::Op::def && s.name() == name) return &s;
  return nullptr;
}

// The values that a function of the program returns for a call of it. A record is passed by fields
// that the callee finds under the same name.
std::vector<double> called(const tl::Expr& e, const Values& values) {
  Values inside = values;
  const auto& ps = function(values.program, e.text)->params();
  for (size_t n = 0; n < ps.size(); ++n)
    if (ps[n].type == "index" || ps[n].type == "i32")
      inside.names[ps[n].name] = evaluate(e.args[n], values);
  return call(*values.program, e.text, inside);
}

// A let of what a function returns: its fields, where that is a record.
bool run_record(const tl::Item& d, Values& values) {
  const tl::Stmt* def =
      d.expr->kind == tl::ExprKind::call ? function(values.program, d.expr->text) : nullptr;
  if (!def || def->result() == "index") return false;
  const std::vector<double> result = called(*d.expr, values);
  for (const tl::Stmt& s : values.program->body)
    if (s.op == tl::Op::record && s.name() == def->result())
      for (size_t n = 0; n < result.size(); ++n)
        values.names[d.name + "." + s.names().at(n).name] = result[n];
  return true;
}

// The lets of a block, as far as their values are known.
void run_lets(const std::vector<tl::Stmt>& body, Values& values) {
  for (const tl::Stmt& s : body) {
    if (s.op != tl::Op::let) continue;
    for (const tl::Item& d : s.names()) try {
        if (run_record(d, values)) continue;
        values.names[d.name] = evaluate(d.expr, values);
      } catch (const std::runtime_error&) {  // a record: not needed
      }
  }
}

}  // namespace

double evaluate(const tl::ExprPtr& e, const Values& values) {
  const auto named = [&](const std::string& name) {
    const auto found = values.names.find(name);
    if (found == values.names.end()) throw std::runtime_error("no value for " + name);
    return found->second;
  };
  std::vector<double> a;
  if (e->kind == tl::ExprKind::index) {
    std::vector<int64_t> at;
    for (size_t n = 1; n < e->args.size(); ++n)
      at.push_back(static_cast<int64_t>(evaluate(e->args[n], values)));
    return values.read(e->args[0]->text, at);
  }
  if (e->kind == tl::ExprKind::field) return named(e->args[0]->text + "." + e->text);
  if (e->kind == tl::ExprKind::call && function(values.program, e->text))
    return called(*e, values).at(0);
  for (const tl::ExprPtr& x : e->args) a.push_back(evaluate(x, values));
  switch (e->kind) {
    case tl::ExprKind::integer:
    case tl::ExprKind::real:
      return std::stod(e->text);
    case tl::ExprKind::name:
      return named(e->text);
    case tl::ExprKind::call:
      return of_call(*e, a);
    case tl::ExprKind::binary:
      if (e->text == ">") return a[0] > a[1];
      if (e->text == ">=") return a[0] >= a[1];
      return spec::apply(spec::op_of(spec::Kind::binary, e->text), a[0], a[1]);
    case tl::ExprKind::unary:
      return spec::apply(spec::op_of(spec::Kind::unary, e->text), a[0], 0);
    default:
      return a[0] != 0 ? a[1] : a[2];
  }
}

std::vector<double> call(const tl::Program& program, const std::string& def, Values values) {
  std::vector<double> out;
  values.program = &program;
  const tl::Stmt* s = function(&program, def);
  if (!s) throw std::runtime_error("no function " + def);
  run_lets(s->body, values);
  for (const tl::Item& item : s->body.back().values()) out.push_back(evaluate(item.expr, values));
  return out;
}

std::map<std::string, double> fields_of(const tl::Program& program, const std::string& def,
                                        const Values& values) {
  const std::vector<double> result = call(program, def, values);
  std::map<std::string, double> out;
  for (const tl::Stmt& s : program.body)
    if (s.op == tl::Op::record && s.name() == function(&program, def)->result())
      for (size_t n = 0; n < result.size(); ++n) out[s.names().at(n).name] = result[n];
  return out;
}

bool has_function(const tl::Program& program, const std::string& def) {
  return function(&program, def) != nullptr;
}

double mask_keeps(const tl::Program& program, Values values) {
  double keeps = NAN;
  tl::walk(program.body, [&](const tl::Stmt& loop) {
    if (loop.op != tl::Op::dynamic_tiles_warp && loop.op != tl::Op::static_tiles &&
        loop.op != tl::Op::warpgroups_kernel)
      return;
    run_lets(loop.body, values);
    std::map<std::string, tl::ExprPtr> vectors;  // what each is set to
    tl::walk(loop.body, [&](const tl::Stmt& s) {
      if (s.op == tl::Op::set_rows || s.op == tl::Op::set_columns)
        vectors[tl::base_name(s.target())] = s.value();
      if (s.op == tl::Op::set_diagonals)
        vectors[tl::base_name(s.target())] =
            tl::rewrite(s.value(), [](const tl::ExprPtr& e) -> tl::ExprPtr {
              return e->is_name("d") ? tl::binary("-", tl::name("j"), tl::name("i")) : nullptr;
            });
    });
    tl::walk(loop.body, [&](const tl::Stmt& s) {
      if (s.op != tl::Op::if_ || s.body.back().op != tl::Op::map_at) return;
      const tl::ExprPtr condition = s.body.back().value()->args[0];
      Values inside = values;
      inside.program = &program;
      run_lets(s.body, inside);
      keeps = evaluate(tl::rewrite(condition,
                                   [&](const tl::ExprPtr& e) -> tl::ExprPtr {
                                     const auto v = vectors.find(tl::base_name(e));
                                     return e->kind == tl::ExprKind::index && v != vectors.end()
                                                ? v->second
                                                : nullptr;
                                   }),
                       inside);
    });
  });
  if (std::isnan(keeps)) throw std::runtime_error("the program has no mask");
  return keeps;
}

}  // namespace kw::transfer
