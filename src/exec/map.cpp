// Map bodies: one scalar expression for every element of a tile or row vector.
//
// A body is compiled to a list of row operations over registers of one row's width, then run row by
// row. What does not depend on the element (arguments, names) is evaluated once; row vectors, i and
// rows of operands are filled in for each row; j, column vectors and the element for each column.
// The arithmetic is apply()'s, the same as everywhere. What sets a vector is one such row: its
// coordinate, i or j, is what j is to a tile.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <variant>

#include "exec/exact.h"
#include "exec/fused.h"
#include "exec/reads.h"

namespace kw::exec {

using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Stmt;

namespace {

struct RowOp {
  Fn fn;
  Type type;
  int out, in[3];
  int operands;
};

// An element of a tensor for each element of the map, at indices in registers.
struct RowRead {
  std::string name;
  const Global* tensor;
  std::vector<int> at;
  int out;
};

// A register that is filled anew for each row.
struct RowInput {
  int at;
  const Row* vector;  // null, and no tile: the row's coordinate i
  const Tile* tile;
};

class Body {
 public:
  Body(Machine& m, Agent& a, const Stmt& s, std::string target, int width, int rows)
      : Body(context(m, a, s), std::move(target), width, rows) {}
  Body(const Context& c, std::string target, int width, int rows)
      : c_(c), algebra_(c.m.algebra), target_(std::move(target)), width_(width), rows_(rows) {}

  // Coordinates of the first element, when the map has them.
  void place(int64_t i0, int64_t j0, bool real) {
    coordinates_ = {"i", "j"};
    i0_ = i0;
    coordinate_ = real ? Type::real : Type::integer;
    number_columns("j", j0);
  }
  // Of a vector, whose elements lie along the width: its only coordinate.
  void place_along(const std::string& name, int64_t first) {
    coordinates_ = {name};
    number_columns(name, first);
  }

  // Compiles e; the result is the register it returns.
  int compile(const ExprPtr& e) {
    if (c_.m.faults.any()) return element_register();
    if (varies(e)) return compile_varying(e);
    const Value v = evaluate(c_, e);
    const int r = make(v.type);
    registers_[r].x.assign(width_, v.x);
    if (algebra_) registers_[r].e.assign(width_, v.e);
    return r;
  }

  int element_register() {
    if (element_ < 0) element_ = make(Type::real);
    return element_;
  }

  // Runs on row r, whose elements are in element_register().
  void run(int r) {
    for (const RowInput& input : inputs_) {
      if (input.tile) {
        input.tile->of_bools() ? take_bools(*input.tile, r, input.at)
                               : take(*input.tile, r, input.at);
        continue;
      }
      const Row* row = input.vector;
      for (int k = 0; k < width_; ++k)
        if (row)
          set_element(input.at, k, *row, row->tile_rows ? k - r + row->tile_rows - 1 : r);
        else
          set(input.at, k, double(i0_ + r));
    }
    for (const auto& op : ops_)
      if (const auto* read = std::get_if<RowRead>(&op))
        run_read(*read);
      else
        run_op(std::get<RowOp>(op));
  }

  // Row r of a tile or row vector of this width, to and from a register.
  template <class Numbers>
  void take(const Numbers& from, int r, int to) {
    if (algebra_)
      std::copy_n(&from.e[size_t(r) * width_], width_, registers_[to].e.data());
    else
      std::copy_n(&from.x[size_t(r) * width_], width_, at(to));
  }
  void take_bools(const Tile& from, int r, int to) { std::copy_n(from.row(r), width_, at(to)); }
  void give_bools(int from, Tile& to, int r) { std::copy_n(at(from), width_, to.row(r)); }
  // The whole register, to a vector.
  void append_numbers(int from, std::vector<int64_t>& to) {
    for (int k = 0; k < width_; ++k) to.push_back(static_cast<int64_t>(at(from)[k]));
  }
  void give_vector(int from, Row& to) {
    if (to.ints.empty()) return give(from, to, 0);
    for (int k = 0; k < width_; ++k) to.ints[k] = static_cast<int64_t>(at(from)[k]);
  }
  template <class Numbers>
  void give(int from, Numbers& to, int r) {
    if (algebra_)
      std::copy_n(registers_[from].e.data(), width_, &to.e[size_t(r) * width_]);
    else
      for (int k = 0; k < width_; ++k)
        to.x[size_t(r) * width_ + k] = static_cast<float>(at(from)[k]);
  }

  Columns columns(int r) { return {std::move(registers_[r].x), std::move(registers_[r].e)}; }
  Type type(int r) const { return registers_[r].type; }

