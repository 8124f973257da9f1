// The slips that people make in formulas: off by one, < for <=, a sign, a factor that is missing,
// rows for columns, the arms of a choice swapped; and in statements: no rescaling, no mask, a sum
// before the exponentials, a product that overwrites instead of adding.
#include "numerical.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "tl/traits.h"

namespace kw::test {

using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Op;
using tl::Program;
using tl::Stmt;

namespace {

struct Variant {
  std::string kind;
  ExprPtr expr;
};

// ---- expressions

// What is easily written for what.
const std::map<std::string, std::vector<std::string>>& confusions() {
  static const std::map<std::string, std::vector<std::string>> table = {{"i", {"j"}},
                                                                        {"j", {"i"}},
                                                                        {"i0", {"0"}},
                                                                        {"M", {"N"}},
                                                                        {"N", {"M"}},
                                                                        {"BM", {"BN"}},
                                                                        {"BN", {"BM"}},
                                                                        {"H", {"G", "B"}},
                                                                        {"G", {"H"}},
                                                                        {"n", {"t"}},
                                                                        {"g", {"c.h"}},
                                                                        {"ln2", {"log2e"}},
                                                                        {"log2e", {"ln2"}},
                                                                        {"-inf", {"0.0"}},
                                                                        {"true", {"false"}},
                                                                        {"false", {"true"}},
                                                                        {"me", {"0"}},
                                                                        {"cta", {"0"}},
                                                                        {"scale", {"slack"}},
                                                                        {"m", {"l"}},
                                                                        {"mine", {"keys"}},
                                                                        {"keys", {"mine"}},
                                                                        {"offset", {"factor"}},
                                                                        {"factor", {"inverse"}},
                                                                        {"rows", {"BM"}},
                                                                        {"kept", {"N"}},
                                                                        {"slope", {"scale"}},
                                                                        {"D", {"BN"}},
                                                                        {"WARPGROUPS", {"CTAS"}},
                                                                        {"partial", {"late"}},
                                                                        {"late", {"partial"}},
                                                                        {"fresh", {"l"}}};
  return table;
}

void of_binary(const ExprPtr& e, std::vector<Variant>& out) {
  const ExprPtr &a = e->args[0], &b = e->args[1];
  const std::map<std::string, std::vector<std::string>> others = {
      {"<", {"<=", ">"}}, {"<=", {"<", ">="}}, {">", {">=", "<"}}, {">=", {">", "<="}},
      {"==", {"!="}},     {"!=", {"=="}},      {"and", {"or"}},    {"or", {"and"}},
      {"+", {"-"}},       {"-", {"+"}},        {"//", {"%"}},      {"%", {"//"}},
      {"*", {"+"}},       {"/", {"*"}},        {"&", {"|"}},       {"|", {"&"}},
      {"^", {"|"}},       {"<<", {">>"}},      {">>", {"<<"}}};
  if (const auto found = others.find(e->text); found != others.end())
    for (const std::string& op : found->second)
      out.push_back({fmt::format("{} for {}", op, e->text), tl::binary(op, a, b)});
  out.push_back({"left operand of " + e->text + " alone", a});
  out.push_back({"right operand of " + e->text + " alone", b});
  if (e->text == "-" || e->text == "//" || e->text == "/" || e->text == "%" || e->text == "<<" ||
      e->text == ">>")
    out.push_back({"swapped operands of " + e->text, tl::binary(e->text, b, a)});
}

void of_call(const ExprPtr& e, std::vector<Variant>& out) {
  const auto& a = e->args;
  const auto named = [&](const char* other) {
    out.push_back({fmt::format("{} for {}", other, e->text), tl::call(other, a)});
  };
  if (e->text == "min") named("max");
  if (e->text == "max") named("min");
  if (e->text == "ceil_div" && a.size() == 2)
    out.push_back({"floor for ceil_div", tl::binary("//", a[0], a[1])});
  if (e->text == "fma" && a.size() == 3) {
    out.push_back({"other operand of fma", tl::call("fma", {a[0], a[2], a[1]})});
    out.push_back({"factor of fma missing", tl::binary("+", a[0], a[2])});
    out.push_back({"addend of fma missing", tl::binary("*", a[0], a[1])});
    out.push_back({"sign in fma", tl::call("fma", {a[0], a[1], tl::unary("-", a[2])})});
    out.push_back({"rounded between", tl::binary("+", tl::binary("*", a[0], a[1]), a[2])});
  }
  for (const char* f : {"exp2", "log2", "reciprocal", "tanh", "rsqrt", "f32", "abs", "total"})
    if (e->text == f && a.size() == 1) out.push_back({fmt::format("no {}", f), a[0]});
  if (e->text == "exp2") named("log2");
}

// Changes of this node alone.
void local(const ExprPtr& e, std::vector<Variant>& out) {
  switch (e->kind) {
    case ExprKind::integer:
      for (const int by : {1, -1})
        out.push_back({fmt::format("{:+} constant", by), tl::integer(std::stoll(e->text) + by)});
      break;
    case ExprKind::real: {
      const double x = std::stod(e->text);
      out.push_back({"constant + 1", tl::real(x + 1)});
      out.push_back({"constant - 1", tl::real(x - 1)});
      if (x != 0) out.push_back({"constant 1 % off", tl::real(x * 1.01)});
      break;
    }
    case ExprKind::name:
      if (const auto found = confusions().find(e->text); found != confusions().end())
        for (const std::string& other : found->second) {
          Diagnostics ignored;
          out.push_back({fmt::format("{} for {}", other, e->text), tl::parse_expr(other, ignored)});
        }
      break;
    case ExprKind::field:
      for (const auto& [mine, other] : std::map<std::string, std::string>{{"b", "h"},
                                                                          {"h", "b"},
                                                                          {"m", "b"},
                                                                          {"count", "full"},
                                                                          {"full", "count"},
                                                                          {"first", "full"}})
        if (e->text == mine)
          out.push_back({fmt::format(".{} for .{}", other, mine), tl::field(e->args[0], other)});
      break;
    case ExprKind::call:
      of_call(e, out);
      break;
    case ExprKind::binary:
      of_binary(e, out);
      break;
    case ExprKind::unary:
      out.push_back({"no " + e->text, e->args[0]});
      break;
    case ExprKind::where:
      out.push_back({"arms swapped", tl::where(e->args[0], e->args[2], e->args[1])});
      out.push_back({"first arm always", e->args[1]});
      out.push_back({"second arm always", e->args[2]});
      break;
    case ExprKind::index:
      for (size_t d = 1; d < e->args.size(); ++d)
        for (const char* op : {"+", "-"}) {
          std::vector<ExprPtr> at(e->args.begin() + 1, e->args.end());
          at[d - 1] = tl::binary(op, at[d - 1], tl::integer(1));
          out.push_back({fmt::format("index {}1", op), tl::index(e->args[0], at)});
        }
      break;
  }
}

// Changes of any node of the tree. The base of an index is a tile or a tensor, no operand.
std::vector<Variant> variants(const ExprPtr& e) {
  std::vector<Variant> out;
  local(e, out);
  const size_t first = e->kind == ExprKind::index || e->kind == ExprKind::field ? 1 : 0;
  for (size_t n = first; n < e->args.size(); ++n)
    for (const Variant& v : variants(e->args[n])) {
      Expr changed = *e;
      changed.args[n] = v.expr;
      out.push_back({v.kind, std::make_shared<const Expr>(std::move(changed))});
    }
  return out;
}

// ---- statements

// Elements of registers and of outputs: a statement without which, or twice, they are others.
bool changes_values(Op op) {
  return tl::is(op, Family::map) || tl::is(op, Family::gather) || tl::is(op, Family::reduce) ||
         tl::is(op, Family::result);
}

// Of these, expressions say what is computed; of others (barriers, rings, warpgroups), when.
bool computes(Op op) {
  return changes_values(op) || tl::is(op, Family::copy_in) || tl::is(op, Family::copy_out) ||
         tl::is(op, Family::loop) || (tl::is(op, Family::branch) && op != Op::step) ||
         op == Op::let || op == Op::row || op == Op::arg_f32;
}

bool drops(Op op) { return changes_values(op) || op == Op::call || op == Op::if_; }

class Mutator {
 public:
  explicit Mutator(const Program& program) : program_(program) {
    tl::walk(program.body, [&](const Stmt& s) {
      if (s.op == Op::toggle)
        for (const tl::Item& d : s.names()) toggles_[d.name] = d.expr->text == "true";
    });
  }

