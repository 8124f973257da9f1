#include "timeline/cost.h"

#include <algorithm>

#include "tl/traits.h"

namespace kw::timeline {

using exec::schedule::Tables;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

Cost& Cost::operator+=(const Cost& o) {
  issue += o.issue;
  fma += o.fma;
  alu += o.alu;
  mufu += o.mufu;
  latency += o.latency;
  return *this;
}

Demand& Demand::operator+=(const Demand& o) {
  issue += o.issue;
  fma += o.fma;
  alu += o.alu;
  mufu += o.mufu;
  latency += o.latency;
  return *this;
}

double Demand::alone() const { return std::max({issue, fma, alu, mufu}) + latency; }

namespace {

Cost fma_cost(double n) { return {n, n, 0, 0, 0}; }
Cost alu_cost(double n) { return {n, 0, n, 0, 0}; }
Cost mufu_cost(double n) { return {n, 0, 0, n, 0}; }

Cost times(const Cost& c, double n) {
  return {c.issue * n, c.fma * n, c.alu * n, c.mufu * n, c.latency};
}

enum Depends { uniform, row, element };

// Counts one body.
class Body {
 public:
  Body(const Stmt& s, const std::set<std::string>& operands)
      : target_(s.target()),
        operands_(operands),
        rows_(s.op == Op::map_rows || (tl::is(s.op, tl::Family::gather) && s.op != Op::set_tile)),
        sets_(rows_ && !tl::has_element(s.op)),
        real_(s.op == Op::map_real) {}

  struct Seen {
    Depends depends = uniform;
    bool real = true;
    bool product = false;  // a multiplication that an addition can take in
  };

  Seen visit(const ExprPtr& e) {
    switch (e->kind) {
      case ExprKind::integer:
        return {uniform, false, false};
      case ExprKind::real:
        return {};
      case ExprKind::name:
        return of_name(e->text);
      case ExprKind::index:
        return of_index(e);
      case ExprKind::field:
        return {uniform, false, false};
      case ExprKind::call:
        return of_call(e);
      case ExprKind::unary: {
        const Seen a = visit(e->args[0]);  // a sign is part of whoever reads it
        return {a.depends, a.real, false};
      }
      case ExprKind::where:
        return of_where(e);
      case ExprKind::binary:
        return of_binary(e);
    }
    return {};
  }

  BodyCost cost;

 private:
  Seen of_name(const std::string& name) {
    if (sets_ && (name == "i" || name == "j" || name == "d")) return {row, false, false};
    if (!rows_ && name == "i") return {row, real_, false};
    if (!rows_ && name == "j") {
      if (!column_) count(element, real_ ? fma_cost(0.5) : alu_cost(0.5));  // two rows share it
      column_ = true;
      return {element, real_, false};
    }
    return {uniform, name == "-inf" || name == "log2e" || name == "ln2", false};
  }

  // s[i, j], m[i], and elements of tensors: bias[c.h] is a scalar, table[c.h, j - i + R] is not.
  Seen of_index(const ExprPtr& e) {
    if (e->args[0]->text == target_->text) return {rows_ ? row : element, true, false};
    if (!sets_ && e->args.size() == 2 && e->args[1]->is_name("i")) return {row, true, false};
    if (operands_.count(e->args[0]->text)) {
      count(element, alu_cost(1));  // out of its word
      return {element, true, false};
    }
    if (!sets_ && e->args.size() == 2 && e->args[1]->is_name("j")) {
      count(element, alu_cost(0.5));  // a shuffle, which two rows share
      return {element, true, false};
    }
    Depends d = uniform;
    for (size_t k = 1; k < e->args.size(); ++k) d = std::max(d, visit(e->args[k]).depends);
    // The index is brought inside, multiplied with the stride, made an address; and the load.
    count(d, {4, 2, 1, 0, 0});
    return {d, true, false};
  }

  Seen of_call(const ExprPtr& e) {
    Seen out;
    bool all_real = true;
    for (const ExprPtr& arg : e->args) {
      const Seen a = visit(arg);
      out.depends = std::max(out.depends, a.depends);
      all_real = all_real && a.real;
    }
    const std::string& f = e->text;
    out.real = f != "ceil_div" && f != "heads_at_once" && (all_real || f == "f32");
    if (f == "fma")
      count(out.depends, fma_cost(1));
    else if (f == "exp2" || f == "tanh" || f == "rsqrt")
      count(out.depends, mufu_cost(1));
    else if (f == "reciprocal" || f == "log2") {  // and the scaling of denormal numbers
      count(out.depends, mufu_cost(1));
      count(out.depends, fma_cost(2));
    } else if (f != "abs") {
      count(out.depends, alu_cost(1));  // min, max, f32
    }
    return out;
  }

  Seen of_where(const ExprPtr& e) {
    const Seen c = visit(e->args[0]), a = visit(e->args[1]), b = visit(e->args[2]);
    const Depends d = std::max({c.depends, a.depends, b.depends});
    count(d, alu_cost(1));
    return {d, a.real && b.real, false};
  }

  // i - j or j - i of a map_real: one addition (kw::Coordinate).
  bool is_distance(const ExprPtr& e) const {
    const auto coordinate = [](const ExprPtr& x) { return x->is_name("i") || x->is_name("j"); };
    return real_ && e->text == "-" && coordinate(e->args[0]) && coordinate(e->args[1]);
  }

