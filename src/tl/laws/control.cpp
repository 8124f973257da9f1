// Who does what, in which order: warpgroups and threads, loops, branches, steps; and the values and
// tiles that a block declares.
#include <fmt/ranges.h>

#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

// A kernel is started with the same number of registers for each thread, a multiple of 8 from the
// 65536 of a multiprocessor; these are all that its warpgroups can share out between them.
int64_t registers_at_entry(int64_t threads) { return 65536 / threads / 8 * 8; }
int64_t register_pool(int64_t threads) { return threads * registers_at_entry(threads); }

void registers_are_possible(Check& c, const char* label) {
  const int64_t r = c.constant(c.stmt.registers()).value_or(0);
  if (r % 8 || r < 24 || r > 240)
    c.broken(label, c.stmt.registers()->span,
             fmt::format("{} registers: not a multiple of 8 from 24 to 240", r));
}

// Who gives registers back has no more than before, who takes some no fewer: another setmaxnreg is
// not defined. (Two warpgroups alone start with more than one may ask for.)
void registers_go(Check& c, const char* label, bool down) {
  const int64_t r = c.constant(c.stmt.registers()).value_or(0);
  if (c.facts.threads <= 0) return;
  const int64_t entry = std::min<int64_t>(registers_at_entry(c.facts.threads), 240);
  if (down ? r > entry : r < entry)
    c.broken(label, c.stmt.registers()->span,
             fmt::format("{} registers, {} than the {} that the kernel starts with", r,
                         down ? "more" : "fewer", entry));
}

// The queue's loops: counted in laws_sync.cpp.
void takes(Check& c, int64_t warps) {
  const Symbol* s = c.find(c.stmt.queue());
  QueueFacts& queue = c.facts.queues[s->name];
  queue.takes.push_back(&c.stmt);
  queue.counted += warps;
}

bool is_var(const Symbol* s) { return s && s->stmt && s->stmt->op == Op::var; }

// The counter that a `range_down_counted` advances. In the table it is a plain word of the CUDA
// text.
void counter_is_var(Check& c) {
  const Item& t = c.stmt.items(Hole::counter).at(0);
  const Symbol* s = c.find(t);
  if (!s) {
    c.broken_as("names", "C2", t.span, fmt::format("`{}` is not declared here", t.name));
  } else if (!is_var(s)) {
    c.broken("C1", t.span, fmt::format("a var is due here, `{}` is {}", t.name, word(s->category)))
        .notes.push_back({fmt::format("`{}` is declared here", t.name), s->span});
  }
}

void belongs_to_warpgroup(Check& c, const char* label) {
  if (!c.warpgroups_block() && !c.inside(Op::plan))
    c.broken(label, c.stmt.span,
             fmt::format("`{}` stands outside the warpgroups block", word(c.stmt.op)));
}

// wgmma has 64 rows; what each warp multiplies for itself may be twice as many.
void warpgroup_holds(Check& c, const std::optional<int64_t>& rows, const char* what) {
  const bool twice = c.facts.alike || c.inside(Op::plan);  // a plan is not divided yet
  if (rows && *rows != 64 && !(twice && *rows == 128))
    c.broken("C1", c.stmt.rows()->span,
             fmt::format("a warpgroup holds {}, this {} has {}",
                         twice ? "64 or 128 rows" : "64 rows", what, *rows));
}

void columns_are_possible(Check& c) {
  const std::optional<int64_t> columns = c.constant(c.stmt.columns());
  if (columns && (*columns % 16 || *columns <= 0 || *columns > 256))
    c.broken("C2", c.stmt.columns()->span,
             fmt::format("{} columns: not a multiple of 16 up to 256", *columns));
}

void register_tile_is_possible(Check& c, const std::vector<std::string>& types) {
  const std::optional<int64_t> rows = c.constant(c.stmt.rows());
  if (std::find(types.begin(), types.end(), c.stmt.type()) == types.end())
    c.broken("C1", c.stmt.items(Hole::type)[0].span,
             fmt::format("{} holds {}, this one {}", word(c.stmt.op), fmt::join(types, " or "),
                         c.stmt.type()));
  warpgroup_holds(c, rows, "tile");
  columns_are_possible(c);
  belongs_to_warpgroup(c, "C3");
}

void rows_are_possible(Check& c) {
  const std::optional<int64_t> rows = c.constant(c.stmt.rows());
  const bool ints = c.stmt.op == Op::row && c.stmt.type() == "i32";
  if (c.stmt.type() != "real" && !ints)
    c.broken("C1", c.stmt.items(Hole::type)[0].span,
             fmt::format("a row vector holds real{}, this one {}",
                         c.stmt.op == Op::row ? " or i32" : "", c.stmt.type()));
  warpgroup_holds(c, rows, "vector");
}