  std::vector<Mutant> run() {
    visit({});
    return std::move(out_);
  }

 private:
  using Path = std::vector<size_t>;

  static std::vector<Stmt>& body_at(Program& p, const Path& path) {
    std::vector<Stmt>* body = &p.body;
    for (const size_t n : path) body = &(*body)[n].body;
    return *body;
  }

  void add(const std::string& kind, const Path& path, size_t n,
           const std::function<void(std::vector<Stmt>&)>& change) {
    Program p = program_;
    const Stmt was = body_at(p, path)[n];
    change(body_at(p, path));
    if (tl::equal(p, program_)) return;
    const std::vector<Stmt>& body = body_at(p, path);
    std::string now = n < body.size() ? tl::print_head(body[n]) : "";
    if (now == tl::print_head(was)) now = "the same";
    out_.push_back(
        {kind,
         fmt::format("{}: {}", was.span.known() ? was.span.start().line : 0, tl::print_head(was)),
         std::move(p), std::move(now)});
  }

  void visit(const Path& path) {
    Program copy = program_;
    const std::vector<Stmt> body = body_at(copy, path);
    for (size_t n = 0; n < body.size(); ++n) {
      if (!is_switch(body[n])) {
        if (computes(body[n].op)) expressions(path, n, body[n]);
        statement(path, n, body);
      }
      Path inside = path;
      inside.push_back(n);
      visit(inside);
    }
  }

