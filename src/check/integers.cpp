#include "check/integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace kw::check {
namespace {

constexpr int kDeepest = 200;  // calls and names within each other

Number of(int64_t x) { return {true, false, x, 0}; }
Number of_real(double x) { return std::isnan(x) ? Number{} : Number{true, true, 0, x}; }
double real_of(const Number& n) { return n.real ? n.value : double(n.integer); }

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int order(const Number& a, const Number& b) {
  if (!a.real && !b.real) return a.integer < b.integer ? -1 : a.integer > b.integer;
  const double x = real_of(a), y = real_of(b);
  return x < y ? -1 : x > y;
}

bool is_quotient(Does d) { return d >= Does::quotient && d <= Does::shift_right; }
bool is_bits(Does d) { return d >= Does::bits_and && d <= Does::bits_xor; }

// Operators of one operand are by themselves: `-` is negate there.
const std::map<std::string, Does>& spellings() {
  static const std::map<std::string, Does> all = {
      {"+", Does::add},          {"-", Does::subtract},        {"*", Does::multiply},
      {"/", Does::divide},       {"//", Does::quotient},       {"%", Does::remainder},
      {">>", Does::shift_right}, {"<<", Does::shift_left},     {"&", Does::bits_and},
      {"|", Does::bits_or},      {"^", Does::bits_xor},        {"<", Does::less},
      {"<=", Does::less_equal},  {">", Does::greater},         {">=", Does::greater_equal},
      {"==", Does::equal},       {"!=", Does::unequal},        {"and", Does::both},
      {"or", Does::either},      {"ceil_div", Does::ceil_div}, {"min", Does::least},
      {"max", Does::greatest},   {"abs", Does::absolute},      {"fma", Does::fma},
      {"f32", Does::f32},        {"to_bf16", Does::to_bf16},   {"exp2", Does::exp2},
      {"log2", Does::log2},      {"tanh", Does::tanh},         {"reciprocal", Does::reciprocal},
      {"rsqrt", Does::rsqrt}};
  return all;
}

// The divisor of a quotient; a shift's is a power of two.
int64_t divisor(Does d, int64_t b) {
  if (d != Does::shift_right) return b;
  return b >= 0 && b <= 62 ? int64_t{1} << b : 0;
}

Number of_integers(Does d, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (d) {
    case Does::add:
      return __builtin_add_overflow(a, b, &out) ? Number{} : of(out);
    case Does::subtract:
      return __builtin_sub_overflow(a, b, &out) ? Number{} : of(out);
    case Does::multiply:
      return __builtin_mul_overflow(a, b, &out) ? Number{} : of(out);
    case Does::shift_left:
      if (b < 0 || b > 62 || __builtin_mul_overflow(a, int64_t{1} << b, &out)) return {};
      return of(out);
    case Does::bits_and:
      return of(a & b);
    case Does::bits_or:
      return of(a | b);
    case Does::bits_xor:
      return of(a ^ b);
    default:
      break;
  }
  const int64_t by = is_quotient(d) ? divisor(d, b) : 0;
  if (by == 0 || a == INT64_MIN) return {};
  if (d == Does::remainder) return of(a - floor_div(a, by) * by);
  return of(d == Does::ceil_div ? -floor_div(-a, by) : floor_div(a, by));
}

Number of_reals(Does d, double a, double b) {
  switch (d) {
    case Does::add:
      return of_real(a + b);
    case Does::subtract:
      return of_real(a - b);
    case Does::multiply:
      return of_real(a * b);
    case Does::divide:
      return of_real(a / b);
    default:
      return {};
  }
}

Number of_one(Does d, const Number& a) {
  const double x = real_of(a);
  switch (d) {
    case Does::opposite:
      return of(!a.integer);
    case Does::negate:
    case Does::absolute:
      if (a.real) return of_real(d == Does::absolute ? std::fabs(x) : -x);
      if (a.integer == INT64_MIN) return {};
      return of(d == Does::absolute ? std::abs(a.integer) : -a.integer);
    case Does::f32:
    case Does::to_bf16:
      return of_real(x);
    case Does::exp2:
      return of_real(std::exp2(x));
    case Does::log2:
      return of_real(std::log2(x));
    case Does::tanh:
      return of_real(std::tanh(x));
    case Does::reciprocal:
      return of_real(1 / x);
    case Does::rsqrt:
      return of_real(1 / std::sqrt(x));
    default:
      return {};
  }
}

Number of_two(Does d, const Number& a, const Number& b) {
  switch (d) {
    case Does::order:
      return of(order(a, b));
    case Does::least:
      return order(a, b) <= 0 ? a : b;
    case Does::greatest:
      return order(a, b) >= 0 ? a : b;
    case Does::less:
      return of(order(a, b) < 0);
    case Does::less_equal:
      return of(order(a, b) <= 0);
    case Does::greater:
      return of(order(a, b) > 0);
    case Does::greater_equal:
      return of(order(a, b) >= 0);
    case Does::equal:
      return of(order(a, b) == 0);
    case Does::unequal:
      return of(order(a, b) != 0);
    default:
      if (!a.real && !b.real && d != Does::divide) return of_integers(d, a.integer, b.integer);
      return of_reals(d, real_of(a), real_of(b));
  }
}

Number outcome_of(const Integers::Node& n, const std::vector<Number>& values) {
  const auto arg = [&](size_t k) -> const Number& { return values[n.args[k]]; };
  if (n.does == Does::where) {
    if (!arg(0).known) return {};
    return arg(arg(0).integer ? 1 : 2);
  }
  if (n.does == Does::both || n.does == Does::either) {
    const bool stops = n.does == Does::either;
    for (const int a : n.args)
      if (values[a].known && (values[a].integer != 0) == stops) return of(stops);
    return arg(0).known && arg(1).known ? of(!stops) : Number{};
  }
  for (const int a : n.args)
    if (!values[a].known) return {};
  if (n.does == Does::fma) return of_real(real_of(arg(0)) * real_of(arg(1)) + real_of(arg(2)));
  return n.args.size() == 1 ? of_one(n.does, arg(0)) : of_two(n.does, arg(0), arg(1));
}

}  // namespace

