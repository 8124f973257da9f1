#include "sketch/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tl/analysis/effects.h"
#include "tl/traits.h"

namespace kw::sketch {
namespace {

using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

bool is_product(const Stmt& s) { return tl::is(s.op, tl::Family::contract); }

// The tiles of a sized plan as place() gives those of a sketch: the budget is the same.
Placed declared(const tl::Program& program, const Plan& plan) {
  Placed p;
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::tile) return;
    for (const tl::Item& d : s.names())
      p.tiles.push_back({d.name, Space::shared, d.expr == nullptr, tl::print(s.columns())});
  });
  for (const Stmt* s : plan.declared)
    if (s->op == Op::accumulator)
      for (const tl::Item& d : s->names())
        p.tiles.push_back({d.name, Space::accumulator, false, tl::print(s->columns())});
  int product = 0;
  const auto look_at = [&](const Stmt& s, bool step) {
    const Stmt* from =
        step && s.op == Op::copy ? tensor_named(program, tl::base_name(s.src())) : nullptr;
    if (from) p.steps = dimension(*from, 3);
    if (!is_product(s)) return;
    const std::string right = tl::base_name(s.b());
    for (Tile& t : p.tiles)
      if (t.name == right) {
        if (t.first_read < 0) t.first_read = product;
        p.products.push_back(step ? p.steps : t.columns);
      }
    if (s.op != Op::mma_add) p.left = tl::base_name(s.a());
    ++product;
  };
  for (const Stmt* s : plan.inside) {
    look_at(*s, false);
    for (const Stmt& inner : s->body) look_at(inner, true);
  }
  return p;
}

class Reader {
 public:
  Reader(Parts& parts, Diagnostics& diagnostics) : p_(parts), diagnostics_(diagnostics) {}

  bool run() {
    for (const Stmt* s : p_.plan.before)
      if (!before(*s)) return false;
    for (const Stmt* s : p_.plan.inside)
      if (!inside(*s)) return false;
    for (const Stmt* s : p_.plan.after) {
      if (s->op == Op::store) p_.store = s;
      if (s->op == Op::copy) p_.out = s;
    }
    if (!p_.scores || !p_.to_operand || !p_.values)
      return refuse(
          *p_.plan.loop,
          fmt::format("the loop has no {}", !p_.scores       ? "product of scores, `mma`"
                                            : !p_.to_operand ? "`to_operand` between its products"
                                                             : "product of values, `mma_add`"));
    if (p_.clear && !p_.steps) return refuse_before(*p_.clear);
    if (p_.steps && !p_.clear) return refuse(*p_.steps, "nothing fills what the steps add to");
    if (const Stmt* column = for_engine(); column && p_.machine.style == Style::engine)
      return refuse(*column, fmt::format("`{}`: the copy engine's schedule loads whole rows",
                                         tl::print_head(*column)));
    if (!p_.store || !p_.out)
      return refuse(*p_.plan.grid, "nothing is stored and copied out after the loop");
    return true;
  }

 private:
  bool refuse(const Stmt& at, const std::string& what) {
    diagnostics_.error("sketch.shape", at.span, what).hint =
        "what is scheduled is one product, a softmax, a to_operand and a second product; "
        "docs/sketches.md shows it";
    return false;
  }

  bool refuse_before(const Stmt& at) {
    return refuse(at, fmt::format("`{}` stands before the first one", tl::print_head(at)));
  }

  // What a schedule of the copy engine would have to load a part of.
  const Stmt* for_engine() const {
    if (p_.steps) return p_.steps;
    for (const Copied& c : p_.copies)
      if (is_from_column(*c.copy)) return c.copy;
    return nullptr;
  }

  bool copy(const Stmt& s, bool keys) {
    p_.copies.push_back({&s, tl::base_name(s.src()), tl::base_name(s.dst()), keys});
    return true;
  }

  bool before(const Stmt& s) { return s.op == Op::copy ? copy(s, false) : true; }

  bool inside(const Stmt& s) {
    if (s.op == Op::copy) return copy(s, true);
    if (s.op == Op::fill && !p_.scores && !p_.clear) return set(p_.clear, s);
    if (s.op == Op::range && !p_.scores) return steps(s);
    const bool product = is_product(s);
    if (product && !p_.copied(tl::base_name(s.b())))
      return refuse(s, fmt::format("`{}` is multiplied before it is copied", tl::base_name(s.b())));
    if (s.op == Op::mma && !p_.scores) return set(p_.scores, s);
    if (s.op == Op::to_operand && !p_.to_operand) return set(p_.to_operand, s);
    if (s.op == Op::mma_add && p_.to_operand && !p_.values) return set(p_.values, s);
    if (product || s.op == Op::to_operand)
      return refuse(s, fmt::format("`{}` stands where {} is due", tl::print_head(s),
                                   !p_.scores ? "a product of scores" : "a to_operand"));
    if (!p_.scores || p_.values)
      return refuse(s, fmt::format("`{}` stands {}", tl::print_head(s),
                                   p_.scores ? "after the last product" : "before the first one"));
    if (s.op == Op::online_max) p_.online_max = &s;
    // What changes what the second product adds to waits for the exponentials.
    const bool sums = s.op == Op::map && adds_to(s);
    (p_.to_operand || sums ? p_.rescale : p_.softmax).push_back(&s);
    return true;
  }