  // True or false where a toggle alone decides it; nothing where it does not.
  std::optional<bool> decided(const ExprPtr& e) const {
    if (e->kind == ExprKind::name) {
      const auto found = toggles_.find(e->text);
      return found == toggles_.end() ? std::nullopt : std::optional(found->second);
    }
    if (e->kind == ExprKind::unary && e->text == "not") {
      const auto inner = decided(e->args[0]);
      return inner ? std::optional(!*inner) : std::nullopt;
    }
    if (e->kind != ExprKind::binary || e->text != "and") return std::nullopt;
    const auto a = decided(e->args[0]), b = decided(e->args[1]);
    if (a == false || b == false) return false;
    return a && b ? std::optional(true) : std::nullopt;
  }

  // The other way it is another kernel. What is under it may be computed wrongly as all else.
  bool is_switch(const Stmt& s) const { return s.op == Op::if_ && decided(s.condition()); }

  void expressions(const Path& path, size_t n, const Stmt& s) {
    for (size_t f = 0; f < s.fields.size(); ++f) {
      // Whom it tells; how many do it, or which.
      static const std::set<tl::Hole> others = {
          tl::Hole::barrier, tl::Hole::ctas,   tl::Hole::by,    tl::Hole::threshold,
          tl::Hole::first,   tl::Hole::number, tl::Hole::groups};
      if (others.contains(s.fields[f].hole)) continue;
      for (size_t item = 0; item < s.fields[f].items.size(); ++item) {
        const ExprPtr& e = s.fields[f].items[item].expr;
        if (!e) continue;
        for (const Variant& v : variants(e))
          if (v.expr)
            add(v.kind, path, n, [&](auto& b) { b[n].fields[f].items[item].expr = v.expr; });
      }
    }
  }

  void statement(const Path& path, size_t n, const std::vector<Stmt>& body) {
    const Stmt& s = body[n];
    const std::string word(tl::word(s.op));
    if (drops(s.op)) {
      add("no " + word, path, n, [&](auto& b) { b.erase(b.begin() + long(n)); });
      if (s.body.empty())
        add("twice " + word, path, n, [&](auto& b) { b.insert(b.begin() + long(n), Stmt(b[n])); });
      for (const size_t by : {1, 2, 3})
        if (n + by < body.size() && drops(body[n + by].op))
          add("later " + word, path, n, [&](auto& b) {
            std::rotate(b.begin() + long(n), b.begin() + long(n) + 1,
                        b.begin() + long(n) + long(by) + 1);
          });
    }
    if (s.op == Op::if_ && !s.body.empty())
      add("always", path, n, [&](auto& b) {
        std::vector<Stmt> inner = b[n].body;
        b.erase(b.begin() + long(n));
        b.insert(b.begin() + long(n), inner.begin(), inner.end());
      });
    const std::map<Op, Op> overwrites = {{Op::wgmma_add, Op::wgmma},
                                         {Op::mma_add, Op::mma},
                                         {Op::mma_add_transposed, Op::mma},
                                         {Op::wgmma, Op::wgmma_add},
                                         {Op::mma, Op::mma_add}};
    if (const auto found = overwrites.find(s.op); found != overwrites.end())
      add(fmt::format("{} for {}", tl::word(found->second), word), path, n,
          [&](auto& b) { b[n].op = found->second; });
  }

  const Program& program_;
  std::map<std::string, bool> toggles_;
  std::vector<Mutant> out_;
};

}  // namespace

std::vector<Mutant> numerical_mutants_of(const Program& program) { return Mutator(program).run(); }

}  // namespace kw::test