int Integers::node(Node n) {
  std::string key = fmt::format("{}/{}", int(n.does), n.text);
  for (const int a : n.args) key += fmt::format(",{}", a);
  if (n.does == Does::number)
    key +=
        n.number.real ? fmt::format("r{}", n.number.value) : fmt::format("i{}", n.number.integer);
  const auto [at, is_new] = known_.emplace(key, int(nodes_.size()));
  if (is_new) nodes_.push_back(std::move(n));
  return at->second;
}

int Integers::number(int64_t value) { return node({Does::number, "", {}, of(value)}); }

int Integers::real(double value) {
  Node n{Does::number, "", {}, of_real(value)};
  n.real = true;
  return node(std::move(n));
}

int Integers::variable(const std::string& name, bool real, bool size, bool data) {
  return node({Does::variable, name, {}, {}, real, size, data});
}

int Integers::add(const tl::ExprPtr& e, const tl::Scope& scope) {
  return resolve(e, {&scope, scope.symbols().size()}, nullptr);
}

int Integers::add_order(int a, int b) { return node({Does::order, "", {a, b}, {}}); }

std::optional<int64_t> Integers::constant(const tl::ExprPtr& e, const tl::Scope& scope) {
  const int at = add(e, scope);
  std::vector<Number> values;
  evaluate({}, values);
  if (!values[at].known || values[at].real) return std::nullopt;
  return values[at].integer;
}

void Integers::evaluate(const std::map<int, int64_t>& variables, std::vector<Number>& out) const {
  out.assign(nodes_.size(), Number{});
  std::vector<int> all(nodes_.size());
  std::iota(all.begin(), all.end(), 0);
  evaluate(variables, all, out);
}

void Integers::evaluate(const std::map<int, int64_t>& variables, const std::vector<int>& which,
                        std::vector<Number>& out) const {
  for (const int n : which) {
    const Node& node = nodes_[n];
    if (node.does == Does::number) {
      out[n] = node.number;
    } else if (node.does == Does::variable) {
      const auto value = variables.find(n);
      if (value != variables.end()) out[n] = node.real ? of_real(0.75) : of(value->second);
    } else {
      out[n] = outcome_of(node, out);
    }
  }
}

int Integers::answers(const Node& node) {
  if (is_quotient(node.does) || is_bits(node.does)) return 1;
  if (node.does == Does::subtract) return 1;
  if (node.does >= Does::less && node.does <= Does::greater_equal) return 1;
  return node.does >= Does::equal && node.does <= Does::absolute ? 2 : 0;
}

std::optional<int64_t> Integers::answer(const Node& node, int which,
                                        const std::vector<Number>& values) {
  const Does d = node.does;
  const Number& a = values[node.args[0]];
  const Number b = node.args.size() > 1 ? values[node.args[1]] : of(0);
  if (!a.known || !b.known) return std::nullopt;
  if (is_quotient(d)) {
    const Number q = of_integers(d == Does::remainder ? Does::quotient : d, a.integer, b.integer);
    return q.known ? std::optional(q.integer) : std::nullopt;
  }
  if (is_bits(d)) {  // whether it is a side, nothing, or the sides have none in common
    const int64_t is = of_integers(d, a.integer, b.integer).integer;
    return int64_t(is == a.integer) + 2 * (is == b.integer) + 4 * (is == 0) +
           8 * ((a.integer & b.integer) == 0);
  }
  if (d == Does::less || d == Does::greater_equal || d == Does::subtract) return order(a, b) < 0;
  if (d == Does::less_equal || d == Does::greater) return order(a, b) <= 0;
  return which == 0 ? order(a, b) < 0 : order(a, b) <= 0;
}

