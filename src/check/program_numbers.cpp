#include "check/program_numbers.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kw::check {
namespace {

using Known = std::map<std::string, int64_t>;

std::optional<int64_t> constant(const tl::ExprPtr& e, const Known& known);

std::optional<int64_t> computed(const tl::Expr& e, const Known& known) {
  std::vector<int64_t> x;
  for (const tl::ExprPtr& arg : e.args) {
    const auto value = constant(arg, known);
    if (!value || std::abs(*value) > kFarthest) return std::nullopt;
    x.push_back(*value);
  }
  if (e.kind == tl::ExprKind::unary && e.text == "-") return -x[0];
  if (e.text == "min" && x.size() == 2) return std::min(x[0], x[1]);
  if (e.text == "max" && x.size() == 2) return std::max(x[0], x[1]);
  if (e.text == "ceil_div" && x.size() == 2 && x[1] > 0) return (x[0] + x[1] - 1) / x[1];
  if (e.kind != tl::ExprKind::binary) return std::nullopt;
  if (e.text == "+") return x[0] + x[1];
  if (e.text == "-") return x[0] - x[1];
  if (e.text == "*") return x[0] * x[1];
  if (e.text == "//" && x[0] >= 0 && x[1] > 0) return x[0] / x[1];
  if (e.text == "%" && x[0] >= 0 && x[1] > 0) return x[0] % x[1];
  if (e.text == "<<" && x[0] >= 0 && x[1] >= 0 && x[1] < 21) return x[0] << x[1];
  return std::nullopt;
}

std::optional<int64_t> constant(const tl::ExprPtr& e, const Known& known) {
  if (e->kind == tl::ExprKind::integer && e->text.size() < 12) return std::stoll(e->text);
  if (e->kind == tl::ExprKind::name) {
    const auto found = known.find(e->text);
    if (found != known.end()) return found->second;
    return std::nullopt;
  }
  if (e->kind == tl::ExprKind::call || e->kind == tl::ExprKind::binary ||
      e->kind == tl::ExprKind::unary)
    return computed(*e, known);
  return std::nullopt;
}

// a + b - 3 -> -3, and whether there is more.
struct Sum {
  int64_t constant = 0;
  bool varies = false, of_tiles = false;
};
void add_up(const tl::ExprPtr& e, int sign, const Known& known, const std::set<int64_t>& tiles,
            Sum& sum) {
  if (const auto value = constant(e, known)) {
    sum.constant += sign * *value;
  } else if (e->kind == tl::ExprKind::binary && (e->text == "+" || e->text == "-")) {
    add_up(e->args[0], sign, known, tiles, sum);
    add_up(e->args[1], e->text == "+" ? sign : -sign, known, tiles, sum);
  } else {
    sum.varies = true;
    if (e->kind == tl::ExprKind::binary && e->text == "*")
      for (const tl::ExprPtr& factor : e->args)
        if (const auto value = constant(factor, known)) sum.of_tiles |= tiles.count(*value) > 0;
  }
}

class Collector {
 public:
  explicit Collector(const tl::Program& program) {
    find_tiles(program);
    std::set<std::string> varying;
    tl::walk(program.body, [&](const tl::Stmt& s) { declare(s, varying); });
    for (const std::string& name : varying) known_.erase(name);
    tl::walk(program.body, [&](const tl::Stmt& s) { read(s); });
    for (const tl::Stmt& s : program.body)
      if (s.op == tl::Op::def)
        tl::walk(s.body, [&](const tl::Stmt& inside) {
          for (const auto& [name, value] : parameters_)
            if (value > 4 && !out_.tiles.contains(value) && reads(inside, name))
              out_.counts.insert(value);
        });
  }
  ProgramNumbers take() { return std::move(out_); }

 private:
  template <typename Take>
  static void literals(const tl::ExprPtr& e, const Take& take) {
    tl::rewrite(e, [&](const tl::ExprPtr& part) {
      if (part->kind == tl::ExprKind::integer && part->text.size() < 12)
        take(std::stoll(part->text));
      return tl::ExprPtr();
    });
  }

  static bool reads(const tl::Stmt& s, const std::string& name) {
    for (const tl::Field& field : s.fields)
      for (const tl::Item& item : field.items)
        if (tl::mentions(item.expr, name)) return true;
    return false;
  }