  Seen of_binary(const ExprPtr& e) {
    if (is_distance(e)) {
      count(element, fma_cost(1));
      return {element, true, false};
    }
    const Seen a = visit(e->args[0]), b = visit(e->args[1]);
    const Depends d = std::max(a.depends, b.depends);
    const bool real = a.real && b.real;
    const std::string& op = e->text;
    if (op == "+" || op == "-") {
      // The multiplication has been counted: the addition is free where it takes it in.
      if (!(real && ((a.product && a.depends == d) || (b.product && b.depends == d))))
        count(d, real ? fma_cost(1) : alu_cost(1));
    } else if (op == "*") {
      count(d, fma_cost(1));  // of ints too: IMAD
    } else if (op == "/") {
      count(d, mufu_cost(1));
      count(d, fma_cost(1));
    } else if (op == "//" || op == "%") {
      count(d, alu_cost(8));  // by a constant or a scalar: multiply, shift, correct
    } else {
      count(d, alu_cost(1));  // comparisons, and, or
    }
    return {d, real, op == "*" && real};
  }

  void count(Depends d, const Cost& c) {
    if (d == uniform) return;
    (d == row && !rows_ ? cost.row : cost.element) += c;
  }

  ExprPtr target_;
  const std::set<std::string>& operands_;
  bool rows_, sets_, real_, column_ = false;
};

}  // namespace

BodyCost body_cost(const Stmt& map, const std::set<std::string>& operands) {
  Body body(map, operands);
  body.visit(map.value());
  return body.cost;
}

// A lane of the warp has rows / 32 rows (a warpgroup's 64: two) and a quarter of their columns.
Cost statement_cost(const Stmt& s, const Tables::Work& work, const Gpu& gpu,
                    const std::set<std::string>& operands) {
  const double rows = work.rows / 32.0,
               elements = work.columns > 1 ? rows * work.columns / 4 : rows;
  switch (s.op) {
    case Op::fill:
      return alu_cost(elements);
    case Op::map:
    case Op::map_at:
    case Op::map_real:
    case Op::map_rows: {
      const BodyCost body = body_cost(s, operands);
      Cost c = times(body.element, elements);
      c += times(body.row, rows);
      return c;
    }
    case Op::set_rows:
      return times(body_cost(s).element, rows);
    case Op::set_columns:  // a lane of the warp has every 32nd
      return times(body_cost(s).element, (work.columns + 31) / 32);
    case Op::set_diagonals:  // likewise of every 24th, of one for each row and column
      return times(body_cost(s).element, (work.rows + work.columns + 23) / 24);
    case Op::set_tile:  // a load for eight neighbours or more, and what exchanges them
      return {elements / 2, 0, 0, 0, 0};
    case Op::row:
    case Op::lane_sum:
      return alu_cost(rows);
    case Op::to_operand:
      return alu_cost(elements / 2);  // two to a register
    case Op::row_sum:
      return fma_cost(elements);
    case Op::row_max: {
      Cost c = alu_cost(elements + 4 * rows);
      c.latency = 60;  // two exchanges between lanes
      return c;
    }
    case Op::online_max: {  // in the common case: a maximum, and a vote
      Cost c = alu_cost((gpu.max3 ? 0.5 : 1) * elements + 6 * rows);
      c.latency = 30;
      return c;
    }
    case Op::any_exceeds: {  // two comparisons, and a vote
      Cost c = alu_cost(2 * rows);
      c.latency = 30;
      return c;
    }
    case Op::any_differs: {
      Cost c = alu_cost(rows);
      c.latency = 30;
      return c;
    }
    case Op::add:
      return fma_cost(rows);
    case Op::store_accumulator:
      return alu_cost(2 * elements);
    case Op::add_tile:  // four at a time; nobody waits for the additions
      return alu_cost(elements / 2);
    case Op::store_rows:
    case Op::store_part:
      return alu_cost(8 * rows);
    case Op::add_rows: {
      Cost c = alu_cost(12 * rows);
      c.latency = 60;  // two exchanges between lanes; nobody waits for the additions
      return c;
    }
    case Op::add_each:
      return alu_cost(10 * elements);
    case Op::add_diagonals:  // where all of a tile has one number, as most have
      return alu_cost(2 * elements);
    default:
      return {};
  }
}

Demand demand(const Cost& c, const Gpu& gpu) {
  const auto cycles = [](double instructions, double lanes) {
    return instructions * 32 / (lanes / 4);
  };
  return {c.issue * gpu.issue_interval, cycles(c.fma, gpu.fp32_lanes), cycles(c.alu, gpu.alu_lanes),
          cycles(c.mufu, gpu.mufu_lanes), c.latency};
}

// wgmma reads its right side once for 64 rows, and its left side where that lies in shared memory.
// mma reads both through registers: the right side once for each warp, as it has no other rows.
ProductCost product_cost(const Tables::Work& w, bool async, bool left_shared, double flop_per_cycle,
                         const Gpu& gpu) {
  const double right = 2.0 * w.columns * w.depth, left = 2.0 * w.rows * w.depth;
  const double bytes =
      async ? right * w.rows / 64 + (left_shared ? left : 0) : 4 * right + (left_shared ? left : 0);
  const double flop = 2.0 * w.rows * w.columns * w.depth;
  return {flop / flop_per_cycle, bytes / gpu.shared_bytes_per_cycle, flop};
}

}  // namespace kw::timeline
