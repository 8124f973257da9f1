#include "graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kw::fuzz {

using spec::Value;

Value node(int n) {
  Value v;
  v.kind = Value::Kind::node;
  v.node = n;
  return v;
}

Value number(double x) {
  Value v;
  v.kind = Value::Kind::real;
  v.real = x;
  return v;
}

Value whole(int64_t x) {
  Value v;
  v.kind = Value::Kind::integer;
  v.integer = x;
  v.real = static_cast<double>(x);
  return v;
}

Value truth(bool x) {
  Value v = whole(x);
  v.kind = Value::Kind::boolean;
  return v;
}

Value size(const ExprPtr& e) {
  if (e->kind == spec::Kind::number) return whole(e->integer);
  Value v;
  v.kind = Value::Kind::size;
  v.size = e;
  return v;
}

Value type(Dtype t) {
  Value v;
  v.kind = Value::Kind::dtype;
  v.dtype = t;
  return v;
}

Value list(std::vector<Value> items) {
  Value v;
  v.kind = Value::Kind::list;
  v.list = std::move(items);
  return v;
}

ExprPtr symbol(const std::string& name) {
  return spec::leaf(spec::Kind::size, spec::Type::integer, name);
}

ExprPtr constant(int64_t n) { return spec::integer(n); }

namespace {

bool is_one(const ExprPtr& e) { return e->kind == spec::Kind::number && e->integer == 1; }

// bool, integer, real: what a number or a tensor of no dimensions can raise a type to.
int category(Dtype t) { return t == Dtype::boolean ? 0 : is_float(t) ? 2 : 1; }

Dtype wider(Dtype a, Dtype b) {
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (a == b) return a;
  return category(a) == 2 ? Dtype::f32 : Dtype::i64;
}

bool gives_truth(const std::string& op) {
  static const std::set<std::string> ops = {"lt", "le", "gt", "ge", "eq", "ne"};
  return ops.count(op) || op.rfind("logical", 0) == 0;
}

bool gives_real(const std::string& op) {
  static const std::set<std::string> ops = {"div",  "exp",     "exp2", "log",  "log2",
                                            "tanh", "sigmoid", "sqrt", "rsqrt"};
  return ops.count(op);
}

}  // namespace

int Builder::add(const std::string& op, std::vector<Value> args, Shape shape, Dtype dtype) {
  spec::Node n{fmt::format("x{}", graph.nodes.size()), op, ""};
  n.args = std::move(args);
  n.shape = std::move(shape);
  n.dtype = dtype;
  return graph.add(std::move(n));
}

int Builder::argument(const std::string& name, Dtype dtype, Shape shape) {
  spec::Argument a;
  a.name = name;
  a.dtype = dtype;
  a.is_tensor = !shape.empty();
  for (size_t d = 0; d < shape.size(); ++d) a.stride_order.push_back(static_cast<int>(d));
  graph.arguments.push_back(a);
  spec::Node n{name, "argument", ""};
  n.dtype = dtype;
  n.shape = std::move(shape);
  return graph.add(std::move(n));
}

Shape Builder::shape_of(const Value& v) const {
  return v.kind == Value::Kind::node ? shape(v.node) : Shape{};
}

Shape Builder::broadcast(const Shape& a, const Shape& b) const {
  Shape out = a.size() > b.size() ? a : b;
  const Shape& other = a.size() > b.size() ? b : a;
  for (size_t d = 0; d < other.size(); ++d) {
    ExprPtr& mine = out[out.size() - other.size() + d];
    if (is_one(mine)) mine = other[d];
  }
  return out;
}

Dtype Builder::promoted(const Value& a, const Value& b) const {
  std::vector<Dtype> with_dims, without;
  for (const Value* v : {&a, &b}) {
    if (v->kind == Value::Kind::node)
      (rank(v->node) ? with_dims : without).push_back(dtype(v->node));
    else
      without.push_back(v->kind == Value::Kind::real      ? Dtype::f32
                        : v->kind == Value::Kind::integer ? Dtype::i64
                                                          : Dtype::boolean);
  }
  std::vector<Dtype>& first = with_dims.empty() ? without : with_dims;
  Dtype out = first[0];
  for (const Dtype t : first) out = wider(out, t);
  for (const Dtype t : without)
    if (category(t) > category(out)) out = t;
  return out;
}

int Builder::unary(const std::string& op, int a) {
  const bool real = gives_real(op) && !is_float(dtype(a));
  return add(op, {node(a)}, shape(a),
             op == "logical_not" ? Dtype::boolean
             : real              ? Dtype::f32
                                 : dtype(a));
}