  void find_tiles(const tl::Program& program) {
    tl::walk(program.body, [&](const tl::Stmt& s) {
      if (s.op != tl::Op::param) return;
      for (const tl::Item& item : s.names())
        if (item.expr && (item.name == "BM" || item.name == "BN" || item.name == "BK"))
          literals(item.expr, [&](int64_t value) {
            (item.name == "BK" ? out_.steps : out_.tiles).insert(value);
          });
    });
  }

  // What names stand for that are declared with a constant, everywhere.
  void declare(const tl::Stmt& s, std::set<std::string>& varying) {
    if (s.op != tl::Op::param && s.op != tl::Op::let && s.op != tl::Op::arg_size) return;
    for (const tl::Item& item : s.names()) {
      if (!item.expr) continue;
      const auto value = constant(item.expr, known_);
      if (!value || (known_.count(item.name) && known_[item.name] != *value))
        varying.insert(item.name);
      else
        known_[item.name] = *value;
      if (value && s.op == tl::Op::param) parameters_[item.name] = *value;
    }
  }

  // a // 64 // 64   ->   4096: 1 where e is no quotient.
  int64_t divisor_of(const tl::ExprPtr& e) const {
    if (e->kind != tl::ExprKind::binary || e->text != "//") return 1;
    const int64_t own = constant(e->args[1], known_).value_or(0);
    const int64_t inner = divisor_of(e->args[0]);
    return own > 0 && inner <= kFarthest / own ? own * inner : kFarthest + 1;
  }

  void bound(int64_t value, bool of_tiles) {
    value = std::abs(value);
    if (of_tiles)  // the edge of a tile
      for (const int64_t tile : out_.tiles)
        if (std::abs(value - tile) <= 1) return;
    if (value > 4 && value <= kFarthest) out_.bounds.insert(value);
  }

  Sum sum_of(const tl::ExprPtr& e) const {
    Sum sum;
    add_up(e, 1, known_, out_.tiles, sum);
    return sum;
  }

  // What two integers differ by, one of them no number.
  void compare(const tl::ExprPtr& a, const tl::ExprPtr& b) {
    const Sum x = sum_of(a), y = sum_of(b);
    if (x.varies || y.varies) bound(x.constant - y.constant, x.of_tiles || y.of_tiles);
  }

  void bounds_of(const tl::Expr& e) {
    static const std::set<std::string> compared = {"<", "<=", ">", ">=", "==", "!="};
    const bool bounded = e.kind == tl::ExprKind::call && (e.text == "min" || e.text == "max");
    if ((bounded || (e.kind == tl::ExprKind::binary && compared.count(e.text))) &&
        e.args.size() == 2)
      compare(e.args[0], e.args[1]);
    const bool divided = (e.kind == tl::ExprKind::binary && (e.text == "//" || e.text == "%")) ||
                         (e.kind == tl::ExprKind::call && e.text == "ceil_div");
    if (divided)
      if (const auto by = constant(e.args[1], known_); by && !constant(e.args[0], known_))
        bound(*by, true);
  }

  void read(const tl::Stmt& s) {
    for (const tl::Field& field : s.fields)
      for (const tl::Item& item : field.items) {
        if (!item.expr) continue;
        tl::rewrite(item.expr, [&](const tl::ExprPtr& part) {
          const int64_t by = divisor_of(part);
          if (by >= kCovered && by <= kFarthest) out_.numbers.insert(by);
          if (s.op != tl::Op::param) bounds_of(*part);
          return tl::ExprPtr();
        });
        if (s.op != tl::Op::param)
          literals(item.expr, [&](int64_t value) { out_.numbers.insert(value); });
        if (s.op == tl::Op::arg_size)
          tl::rewrite(item.expr, [&](const tl::ExprPtr& part) {
            if (part->kind == tl::ExprKind::binary && part->text == "*" &&
                part->args[1]->kind == tl::ExprKind::integer && part->args[1]->text.size() < 6)
              if (const int64_t by = std::stoll(part->args[1]->text); by > 4)
                out_.counts.insert(by);
            return tl::ExprPtr();
          });
      }
  }

  Known known_, parameters_;
  ProgramNumbers out_;
};

}  // namespace

ProgramNumbers numbers_of(const tl::Program& program) { return Collector(program).take(); }

}  // namespace kw::check