// The registers of all warpgroups, with what roles have more so far.
void judge_registers(Check& c, const char* label) {
  if (!c.facts.warpgroups_are_known()) return;
  const int64_t plain = c.facts.warpgroups() - int64_t(c.facts.registers.size());
  int64_t all = c.facts.loader_registers + c.facts.warpgroups_registers * plain;
  std::string sum =
      fmt::format("{} + {} * {}", c.facts.loader_registers, c.facts.warpgroups_registers, plain);
  for (const auto& [warpgroup, registers] : c.facts.registers) {
    all += registers;
    sum += fmt::format(" + {}", registers);
  }
  if (128 * all > register_pool(c.facts.threads))
    c.broken(label, c.stmt.registers()->span,
             fmt::format("128 * ({}) = {} registers, there are {}", sum, 128 * all,
                         register_pool(c.facts.threads)))
        .hint = "a warpgroup that waits for registers that are never given back cannot go on";
}

// A condition whose names have known values in `here`; none for any other.
std::optional<bool> holds(const Facts& facts, const ExprPtr& e, const Scope& here) {
  if (const std::optional<bool> known = decided(facts, e)) return known;
  if (e->kind == ExprKind::unary && e->text == "not") {
    const std::optional<bool> x = holds(facts, e->args[0], here);
    return x ? std::optional(!*x) : std::nullopt;
  }
  if (e->kind != ExprKind::binary) return std::nullopt;
  if (e->text == "and" || e->text == "or") {
    const std::optional<bool> x = holds(facts, e->args[0], here),
                              y = holds(facts, e->args[1], here);
    if (!x || !y) return std::nullopt;
    return e->text == "and" ? *x && *y : *x || *y;
  }
  const Interval a = interval_of(e->args[0], here), b = interval_of(e->args[1], here);
  if (a.lo != a.hi || b.lo != b.hi) return std::nullopt;
  if (e->text == "==") return a.lo == b.lo;
  if (e->text == "!=") return a.lo != b.lo;
  if (e->text == "<") return a.lo < b.lo;
  if (e->text == "<=") return a.lo <= b.lo;
  if (e->text == ">") return a.lo > b.lo;
  if (e->text == ">=") return a.lo >= b.lo;
  return std::nullopt;
}

}  // namespace

void law_warpgroup(Check& c) {
  if (c.constant(c.stmt.number()) != 0)
    c.broken("C1", c.stmt.number()->span,
             fmt::format("the producer is number 0, not `{}`", print(c.stmt.number())));
  registers_are_possible(c, "C2");
  registers_go(c, "C2", true);
  c.facts.loader_registers = c.constant(c.stmt.registers()).value_or(0);
  for (const Stmt& s : c.stmt.body)
    if (s.op != Op::thread)
      c.broken("C3", s.span,
               fmt::format("`{}` stands in the producer outside a `thread` block", word(s.op)));
}

void law_warpgroups(Check& c) {
  if (c.constant(c.stmt.first()) != 1)
    c.broken(
        "C1", c.stmt.first()->span,
        fmt::format("the first of these warpgroups is number 1, not `{}`", print(c.stmt.first())));
  registers_are_possible(c, "C2");
  registers_go(c, "C2", false);
  c.facts.warpgroups_registers = c.constant(c.stmt.registers()).value_or(0);
  judge_registers(c, "C3");
}

void law_thread(Check& c) {
  const std::optional<int64_t> k = c.constant(c.stmt.number());
  if (!k || *k < 0 || *k > 3)
    c.broken("C1", c.stmt.number()->span,
             fmt::format("warp `{}`: a warpgroup has warps 0 to 3", print(c.stmt.number())));
  if (!c.inside(Op::warpgroup) && !c.warpgroups_block())
    c.broken("C2", c.stmt.span, "a thread of no warpgroup");
  else if (c.inside(Op::thread))
    c.broken("C2", c.stmt.span, "a thread within a thread")
        .notes.push_back({"the outer one is here", c.inside(Op::thread)->span});
  walk(c.stmt.body, [&](const Stmt& s) {
    // A fence counts for the thread that makes it, which one alone can do; but it has stored
    // nothing.
    if (needs_all_lanes(s.op) || s.op == Op::fence_async)
      c.broken("C3", s.span, fmt::format("one thread alone cannot do `{}`", word(s.op)))
          .notes.push_back({"the thread is here", c.stmt.span});
  });
}