int Integers::resolve_name(const std::string& name, Place at, const Locals* locals) {
  if (name == "true" || name == "false") return number(name == "true");
  if (name == "log2e") return real(1.4426950408889634);
  if (name == "ln2") return real(0.6931471805599453);
  if (name == "-inf") return real(-HUGE_VAL);
  if (locals)
    if (const auto local = locals->find(name); local != locals->end()) return local->second;
  for (; at.scope;
       at = {at.scope->outer(), at.scope->outer() ? at.scope->outer()->symbols().size() : 0})
    for (size_t n = at.before; n-- > 0;) {
      const tl::Symbol& s = at.scope->symbols()[n];
      if (s.name != name) continue;
      const bool stands = s.category == tl::Category::param || s.category == tl::Category::toggle ||
                          s.category == tl::Category::size || s.category == tl::Category::scalar ||
                          (s.stmt && s.stmt->op == tl::Op::let);
      if (!stands || !s.value || s.type.kind == tl::Type::record || depth_ >= kDeepest)
        return variable(name, s.type.kind == tl::Type::real, s.category == tl::Category::size);
      if (const auto known = of_symbols_.find(s.value.get()); known != of_symbols_.end())
        return known->second;
      ++depth_;
      const int out = resolve(s.value, {at.scope, n}, nullptr);
      --depth_;
      of_symbols_.emplace(s.value.get(), out);
      return out;
    }
  return variable(name, false, false);
}

// What a function of the program's returns, where it is one integer and its body a row of lets.
std::optional<int> Integers::inlined(const tl::Symbol& def, const std::vector<int>& args,
                                     Place at) {
  if (!def.stmt || def.type.kind != tl::Type::integer || def.params.size() != args.size() ||
      depth_ >= kDeepest)
    return std::nullopt;
  Locals locals;
  for (size_t n = 0; n < args.size(); ++n) locals[def.params[n].name] = args[n];
  ++depth_;
  std::optional<int> out;
  for (const tl::Stmt& s : def.stmt->body) {
    if (s.op == tl::Op::let)
      for (const tl::Item& item : s.names()) locals[item.name] = resolve(item.expr, at, &locals);
    else if (s.op == tl::Op::return_ && s.values().size() == 1)
      out = resolve(s.values()[0].expr, at, &locals);
    else
      break;
  }
  --depth_;
  return out;
}

int Integers::resolve_call(const tl::Expr& e, Place at, const Locals* locals) {
  std::vector<int> args;
  for (const tl::ExprPtr& a : e.args) args.push_back(resolve(a, at, locals));
  if (const auto known = spellings().find(e.text); known != spellings().end()) {
    const Does d = known->second;
    const bool alike = d == Does::least || d == Does::greatest || d == Does::absolute;
    Node n{d, "", args, {}};
    n.real = alike ? nodes_[args[0]].real : d != Does::ceil_div;
    return node(std::move(n));
  }
  if (const tl::Symbol* def = at.scope->find(e.text); def && def->category == tl::Category::def)
    if (const auto out = inlined(*def, args, at)) return *out;
  std::string text = e.text;
  for (const int a : args) text += fmt::format("({})", a);
  return variable(text, false, false);
}

int Integers::resolve(const tl::ExprPtr& e, Place at, const Locals* locals) {
  const auto all = [&] {
    std::vector<int> out;
    for (const tl::ExprPtr& a : e->args) out.push_back(resolve(a, at, locals));
    return out;
  };
  switch (e->kind) {
    case tl::ExprKind::integer:
      return e->text.size() < 19 ? number(std::stoll(e->text)) : variable(e->text, false, false);
    case tl::ExprKind::real:
      return real(std::strtod(e->text.c_str(), nullptr));
    case tl::ExprKind::name:
      return resolve_name(e->text, at, locals);
    case tl::ExprKind::field:
      return variable(tl::print(e), false, false);
    case tl::ExprKind::index: {
      std::string text = tl::base_name(e);
      for (size_t n = 1; n < e->args.size(); ++n)
        text += fmt::format("[{}]", resolve(e->args[n], at, locals));
      const tl::Symbol* base = at.scope->find(tl::base_name(e));
      return variable(text, !base || base->type.kind != tl::Type::integer, false, true);
    }
    case tl::ExprKind::call:
      return resolve_call(*e, at, locals);
    case tl::ExprKind::where: {
      Node n{Does::where, "", all(), {}};
      n.real = nodes_[n.args[1]].real;
      return node(std::move(n));
    }
    case tl::ExprKind::binary: {
      Node n{spellings().at(e->text), "", all(), {}};
      n.real = n.does <= Does::divide && (nodes_[n.args[0]].real || nodes_[n.args[1]].real);
      return node(std::move(n));
    }
    case tl::ExprKind::unary: {
      Node n{e->text == "-" ? Does::negate : Does::opposite, "", all(), {}};
      n.real = e->text == "-" && nodes_[n.args[0]].real;
      return node(std::move(n));
    }
  }
  return variable(tl::print(e), false, false);
}

}  // namespace kw::check