 private:
  struct Register {
    Type type;
    std::vector<double> x;
    std::vector<exact::Element> e;  // of the exact reading
  };

  double* at(int r) { return registers_[r].x.data(); }
  Operand operand(int r) const {
    return {registers_[r].type, registers_[r].x.data(), registers_[r].e.data()};
  }
  // An integer, or a coordinate that is real.
  void set(int r, int k, double value) {
    registers_[r].x[k] = value;
    if (algebra_ && registers_[r].type == Type::real)
      registers_[r].e[k] = algebra_->integer(static_cast<int64_t>(value));
  }

  // Element r of a vector.
  void set_element(int to, int k, const Row& from, int r) {
    const size_t at = size_t(r) * from.lanes;
    if (!from.ints.empty())
      registers_[to].x[k] = double(from.ints[at]);
    else if (algebra_)
      registers_[to].e[k] = from.e[at];
    else
      registers_[to].x[k] = from.x[at];
  }

  void number_columns(const std::string& name, int64_t first) {
    along_ = name;
    j_ = make(coordinate_);
    for (int k = 0; k < width_; ++k) set(j_, k, double(first + k));
  }

  void run_op(const RowOp& op) {
    if (!algebra_)
      return apply(op.fn, op.type, width_, at(op.in[0]), at(op.in[1]), at(op.in[2]), at(op.out));
    Operand in[3] = {};
    for (int k = 0; k < op.operands; ++k) in[k] = operand(op.in[k]);
    exact_apply(*algebra_, op.fn, op.type, width_, in, at(op.out), registers_[op.out].e.data());
  }

  // Tiles hang over the edges of tensors: an index outside of a dimension, on either side, reads
  // its last element.
  void run_read(const RowRead& read) {
    const std::vector<int64_t>& shape = read.tensor->data.shape;
    for (int k = 0; k < width_; ++k) {
      int64_t offset = 0;
      for (size_t d = 0; d < shape.size(); ++d) {
        const auto index = static_cast<int64_t>(at(read.at[d])[k]);
        const bool inside = index >= 0 && index < shape[d];
        offset = offset * shape[d] + (inside ? index : shape[d] - 1);
      }
      const Value v = element_at(c_, read.name, *read.tensor, offset);
      registers_[read.out].x[k] = v.x;
      if (algebra_) registers_[read.out].e[k] = v.e;
    }
  }

  int make(Type type) {
    registers_.push_back({type, std::vector<double>(width_), {}});
    if (algebra_) registers_.back().e.resize(width_);
    return static_cast<int>(registers_.size()) - 1;
  }

  bool is_coordinate(const Expr& e) const {
    return e.kind == ExprKind::name && coordinates_.count(e.text);
  }
  const Row* vector(const Expr& e) const {
    if (e.kind != ExprKind::index || e.args[0]->kind != ExprKind::name || !c_.scope) return nullptr;
    Binding* b = c_.scope->find(e.args[0]->text);
    const auto* row = b ? std::get_if<std::shared_ptr<Row>>(b) : nullptr;
    return row ? row->get() : nullptr;
  }
  // An operand, or another accumulator.
  const Tile* tile(const Expr& e) const {
    if (e.kind != ExprKind::index || e.args[0]->kind != ExprKind::name || !c_.scope) return nullptr;
    Binding* b = c_.scope->find(e.args[0]->text);
    const auto* tile = b ? std::get_if<std::shared_ptr<Tile>>(b) : nullptr;
    return tile ? tile->get() : nullptr;
  }
  bool is_element(const Expr& e) const {
    return e.kind == ExprKind::index && e.args[0]->is_name(target_);
  }
  bool varies(const ExprPtr& e) const {
    if (is_element(*e) || is_coordinate(*e) || vector(*e) || tile(*e)) return true;
    for (const ExprPtr& arg : e->args)
      if (varies(arg)) return true;
    return false;
  }

  static Type type_of(const Row& vector) {
    return vector.ints.empty() ? Type::real : Type::integer;
  }

  int input(const Row* row) {
    const int r = make(row ? type_of(*row) : coordinate_);
    inputs_.push_back({r, row, nullptr});
    return r;
  }