void law_schedule_tiles(Check& c) {
  if (!c.inside(Op::warpgroup) || !c.inside(Op::thread))
    c.broken("C1", c.stmt.span, "blocks are offered outside a thread of the producer");
  const Symbol* words = c.find(c.stmt.workspace());
  if (words && c.constant(words->count) != 2)
    c.broken("C2", c.stmt.workspace()->span,
             fmt::format("the queue's counter has two words, `{}` has {}", words->name,
                         print(words->count)))
        .notes.push_back({fmt::format("`{}` is declared here", words->name), words->span});
  if (const Stmt* thread = c.inside(Op::thread); thread && thread->body.size() != 1)
    c.broken("C3", c.stmt.span, "the thread that offers does something else as well").hint =
        "give it a `thread` block of its own";
  c.facts.queues[c.find(c.stmt.queue())->name].offers.push_back(&c.stmt);
}

void law_dynamic_tiles(Check& c) {
  if (!c.inside(Op::warpgroup) || !c.inside(Op::thread))
    c.broken("C1", c.stmt.span, "`dynamic_tiles` stands outside a thread of the producer").hint =
        "warpgroups take blocks with dynamic_tiles_warp";
  takes(c, 1);
}

void law_dynamic_tiles_warp(Check& c) {
  if (!c.warpgroups_block() || c.inside(Op::thread))
    c.broken("C1", c.stmt.span, "`dynamic_tiles_warp` stands where a single thread runs").hint =
        "a thread takes blocks with dynamic_tiles";
  takes(c, c.warps());
}

void law_range_down(Check&) {}  // its form, and types.C6
void law_range_down_rolled(Check& c) { counter_is_var(c); }
void law_range_down_counted(Check& c) { counter_is_var(c); }

void law_range(Check& c) {
  const std::optional<int64_t> n = c.constant(c.stmt.end());
  if (n && *n < 1) c.broken("C1", c.stmt.end()->span, fmt::format("the range has {} turns", *n));
}

void law_grid(Check& c) {
  const size_t names = c.stmt.names().size(), extents = c.stmt.extents().size();
  if (names != extents)
    c.broken("C1", c.stmt.span, fmt::format("{} counters for {} extents", names, extents));
}

void law_blocks(Check& c) {
  if (!c.inside(Op::plan)) c.broken("C1", c.stmt.span, "blocks are counted outside a plan");
}

// C1: flow.cpp. C2: launch.cpp. A branch on the warpgroup's number alone gives the warpgroups
// roles.
void law_if_(Check& c) {
  branch_leaves_nothing_out(c);
  const Stmt* warpgroups = c.warpgroups_block();
  const ExprPtr& condition = c.stmt.condition();
  if (!warpgroups || !c.facts.warpgroups_are_known() || c.by_one_thread()) return;
  const std::string& me = warpgroups->me();
  const Symbol* number = c.scope.find(me);
  if (!number || !mentions(condition, me)) return;
  uint32_t role = 0;
  for (int64_t w = 0; w < c.facts.warpgroups(); ++w) {
    Scope here(&c.scope);
    Symbol mine = *number;
    mine.range = {w, w};
    here.add(std::move(mine));
    const std::optional<bool> taken = holds(c.facts, condition, here);
    if (!taken) return;
    role |= uint32_t(*taken) << w;
  }
  c.facts.roles.emplace_back(&c.stmt, role);
}

void law_registers_up(Check& c) {
  const Stmt* role = c.parents.empty() ? nullptr : c.parents.back();
  const bool is_role = std::any_of(c.facts.roles.begin(), c.facts.roles.end(),
                                   [&](const auto& r) { return r.first == role; });
  if (!c.inside(Op::warpgroups) || !is_role || &role->body.front() != &c.stmt) {
    c.broken("C1", c.stmt.span,
             !is_role ? "no `if` on the warpgroup's number is around it"
                      : "it does not stand first among the statements of its role");
    return;
  }
  const int64_t r = c.constant(c.stmt.registers()).value_or(0);
  if (r % 8 || r > 248 || r <= c.facts.warpgroups_registers)
    c.broken(
        "C2", c.stmt.registers()->span,
        fmt::format("{} registers, where the warpgroups have {}: not a multiple of 8 from {} to "
                    "248",
                    r, c.facts.warpgroups_registers, c.facts.warpgroups_registers + 8));
  for (int64_t w = 0; w < c.facts.warpgroups(); ++w)
    if (c.who() >> w & 1) c.facts.registers[w] = r;
  judge_registers(c, "C3");
}

// Calls name steps: of two with one name, one in a block within the other's, which would be meant?
void steps_have_their_own_names(Check& c) {
  const Stmt* earlier = nullptr;
  bool reached = false;
  walk(c.warpgroups_block()->body, [&](const Stmt& s) {
    reached |= &s == &c.stmt;
    if (!reached && s.op == Op::step && s.name() == c.stmt.name()) earlier = &s;
  });
  if (!earlier) return;
  c.facts.incomplete = true;  // what calls of that name do is not known
  c.broken("C3", c.stmt.span, fmt::format("another step is called `{}`", c.stmt.name()))
      .notes.push_back({fmt::format("`{}` is declared here", c.stmt.name()), earlier->span});
}

