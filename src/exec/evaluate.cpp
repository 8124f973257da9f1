// Scalar expressions outside maps: index arithmetic, sizes, records, functions of the module.
//
// Integers are ints of 32 bits: a result outside is a fault, because on the GPU it would wrap. What
// a launcher computes (arguments with a value) has 64 bits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exec/exact.h"
#include "exec/fused.h"
#include "exec/reads.h"
#include "tl/syntax/lexer.h"

namespace kw::exec {

using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Item;
using tl::Op;
using tl::Stmt;

namespace {

Value fault(const Context& c, const std::string& code, const std::string& message) {
  c.m.faults.raise(code, c.at, message);
  return {};
}

Value flag_of(const Context& c, const std::string& name, const Flag& flag) {
  if (!flag.set)
    return fault(c, "exec.uninitialised", fmt::format("{} is read and was never set", name));
  if (flag.of.stale())
    return fault(
        c, "exec.stale",
        fmt::format("{} was decided about scores that {} has overwritten: no online_max or "
                    "any_exceeds has looked at the new ones",
                    name, cite(*flag.of.scores->latest)));
  return Value::boolean(flag.holds);
}

Value name_of(const Context& c, const std::string& name) {
  if (c.scope)
    if (Binding* b = c.scope->find(name)) {
      if (const Flag* flag = std::get_if<Flag>(b)) return flag_of(c, name, *flag);
      const Value* v = std::get_if<Value>(b);
      if (!v) return fault(c, "exec.type", fmt::format("{} is a tile, not a scalar", name));
      return *v;
    }
  const auto it = c.m.constants.find(name);
  if (it == c.m.constants.end()) return fault(c, "exec.name", fmt::format("{} is unknown", name));
  return it->second;
}

// An element of a tensor argument: prefix[b].
Value element_of(const Context& c, const Expr& e) {
  const std::string& name = e.args[0]->text;
  if (c.m.scratches.count(name)) return word_of_scratch(c, e);
  const Global* tensor = readable_tensor(c, name);
  if (!tensor) return {};
  std::vector<int64_t> at;
  for (size_t k = 1; k < e.args.size(); ++k) at.push_back(integer_of(c, e.args[k]));
  if (c.m.faults.any()) return {};
  const Tensor& t = tensor->data;
  int64_t offset = t.offset(at);
  // Where only orders are looked at, a size that nothing depends on is 1 and elements are alike.
  if (offset < 0 && c.m.launch.shapes_only) offset = 0;
  if (offset < 0)
    return fault(
        c, "exec.bounds",
        fmt::format("{}[{}] is outside [{}]", name, fmt::join(at, ", "), fmt::join(t.shape, ", ")));
  return element_at(c, name, *tensor, offset);
}

Value field_of(const Context& c, const Expr& e) {
  const Value record = evaluate(c, e.args[0]);
  if (record.type == Type::record) {
    const auto& names = record.record->names();
    for (size_t k = 0; k < names.size(); ++k)
      if (names[k].name == e.text) return Value::integer(record.fields[k]);
  }
  return fault(c, "exec.name", fmt::format("{} has no field {}", tl::print(e.args[0]), e.text));
}

// The one value of a function that returns an index.
Value make_index(const Context& c, const Stmt& def, const Stmt& returns, const Context& inside) {
  const auto& values = returns.values();
  if (values.size() != 1)
    return fault(inside, "exec.type",
                 fmt::format("{} values for the index of {}", values.size(), def.name()));
  const int64_t x = integer_of(inside, values[0].expr);
  if (x < 0 && !c.m.faults.any())
    return fault(inside, "exec.negative",
                 fmt::format("{} is {}: an index is never negative", def.name(), x));
  return Value::integer(x);
}

Value make_record(const Context& c, const Stmt& def, const Stmt& returns, const Context& inside) {
  const auto record = c.m.records.find(def.result());
  if (record == c.m.records.end())
    return fault(c, "exec.name", fmt::format("{} is not a record", def.result()));
  Value v{Type::record, 0, record->second, {}, {}};
  const auto& names = record->second->names();
  const auto& values = returns.values();
  if (names.size() != values.size())
    return fault(inside, "exec.type",
                 fmt::format("{} values for the {} fields of {}", values.size(), names.size(),
                             def.result()));
  for (size_t k = 0; k < values.size(); ++k) {
    const int64_t x = integer_of(inside, values[k].expr);
    if (x < 0 && !c.m.faults.any())
      return fault(inside, "exec.negative",
                   fmt::format("{}.{} is {}: fields of records are never negative", def.result(),
                               names[k].name, x));
    v.fields.push_back(x);
  }
  return v;
}

// The value of a function's body: lets, branches and a return.
Value run_body(const Context& c, const Stmt& def, const std::vector<Stmt>& body,
               const ScopePtr& outer) {
  const ScopePtr scope = std::make_shared<Scope>(outer);
  for (const Stmt& s : body) {
    const Context inside{c.m, scope.get(), &s, c.block, c.wide};
    if (c.m.faults.any()) return {};
    if (s.op == Op::let) {
      bind_lets(inside, s);
    } else if (s.op == Op::if_) {
      if (!condition_of(inside, s.condition())) continue;
      const Value v = run_body(c, def, s.body, scope);
      if (v.type != Type::none) return v;
    } else if (s.op == Op::return_) {
      return def.result() == "index" ? make_index(c, def, s, inside)
                                     : make_record(c, def, s, inside);
    } else {
      return fault(inside, "exec.name", fmt::format("{} stands in a function", cite(s)));
    }
  }
  return {};
}

}  // namespace

// CUDA's text divides an index and by a size as C does, which takes their signs for granted.
Value argument_of(const Context& c, const tl::Item& param, const ExprPtr& e) {
  const Value v = evaluate(c, e);
  const bool size = param.type == "size";
  if ((size || param.type == "index") && v.type == Type::integer && v.x < (size ? 1 : 0) &&
      !c.m.faults.any())
    return fault(c, "exec.negative",
                 fmt::format("{} is {}: {}", param.name, int64_t(v.x),
                             size ? "a size is positive" : "an index is never negative"));
  return v;
}

namespace {

Value call_def(const Context& c, const Stmt& def, const Expr& e) {
  const auto& params = def.params();
  if (params.size() != e.args.size())
    return fault(
        c, "exec.type",
        fmt::format("{} takes {} values and is given {}", e.text, params.size(), e.args.size()));
  const ScopePtr scope = std::make_shared<Scope>(nullptr);
  for (size_t k = 0; k < params.size(); ++k)
    scope->names[params[k].name] = argument_of(c, params[k], e.args[k]);
  const Value v = run_body(c, def, def.body, scope);
  if (v.type == Type::none && !c.m.faults.any())
    return fault(c, "exec.type", fmt::format("{} ends without a return", e.text));
  return v;
}

// a * b + rest: one rounding if they are reals.
std::optional<Value> apply_fused(const Context& c, const FusedSum& sum) {
  Value a = evaluate(c, sum.a);
  if (a.type != Type::real) return std::nullopt;
  const Value b = evaluate(c, sum.b);
  Value rest = evaluate(c, sum.rest);
  const Type types[3] = {a.type, b.type, rest.type};
  if (c.m.faults.any() || result_type(Fn::fma, types) == Type::none) return std::nullopt;
  if (sum.negative_product) a.x = -a.x;
  if (sum.negative_rest) rest.x = -rest.x;
  Value out = Value::real(0);
  apply(Fn::fma, Type::real, 1, &a.x, &b.x, &rest.x, &out.x);
  return out;
}

Value apply_function(Context c, const Expr& e, const std::string& name) {
  const std::optional<Fn> fn = function_named(name, e.args.size());
  if (const std::optional<FusedSum> sum = fused_sum(c, e))
    if (const std::optional<Value> v = apply_fused(c, *sum)) return *v;
  if (fn && is_comparison(*fn)) c.compared = true;
  if (!fn) return fault(c, "exec.name", fmt::format("{} is not a function of scalars", e.text));
  double x[3] = {};
  Type types[3] = {};
  Value values[3];
  for (size_t k = 0; k < e.args.size(); ++k) {
    // `and`, `or` and `where` evaluate no more than they need.
    if (k == 1 && ((*fn == Fn::logical_and && x[0] == 0) || (*fn == Fn::logical_or && x[0] != 0)))
      return values[0];
    values[k] = evaluate(c, e.args[k]);
    if (c.m.faults.any()) return {};
    x[k] = values[k].x;
    types[k] = values[k].type;
  }
  const Type type = result_type(*fn, types);
  if (type == Type::none)
    return fault(c, "exec.type",
                 fmt::format("{} mixes types that do not go together",
                             tl::print(std::make_shared<Expr>(e))));
  const bool divides = *fn == Fn::floor_div || *fn == Fn::floor_mod || *fn == Fn::ceil_div;
  if (divides && x[1] <= 0)
    return fault(c, "exec.bounds", fmt::format("{} divides by {}", e.text, x[1]));
  Value v{type, 0, nullptr, {}, {}};
  if (c.m.algebra && type != Type::integer) {
    const Operand in[3] = {{types[0], &x[0], &values[0].e},
                           {types[1], &x[1], &values[1].e},
                           {types[2], &x[2], &values[2].e}};
    exact_apply(*c.m.algebra, *fn, type, 1, in, &v.x, &v.e);
  } else {
    apply(*fn, type, 1, &x[0], &x[1], &x[2], &v.x);
  }
  if (type == Type::integer && !c.wide && round_to(Dtype::i32, v.x) != v.x)
    return fault(
        c, "exec.overflow",
        fmt::format("{} is {:.0f}: more than 32 bits", tl::print(std::make_shared<Expr>(e)), v.x));
  return v;
}

Value call_of(const Context& c, const Expr& e) {
  if (const auto def = c.m.defs.find(e.text); def != c.m.defs.end())
    return call_def(c, *def->second, e);
  if (e.text == "least" || e.text == "greatest") return least_or_greatest(c, e);
  if (e.text == "block_index" && c.block) return Value::integer(c.block->index);
  if (e.text == "cluster_index" && c.block) return Value::integer(c.block->index / c.m.ctas);
  if (e.text == "heads_at_once" && e.args.size() == 4) {
    const int64_t bytes = integer_of({c.m, c.scope, c.at, c.block, true}, e.args[0]),
                  blocks = integer_of(c, e.args[1]), group = integer_of(c, e.args[2]),
                  heads = integer_of(c, e.args[3]);
    if (std::min({bytes, blocks, group, heads}) >= 1)
      return Value::integer(heads_at_once(bytes, blocks, group, heads));
    c.m.faults.raise(
        "exec.range", c.at,
        fmt::format("{} is asked of {}, {}, {} and {}: each must be 1 or more",
                    tl::print(std::make_shared<Expr>(e)), bytes, blocks, group, heads));
    return {};
  }
  return apply_function(c, e, e.text);
}

}  // namespace

Value evaluate(const Context& c, const ExprPtr& e) {
  if (c.m.faults.any()) return {};
  switch (e->kind) {
    case ExprKind::integer:
      return Value::integer(std::stoll(e->text));
    case ExprKind::real:
      if (c.m.algebra) return Value::real(c.m.algebra->constant(tl::fp32_of(e->text)));
      return Value::real(tl::fp32_of(e->text));
    case ExprKind::name:
      return name_of(c, e->text);
    case ExprKind::index:
      return element_of(c, *e);
    case ExprKind::field:
      return field_of(c, *e);
    case ExprKind::call:
      return call_of(c, *e);
    case ExprKind::binary:
    case ExprKind::unary:
      return apply_function(c, *e, e->text);
    case ExprKind::where: {
      const bool first = condition_of(c, e->args[0]);
      return evaluate(c, e->args[first ? 1 : 2]);
    }
  }
  return {};
}

void bind_lets(const Context& c, const Stmt& let) {
  for (const Item& d : let.names()) c.scope->names[d.name] = evaluate(c, d.expr);
}

int64_t integer_of(const Context& c, const ExprPtr& e) {
  const Value v = evaluate(c, e);
  if (v.type == Type::integer) return static_cast<int64_t>(v.x);
  fault(c, "exec.type", fmt::format("{} is not an integer", tl::print(e)));
  return 0;
}

Value real_of(const Context& c, const ExprPtr& e) {
  const Value v = evaluate(c, e);
  if (v.type == Type::integer && c.m.algebra) return Value::real(c.m.algebra->integer(v.x));
  if (v.type == Type::real && c.m.algebra) return v;
  if (v.type == Type::real || v.type == Type::integer) return Value::real(float(v.x));
  return fault(c, "exec.type", fmt::format("{} is not a number", tl::print(e)));
}

const Global* readable_tensor(const Context& c, const std::string& name) {
  const auto it = c.m.tensors.find(name);
  const bool known = it != c.m.tensors.end(),
             left = known && it->second.scratch && (c.m.is_behind || c.m.of_this_row.count(name));
  if (left || (known && !it->second.tiled && !it->second.writes && !it->second.scratch))
    return &it->second;
  fault(c, "exec.name", fmt::format("{} is not a tensor to read from", name));
  return nullptr;
}

Value element_at(const Context& c, const std::string& name, const Global& tensor, int64_t offset) {
  const Tensor& t = tensor.data;
  if (is_float(t.dtype) && c.m.algebra) return Value::real(tensor.exact[offset]);
  const double x = t.values[t.values.size() == 1 ? 0 : offset];
  if (is_float(t.dtype)) return Value::real(x);
  if (t.dtype == Dtype::boolean) return Value::boolean(x != 0);
  if (round_to(Dtype::i32, x) != x)
    return fault(c, "exec.overflow",
                 fmt::format("an element of {} is {:.0f}: more than 32 bits", name, x));
  return Value::integer(int64_t(x));
}

bool condition_of(const Context& c, const ExprPtr& e) {
  const Value v = evaluate(c, e);
  c.m.outcome.branches |= v.e.opaque[0];
  if (v.type == Type::boolean) return v.x != 0;
  fault(c, "exec.type", fmt::format("{} is not a condition", tl::print(e)));
  return false;
}

}  // namespace kw::exec