  // Copies of a step, and the product that adds it to the scores.
  bool steps(const Stmt& range) {
    p_.steps = &range;
    for (const Stmt& s : range.body) {
      if (s.op == Op::copy && !p_.scores) {
        const std::string tile = tl::base_name(s.dst());
        const Tile* t = p_.placed.find(tile);
        p_.step_copies.push_back({&s, tl::base_name(s.src()), tile, t && t->of_keys});
      } else if (s.op == Op::mma_add_transposed && !p_.scores) {
        p_.scores = &s;
      } else {
        return refuse(s, fmt::format("`{}` stands in a step of the scores, which is its copies and "
                                     "one `mma_add_transposed`",
                                     tl::print_head(s)));
      }
    }
    return p_.scores || refuse(range, "the steps have no `mma_add_transposed`");
  }

  bool adds_to(const Stmt& s) const {
    const std::string target = tl::base_name(s.target());
    return std::any_of(p_.plan.inside.begin(), p_.plan.inside.end(), [&](const Stmt* other) {
      return other->op == Op::mma_add && tl::base_name(other->acc()) == target;
    });
  }

  static bool set(const Stmt*& to, const Stmt& s) {
    to = &s;
    return true;
  }

  Parts& p_;
  Diagnostics& diagnostics_;
};

std::vector<tl::Replacement> fields(const Parts& p) {
  std::vector<tl::Replacement> all;
  for (const std::string& name : p.plan.counters) {
    if (name == p.me) continue;
    all.push_back({tl::name(name), tl::field(tl::name("c"), name == p.part ? "m" : name)});
  }
  return all;
}

}  // namespace

const Copied* Parts::copied(const std::string& tile) const {
  for (const Copied& c : copies)
    if (c.tile == tile) return &c;
  return nullptr;
}

std::optional<Parts> take_apart(const tl::Program& sized, const Machine& machine,
                                Diagnostics& diagnostics) {
  const auto plan = read_plan(sized, "sized", diagnostics);
  if (!plan) return std::nullopt;
  const auto values = parameters(sized);
  for (const char* name : {"ROWS", "BN", "WARPGROUPS", "BM"})
    if (!values.contains(name)) {
      diagnostics
          .error("sketch.shape", plan->plan->span,
                 fmt::format("the module has no parameter {}", name))
          .hint = "`size` writes ROWS, WARPGROUPS, BM and BN";
      return std::nullopt;
    }
  Parts p{sized,
          *plan,
          machine,
          {values.at("ROWS"), values.at("BN"), values.at("WARPGROUPS")},
          declared(sized, *plan)};
  if (plan->counters.size() < 3) {
    diagnostics.error("sketch.shape", plan->grid->span,
                      "the grid of a sized plan counts parts of the rows, heads, and warpgroups");
    return std::nullopt;
  }
  p.part = plan->counters.front();
  p.me = plan->counters.back();
  p.block = plan->counter;
  if (!Reader(p, diagnostics).run()) return std::nullopt;
  const Work work = work_of(sized, p.placed, machine);
  const int64_t fit = resident(machine, work, p.sizes);
  if (fit == 0) {
    const Stmt* at = sized.find(Op::shared);
    refuse(machine, work, p.sizes, at ? at->span : plan->plan->span, diagnostics);
    return std::nullopt;
  }
  // Two warpgroups hide each other's waits; more would only share the registers.
  p.resident = std::min<int64_t>(fit, std::max<int64_t>(1, 2 / p.sizes.warpgroups));
  return p;
}

void Text::line(int depth, const std::string& text) {
  out_ += std::string(size_t(depth) * 4, ' ') + text + "\n";
}

Stmt in_kernel(const Parts& parts, const Stmt& s) {
  Stmt out = s;
  const auto swap = fields(parts);
  tl::each_expression(out, [&](ExprPtr& e) { e = tl::replace(e, swap); });
  for (Stmt& inner : out.body) inner = in_kernel(parts, inner);
  return out;
}

std::string in_kernel(const Parts& parts, const ExprPtr& e) {
  return tl::print(tl::replace(e, fields(parts)));
}

namespace {

// j < N
bool keeps_all_keys(const Stmt& mask, const ExprPtr& keys) {
  const ExprPtr& f = mask.value();
  if (f->kind != tl::ExprKind::where || !f->args[2]->is_name("-inf")) return false;
  return tl::equal(f->args[0], tl::binary("<", tl::name("j"), keys));
}

bool is_mask(const Stmt& s) { return s.op == Op::map_at && s.value()->kind == tl::ExprKind::where; }

}  // namespace