void law_step(Check& c) {
  if (!c.warpgroups_block() || c.inside(Op::step))
    c.broken("C1", c.stmt.span, "the step stands outside the body of a warpgroups block");
  else
    steps_have_their_own_names(c);
  static constexpr std::string_view types[] = {"i32", "index", "bool", "f32"};
  for (const Item& p : c.stmt.params())
    if (std::find(std::begin(types), std::end(types), p.type) == std::end(types))
      c.broken(
          "C2", p.span,
          fmt::format("`{}` of type `{}`: a step takes i32, index, bool or f32", p.name, p.type));
}

void law_call(Check& c) {
  const Symbol* s = c.scope.find(c.stmt.name());
  std::vector<ExprPtr> given;
  for (const Item& a : c.stmt.arguments()) given.push_back(a.expr);
  arguments_fit(c, "call", "C1", c.stmt.span, s->name, s->params, given, c.scope, nullptr);
  steps_are_told_nothing_of_the_launch(c, *s);
}

void law_return_(Check& c) {
  if (c.inside(Op::list_blocks)) return;  // list_blocks.C2
  const Stmt* def = c.inside(Op::def);
  if (!def) {
    c.broken("C2", c.stmt.span, "there is no function to return from");
    return;
  }
  const size_t values = c.stmt.values().size();
  if (def->result() == "index") {
    if (values != 1) c.broken("C1", c.stmt.span, fmt::format("{} values for one index", values));
    return;
  }
  const Symbol* record = c.scope.find(def->result());
  if (!record || record->category != Category::record) return;  // names.C2 said it
  if (values != record->fields.size())
    c.broken("C1", c.stmt.span,
             fmt::format("{} values for the {} fields of {}", values, record->fields.size(),
                         record->name))
        .notes.push_back({fmt::format("{} is declared here", record->name), record->span});
}

void law_let(Check& c) {
  Scope here(&c.scope);
  for (const Item& d : c.stmt.names()) {
    const Type type = d.expr ? checked_type(c, d.expr, here) : Type{};
    if (!d.expr || type.kind == Type::row || type.kind == Type::tile)
      c.broken("C1", d.span,
               d.expr ? fmt::format("`{}` would be {}", d.name, text(type))
                      : fmt::format("`{}` has no value", d.name));
    Symbol s = symbol_of(c.stmt, d, here);
    s.type = type;
    here.add(std::move(s));
  }
}

// An int with a value: its form, and types.C6.
void law_var(Check& c) {
  for (const Item& d : c.stmt.names())
    if (depends_on_launch(d.expr, c.scope))
      c.broken("C1", d.expr->span,
               fmt::format("`{}` begins with `{}`, which differs from launch to launch or from "
                           "block to block",
                           d.name, print(d.expr)));
}
void law_flag(Check&) {}  // C1: laws_sync.cpp, when every online_max was seen

void law_count(Check& c) {
  const Item& t = c.stmt.items(Hole::counter).at(0);
  const Symbol* s = c.find(t);
  if (!s)
    c.broken_as("names", "C2", t.span, fmt::format("`{}` is not declared here", t.name));
  else if (!is_var(s))
    c.broken("C1", t.span,
             fmt::format("only a var counts up, `{}` is {}", t.name, word(s->category)))
        .notes.push_back({fmt::format("`{}` is declared here", t.name), s->span});
}

void law_accumulator(Check& c) { register_tile_is_possible(c, {"real"}); }
void law_operand(Check& c) { register_tile_is_possible(c, {"element", "bf16", "f16", "bool"}); }

void law_row(Check& c) {
  rows_are_possible(c);
  belongs_to_warpgroup(c, "C2");
  for (const Item& d : c.stmt.names())
    if (d.expr && c.stmt.type() == "i32")
      c.broken("C3", d.expr->span, fmt::format("`{}` holds ints: set_rows sets them", d.name));
}

void law_column(Check& c) {
  const std::string& type = c.stmt.type();
  if (type != "real" && type != "i32")
    c.broken("C1", c.stmt.items(Hole::type)[0].span,
             fmt::format("a column vector holds real or i32, this one {}", type));
  columns_are_possible(c);
  belongs_to_warpgroup(c, "C3");
}

void law_diagonal(Check& c) { register_tile_is_possible(c, {"real", "i32"}); }

void law_lane_sum(Check& c) {
  rows_are_possible(c);
  belongs_to_warpgroup(c, "C2");
}

}  // namespace kw::tl
