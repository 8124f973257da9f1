// Map bodies: one scalar expression for every element of a tile or row vector.
//
// A body is compiled to a list of row operations over registers of one row's width, then run row by
// row. What does not depend on the element (arguments, names) is evaluated once; row vectors and i
// are filled in for each row; j and the element for each column. The arithmetic is apply()'s, the
// same as everywhere.
#include <fmt/format.h>

#include <algorithm>

#include "exec/arithmetic.h"
#include "exec/machine.h"

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
};

// A register that is filled anew for each row.
struct RowInput {
  int at;
  const Row* vector;  // null: the row's coordinate i
};

class Body {
 public:
  Body(Machine& m, Agent& a, const Stmt& s, std::string target, int width, int rows)
      : c_(context(m, a, s)), target_(std::move(target)), width_(width), rows_(rows) {}

  // Coordinates of the first element, when the map has them.
  void place(int64_t i0, int64_t j0, bool real) {
    placed_ = true;
    i0_ = i0;
    coordinate_ = real ? Type::real : Type::integer;
    j_ = make(coordinate_);
    for (int k = 0; k < width_; ++k) at(j_)[k] = double(j0 + k);
  }

  // Compiles e; the result is the register it returns.
  int compile(const ExprPtr& e) {
    if (c_.m.faults.any()) return element_register();
    if (varies(e)) return compile_varying(e);
    const Value v = evaluate(c_, e);
    const int r = make(v.type);
    for (int k = 0; k < width_; ++k) at(r)[k] = v.x;
    return r;
  }

  int element_register() {
    if (element_ < 0) element_ = make(Type::real);
    return element_;
  }

  // Runs on row r, whose elements are in element_register().
  void run(int r) {
    for (const RowInput& input : inputs_) {
      const double v =
          input.vector ? input.vector->x[size_t(r) * input.vector->lanes] : double(i0_ + r);
      for (int k = 0; k < width_; ++k) at(input.at)[k] = v;
    }
    for (const RowOp& op : ops_)
      apply(op.fn, op.type, width_, at(op.in[0]), at(op.in[1]), at(op.in[2]), at(op.out));
  }

  double* at(int r) { return registers_[r].data(); }
  Type type(int r) const { return types_[r]; }

 private:
  int make(Type type) {
    registers_.emplace_back(width_);
    types_.push_back(type);
    return static_cast<int>(registers_.size()) - 1;
  }

  bool is_coordinate(const Expr& e) const {
    return placed_ && e.kind == ExprKind::name && (e.text == "i" || e.text == "j");
  }
  const Row* vector(const Expr& e) const {
    if (e.kind != ExprKind::index || e.args[0]->kind != ExprKind::name || !c_.scope) return nullptr;
    Binding* b = c_.scope->find(e.args[0]->text);
    const auto* row = b ? std::get_if<std::shared_ptr<Row>>(b) : nullptr;
    return row ? row->get() : nullptr;
  }
  bool is_element(const Expr& e) const {
    return e.kind == ExprKind::index && e.args[0]->is_name(target_);
  }
  bool varies(const ExprPtr& e) const {
    if (is_element(*e) || is_coordinate(*e) || vector(*e)) return true;
    for (const ExprPtr& arg : e->args)
      if (varies(arg)) return true;
    return false;
  }

  int input(const Row* row) {
    const int r = make(row ? Type::real : coordinate_);
    inputs_.push_back({r, row});
    return r;
  }

  int compile_varying(const ExprPtr& e) {
    if (is_element(*e)) return element_register();
    if (is_coordinate(*e)) return e->text == "j" ? j_ : input(nullptr);
    if (const Row* row = vector(*e)) {
      if (!row->defined || row->rows != rows_ || row->lanes != 1)
        c_.m.faults.raise(
            row->defined ? "exec.shape" : "exec.uninitialised", c_.at,
            fmt::format("{} is not a row vector of {} rows that was set", tl::print(e), rows_));
      return input(row);
    }
    const std::optional<Fn> fn =
        function_named(e->kind == ExprKind::where ? "where" : e->text, e->args.size());
    RowOp op{fn.value_or(Fn::add), Type::none, 0, {0, 0, 0}};
    Type types[3] = {};
    for (size_t k = 0; k < e->args.size() && k < 3; ++k) {
      op.in[k] = compile(e->args[k]);
      types[k] = type(op.in[k]);
    }
    op.type = fn ? result_type(*fn, types) : Type::none;
    if (op.type == Type::none && !c_.m.faults.any())
      c_.m.faults.raise("exec.type", c_.at,
                        fmt::format("{} cannot be computed for an element", tl::print(e)));
    check_divisor(e, op);
    op.out = make(op.type);
    ops_.push_back(op);
    return op.out;
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
  std::string target_;
  int width_, rows_;
  bool placed_ = false;
  int64_t i0_ = 0;
  Type coordinate_ = Type::integer;
  int element_ = -1, j_ = -1;
  std::vector<std::vector<double>> registers_;
  std::vector<Type> types_;
  std::vector<RowInput> inputs_;
  std::vector<RowOp> ops_;
};

bool gives_real(Machine& m, const Stmt& s, Type type) {
  if (type == Type::real || m.faults.any()) return !m.faults.any();
  m.faults.raise("exec.type", &s, "the body of a map is not a real number");
  return false;
}

}  // namespace

void run_map(Machine& m, Agent& a, const Stmt& s, Tile& target, const std::string& name,
             std::optional<Origin> origin) {
  Body body(m, a, s, name, target.columns, target.rows);
  if (origin) body.place(origin->i, origin->j, origin->real);
  const int element = body.element_register();
  const int result = body.compile(s.expr("f"));
  if (!gives_real(m, s, body.type(result))) return;
  for (int r = 0; r < target.rows; ++r) {
    float* row = target.row(r);
    std::copy_n(row, target.columns, body.at(element));
    body.run(r);
    for (int k = 0; k < target.columns; ++k) row[k] = static_cast<float>(body.at(result)[k]);
  }
}

// Lanes of a partial are mapped one by one, like the columns of a tile.
void run_row_map(Machine& m, Agent& a, const Stmt& s, Row& target, const std::string& name) {
  Body body(m, a, s, name, target.lanes, target.rows);
  const int element = body.element_register();
  const int result = body.compile(s.expr("f"));
  if (!gives_real(m, s, body.type(result))) return;
  for (int r = 0; r < target.rows; ++r) {
    float* row = target.x.data() + size_t(r) * target.lanes;
    std::copy_n(row, target.lanes, body.at(element));
    body.run(r);
    for (int k = 0; k < target.lanes; ++k) row[k] = static_cast<float>(body.at(result)[k]);
  }
}

}  // namespace kw::exec