int Builder::binary(const std::string& op, const Value& a, const Value& b) {
  Dtype t = gives_truth(op) ? Dtype::boolean : promoted(a, b);
  if (gives_real(op) && !is_float(t)) t = Dtype::f32;
  return add(op, {a, b}, broadcast(shape_of(a), shape_of(b)), t);
}

int Builder::where(int condition, const Value& a, const Value& b) {
  return add("where", {node(condition), a, b},
             broadcast(shape(condition), broadcast(shape_of(a), shape_of(b))), promoted(a, b));
}

int Builder::masked_fill(int x, int mask, double value) {
  return add("masked_fill", {node(x), node(mask), number(value)}, broadcast(shape(x), shape(mask)),
             dtype(x));
}

int Builder::clamp(int x, int64_t low, int64_t high) {
  return add("clamp", {node(x), whole(low), whole(high)}, shape(x), dtype(x));
}

int Builder::to(int x, Dtype t) { return add("to", {node(x), type(t)}, shape(x), t); }

int Builder::arange(const ExprPtr& end) { return add("arange", {size(end)}, {end}, Dtype::i64); }

int Builder::full(const char* op, Shape shape, Dtype t) {
  std::vector<Value> dims;
  for (const ExprPtr& d : shape) dims.push_back(size(d));
  const int n = add(op, {list(dims)}, std::move(shape), t);
  graph.nodes[n].kwargs["dtype"] = type(t);
  return n;
}

int Builder::triangle(const char* op, int x, int64_t diagonal) {
  return add(op, {node(x), whole(diagonal)}, shape(x), dtype(x));
}

int Builder::view(const char* op, int x, Shape shape) {
  std::vector<Value> dims;
  for (const ExprPtr& d : shape) dims.push_back(size(d));
  return add(op, {node(x), list(dims)}, std::move(shape), dtype(x));
}

int Builder::unsqueeze(int x, int dim) {
  Shape s = shape(x);
  s.insert(s.begin() + dim, constant(1));
  return add("unsqueeze", {node(x), whole(dim)}, std::move(s), dtype(x));
}

int Builder::transpose(int x, int a, int b) {
  Shape s = shape(x);
  const int rank = static_cast<int>(s.size());
  std::swap(s[a < 0 ? a + rank : a], s[b < 0 ? b + rank : b]);
  return add("transpose", {node(x), whole(a), whole(b)}, std::move(s), dtype(x));
}

int Builder::repeat_interleave(int x, int64_t times, int dim) {
  Shape s = shape(x);
  s[dim] = spec::binary("*", s[dim], constant(times));
  return add("repeat_interleave", {node(x), whole(times), whole(dim)}, std::move(s), dtype(x));
}

int Builder::index(int x, const std::vector<int>& at) {
  std::vector<Value> indices;
  Shape s;
  for (const int i : at) {
    indices.push_back(node(i));
    s = broadcast(s, shape(i));
  }
  s.insert(s.end(), shape(x).begin() + static_cast<long>(at.size()), shape(x).end());
  return add("index", {node(x), list(indices)}, std::move(s), dtype(x));
}

int Builder::softmax(int x, bool in_f32) {
  const int n = add("softmax", {node(x), whole(-1)}, shape(x), in_f32 ? Dtype::f32 : dtype(x));
  if (in_f32) graph.nodes[n].kwargs["dtype"] = type(Dtype::f32);
  return n;
}

int Builder::reduce(const char* op, int x, bool keep) {
  Shape s = shape(x);
  if (keep)
    s.back() = constant(1);
  else
    s.pop_back();
  return add(op, {node(x), list({whole(-1)}), truth(keep)}, std::move(s), dtype(x));
}

int Builder::matmul(int a, int b) {
  Shape left = shape(a), right = shape(b);
  const ExprPtr columns = right.back();
  left.back() = right.back() = constant(1);
  right[right.size() - 2] = constant(1);
  Shape s = broadcast(left, right);
  s.back() = columns;
  return add("matmul", {node(a), node(b)}, std::move(s), wider(dtype(a), dtype(b)));
}

int Builder::einsum(const std::string& text, int a, int b, Shape shape) {
  Value equation;
  equation.kind = Value::Kind::text;
  equation.text = text;
  return add("einsum", {equation, list({node(a), node(b)})}, std::move(shape), dtype(a));
}

int Builder::attention(int q, int k, int v, int mask, bool causal, double scale, bool grouped) {
  Shape s = shape(q);
  s.back() = shape(v).back();
  const int n =
      add("scaled_dot_product_attention",
          {node(q), node(k), node(v), mask < 0 ? Value{} : node(mask), number(0.0), truth(causal)},
          std::move(s), dtype(q));
  if (scale > 0) graph.nodes[n].kwargs["scale"] = number(scale);
  if (grouped) graph.nodes[n].kwargs["enable_gqa"] = truth(true);
  return n;
}

}  // namespace kw::fuzz