  int compile_tile(const ExprPtr& e, const Tile& t) {
    const bool fits = t.role != Role::shared && t.rows == rows_ && t.columns == width_ &&
                      e->args.size() == 3 && e->args[1]->is_name("i") && e->args[2]->is_name("j");
    if (!t.defined || !fits)
      c_.m.faults.raise(
          t.defined ? "exec.shape" : "exec.uninitialised", c_.at,
          fmt::format("{} is not a tile of {} x {} that was set", tl::print(e), rows_, width_));
    if (c_.m.faults.any()) return element_register();
    const int r = make(t.of_bools() ? Type::boolean : Type::real);
    inputs_.push_back({r, nullptr, &t});
    return r;
  }

  int compile_vector(const ExprPtr& e, const Row& v) {
    const char* kind = v.tile_rows ? "diagonal" : v.column ? "column" : "row";
    const int due = v.tile_rows ? rows_ + width_ - 1 : v.column ? width_ : rows_;
    const ExprPtr i = tl::name("i"), j = tl::name("j");
    const ExprPtr at = v.tile_rows ? tl::binary("-", j, i) : v.column ? j : i;
    const bool fits = v.rows == due && v.lanes == 1 && (!v.tile_rows || v.tile_rows == rows_);
    if (!v.defined || !fits || !tl::equal(e->args[1], at))
      c_.m.faults.raise(v.defined ? "exec.shape" : "exec.uninitialised", c_.at,
                        fmt::format("{} is not a {} vector of {} elements that was set",
                                    tl::print(e), kind, due));
    if (c_.m.faults.any()) return element_register();
    if (!v.column) return input(&v);
    const int r = make(type_of(v));
    for (int k = 0; k < width_; ++k) set_element(r, k, v, k);
    return r;
  }

  int emit(Fn fn, std::initializer_list<int> in) {
    RowOp op{fn, Type::none, 0, {0, 0, 0}, int(in.size())};
    std::copy(in.begin(), in.end(), op.in);
    Type types[3] = {};
    for (size_t k = 0; k < in.size(); ++k) types[k] = type(op.in[k]);
    op.type = result_type(fn, types);
    op.out = make(op.type);
    ops_.push_back(op);
    return op.out;
  }

  // a * b + rest: one rounding if they are reals.
  int compile_fused(const FusedSum& sum) {
    int a = compile(sum.a), rest = compile(sum.rest);
    const int b = compile(sum.b);
    if (sum.negative_product) a = emit(Fn::negate, {a});
    if (sum.negative_rest) rest = emit(Fn::negate, {rest});
    const bool reals = type(a) == Type::real && type(b) == Type::real && type(rest) == Type::real;
    return reals ? emit(Fn::fma, {a, b, rest}) : emit(Fn::add, {emit(Fn::mul, {a, b}), rest});
  }

  int compile_varying(const ExprPtr& e) {
    if (is_element(*e)) return element_register();
    if (is_coordinate(*e)) return e->text == along_ ? j_ : input(nullptr);
    if (const Row* row = vector(*e)) return compile_vector(e, *row);
    if (const Tile* operand = tile(*e)) return compile_tile(e, *operand);
    if (e->kind == ExprKind::index) return compile_read(*e);
    if (const std::optional<FusedSum> sum = fused_sum(c_, *e)) return compile_fused(*sum);
    const std::optional<Fn> fn =
        function_named(e->kind == ExprKind::where ? "where" : e->text, e->args.size());
    RowOp op{fn.value_or(Fn::add), Type::none, 0, {0, 0, 0}, int(e->args.size())};
    Type types[3] = {};
    const bool around = c_.compared;
    c_.compared |= fn && is_comparison(*fn);
    for (size_t k = 0; k < e->args.size() && k < 3; ++k) {
      op.in[k] = compile(e->args[k]);
      types[k] = type(op.in[k]);
    }
    c_.compared = around;
    op.type = fn ? result_type(*fn, types) : Type::none;
    if (op.type == Type::none && !c_.m.faults.any())
      c_.m.faults.raise("exec.type", c_.at,
                        fmt::format("{} cannot be computed for an element", tl::print(e)));
    check_divisor(e, op);
    op.out = make(op.type);
    ops_.push_back(op);
    return op.out;
  }

  int compile_read(const Expr& e) {
    RowRead read{e.args[0]->text, readable_tensor(c_, e.args[0]->text), {}, 0};
    if (read.tensor && read.tensor->data.shape.size() + 1 != e.args.size())
      c_.m.faults.raise("exec.type", c_.at,
                        fmt::format("{} has another number of dimensions", read.name));
    if (c_.m.faults.any()) return element_register();
    for (size_t k = 1; k < e.args.size(); ++k) read.at.push_back(compile(e.args[k]));
    const Dtype dtype = read.tensor->data.dtype;
    read.out = make(is_float(dtype)           ? Type::real
                    : dtype == Dtype::boolean ? Type::boolean
                                              : Type::integer);
    ops_.push_back(read);
    return read.out;
  }