bool is_from_column(const Stmt& copy) { return copy.src()->args.size() > 4; }

namespace {

void shared(const Stmt& tiles, const std::set<std::string>& rings, Text& text) {
  text.line(0, "shared:");
  for (const Stmt& s : tiles.body) {
    const tl::Item& d = s.names().at(0);
    if (s.op != Op::tile || !rings.contains(d.name)) {
      text.add(s, 1);
      continue;
    }
    const std::string name = d.expr ? fmt::format("{}[{}]", d.name, tl::print(d.expr)) : d.name;
    text.line(1, fmt::format("tile {}: ring(2) of {}[{}, {}]", name, s.type(), tl::print(s.rows()),
                             tl::print(s.columns())));
  }
}

}  // namespace

void head(const Parts& p, const std::set<std::string>& rings, Text& text) {
  bool constants = false;
  for (const Stmt& s : p.program.body) {
    if (s.op == Op::level || s.op == Op::plan) continue;
    if (s.op == Op::element && !p.program.find(Op::include)) text.line(0, "include \"kw/kw.cuh\"");
    if (s.op == Op::args && !constants) {
      text.line(0, fmt::format("param RESIDENT = {}", p.resident));
      constants = true;
    }
    if (s.op == Op::shared)
      shared(s, rings, text);
    else
      text.add(s, 0);
  }
}

void kernel(const Parts& p, Text& text) {
  text.line(0, fmt::format("kernel {}, threads 128 * WARPGROUPS, resident RESIDENT, warpgroups {}:",
                           p.plan.plan->name(), p.me));
  text.line(1, "let c = block_of(block_index(blocks))");
  text.line(1, "let keys = key_blocks(c, c.m * BM, BM)");
  for (const Stmt* s : p.plan.before)
    if (s->op == Op::let) text.add(in_kernel(p, *s), 1);
  for (const Stmt* s : p.plan.declared) text.add(*s, 1);
}

void key_loops(const Parts& p, Text& text) {
  const std::string& n = p.block;
  text.line(1, fmt::format("for {} in range_down(keys.count - 1, keys.full):", n));
  text.line(2, fmt::format("advance({}, true)", n));
  text.line(1, fmt::format("for {} in range_down(min(keys.count, keys.full) - 1, 0):", n));
  text.line(2, fmt::format("advance({}, false)", n));
}

void functions(const Parts& p, Text& text) {
  std::vector<std::string> others(p.plan.counters.begin() + 1, p.plan.counters.end() - 1);
  text.line(0, fmt::format("record Block: m, {}", fmt::join(others, ", ")));
  text.line(0, "record Keys: count, full");
  text.line(0, "def block_of(w: index) -> Block:");
  text.line(1, fmt::format("let rows = {}", tl::print(p.plan.extents.front())));  // F1
  std::vector<std::string> values = {"w % rows"};
  std::string rest = "w // rows";
  for (size_t n = 0; n < others.size(); ++n) {
    const auto at = std::find(p.plan.counters.begin(), p.plan.counters.end(), others[n]);
    const std::string extent = tl::print(p.plan.extents[size_t(at - p.plan.counters.begin())]);
    values.push_back(n + 1 < others.size() ? rest + " % " + extent : rest);
    rest += " // " + extent;
  }
  text.line(1, fmt::format("return {}", fmt::join(values, ", ")));
  const ExprPtr count = p.plan.loop->extent();  // ceil_div(N, BN)
  const ExprPtr keys = count->kind == tl::ExprKind::call ? count->args[0] : nullptr;
  bool plain = keys != nullptr;
  for (const Stmt* s : p.softmax)
    if (is_mask(*s)) plain = plain && keeps_all_keys(*s, keys);
  text.line(0, "def key_blocks(c: Block, i0: index, rows: index) -> Keys:");
  text.line(1, fmt::format("return {}, {}", tl::print(count),
                           plain ? tl::print(keys) + " // BN" : "0"));  // F2
}

void softmax_step(const Parts& p, int depth, const std::string& more, Text& text) {
  text.line(depth, fmt::format("step softmax({}: i32, partial: bool{}):", p.block, more));
  for (const Stmt* s : p.softmax) {
    if (is_mask(*s)) text.line(depth + 1, "if partial:");
    text.add(in_kernel(p, *s), depth + (is_mask(*s) ? 2 : 1));
  }
}

void rescale(const Parts& p, int depth, Text& text) {
  for (const Stmt* s : p.rescale) {
    const bool by_factor = p.online_max && tl::reads(*s, tl::base_name(p.online_max->alpha()));
    if (by_factor) text.line(depth, fmt::format("if {}:", p.online_max->flag()));
    text.add(in_kernel(p, *s), depth + (by_factor ? 1 : 0));
  }
}

}  // namespace kw::sketch