  void check_divisor(const ExprPtr& e, const RowOp& op) {
    const bool divides = op.fn == Fn::floor_div || op.fn == Fn::floor_mod || op.fn == Fn::ceil_div;
    if (!divides || c_.m.faults.any()) return;
    if (varies(e->args[1]) || at(op.in[1])[0] <= 0)
      c_.m.faults.raise(
          "exec.bounds", c_.at,
          fmt::format("the divisor of {} is not a positive constant of the map", tl::print(e)));
  }

  Context c_;
  const exact::Algebra* algebra_;
  std::string target_;
  int width_, rows_;
  std::set<std::string> coordinates_;
  std::string along_;  // the one that numbers columns
  int64_t i0_ = 0;
  Type coordinate_ = Type::integer;
  int element_ = -1, j_ = -1;
  std::vector<Register> registers_;
  std::vector<RowInput> inputs_;
  std::vector<std::variant<RowOp, RowRead>> ops_;
};

bool gives(Machine& m, const Stmt& s, Type type, Type due) {
  if (type == due || m.faults.any()) return !m.faults.any();
  m.faults.raise(
      "exec.type", &s,
      fmt::format("the body of a map is not a {}", due == Type::real      ? "real number"
                                                   : due == Type::boolean ? "truth value"
                                                                          : "whole number"));
  return false;
}

}  // namespace

void run_map(Machine& m, Agent& a, const Stmt& s, Tile& target, const std::string& name,
             std::optional<Origin> origin) {
  Body body(m, a, s, name, target.columns, target.rows);
  if (origin) body.place(origin->i, origin->j, origin->real);
  const int element = body.element_register();
  const int result = body.compile(s.value());
  const bool bools = target.of_bools();  // which set_tile writes without reading them
  if (!gives(m, s, body.type(result), bools ? Type::boolean : Type::real)) return;
  for (int r = 0; r < target.rows; ++r) {
    if (!bools) body.take(target, r, element);
    body.run(r);
    bools ? body.give_bools(result, target, r) : body.give(result, target, r);
  }
}

// Lanes of a lane sum are mapped one by one, like the columns of a tile.
void run_row_map(Machine& m, Agent& a, const Stmt& s, Row& target, const std::string& name) {
  Body body(m, a, s, name, target.lanes, target.rows);
  const int element = body.element_register();
  const int result = body.compile(s.value());
  if (!gives(m, s, body.type(result), Type::real)) return;
  for (int r = 0; r < target.rows; ++r) {
    body.take(target, r, element);
    body.run(r);
    body.give(result, target, r);
  }
}

Columns run_columns(const Context& c, int width) {
  Body body(c, "", width, 1);
  body.place_along("j", 0);
  const int result = body.compile(c.at->value());
  if (!gives(c.m, *c.at, body.type(result), Type::real)) return {};
  body.run(0);
  return body.columns(result);
}

std::vector<int64_t> run_numbers(Machine& m, Agent& a, const Stmt& s, int rows, int columns,
                                 const Origin& origin) {
  Body body(m, a, s, "", columns, rows);
  body.place(origin.i, origin.j, false);
  const int result = body.compile(s.value());
  std::vector<int64_t> out;
  if (!gives(m, s, body.type(result), Type::integer)) return out;
  for (int r = 0; r < rows && !m.faults.any(); ++r) {
    body.run(r);
    body.append_numbers(result, out);
  }
  return out;
}

std::vector<int64_t> run_numbers_along(Machine& m, Agent& a, const Stmt& s, int64_t first,
                                       int count) {
  Body body(m, a, s, "", count, 1);
  body.place_along("d", first);
  const int result = body.compile(s.value());
  std::vector<int64_t> out;
  if (!gives(m, s, body.type(result), Type::integer)) return out;
  body.run(0);
  body.append_numbers(result, out);
  return out;
}

void run_setting(Machine& m, Agent& a, const Stmt& s, Row& target, const std::string& coordinate,
                 int64_t first) {
  Body body(m, a, s, "", target.rows, 1);
  body.place_along(coordinate, first);
  const int result = body.compile(s.value());
  const Type due = target.ints.empty() ? Type::real : Type::integer;
  if (m.faults.any()) return;
  if (body.type(result) != due) {
    m.faults.raise("exec.type", &s, "the body of a vector has another type than its elements");
    return;
  }
  body.run(0);
  body.give_vector(result, target);
}

}  // namespace kw::exec
