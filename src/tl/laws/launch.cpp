// What depends on a launch: its sizes, which block of the output, counters, data.
//
// One run of a program shows what it does for the sizes at hand. It stands for other sizes only as
// far as these numbers decide nothing but where tiles lie, what maps compute and how often loops
// turn. So under a condition on one of them stand no wait, no arrival, no product and no call of
// more than copies: a kernel that leaves out `wait k_full[t]` for block 37 alone is right in every
// run that ends before it.
//
// A copy that nobody is told of may be left out by turns alone (`if n > keys.first`).
//
// But for one kind: whether a loop that ends at 0 is in its last turn (`if n > 0`, to ask for the
// next block), which every run shows both ways. Such a condition may stand in a step, which is then
// given nothing but indices of such loops.
#include <algorithm>

#include "tl/laws/laws_check.h"
#include "tl/scope/functions.h"

namespace kw::tl {
namespace {

// A name that is the same in every launch and for every block: of constants, roles, flags, and the
// bools of steps, which call.C2 holds to that.
bool is_of_the_text(const Symbol& s, const Scope& scope) {
  if (s.category == Category::param || s.category == Category::toggle) return true;
  if (s.category != Category::local || !s.stmt) return false;
  switch (s.stmt->op) {
    case Op::flag:
    case Op::warpgroups:
    case Op::warpgroups_kernel:
    case Op::cluster:
      return true;
    case Op::step:
      return s.type.kind == Type::boolean;
    case Op::range:
      return !depends_on_launch(s.stmt->end(), scope);
    case Op::let:
      return s.value && !depends_on_launch(s.value, scope);
    default:
      return false;
  }
}

// The name that is compared with 0, or empty.
std::string compared_with_zero(const ExprPtr& e) {
  if (!is_comparison(*e)) return {};
  const bool zero = e->args[1]->kind == ExprKind::integer && e->args[1]->text == "0";
  return zero && e->args[0]->kind == ExprKind::name ? e->args[0]->text : std::string();
}

bool is_integer_of_step(const Symbol& s) {
  return s.stmt && s.stmt->op == Op::step && s.type.kind == Type::integer;
}

// The index of a loop that goes down, and never below 0.
bool counts_down_to_zero(const Symbol& s) {
  return s.stmt && is(s.stmt->op, Family::loop) && s.stmt->op != Op::range && s.range.lo >= 0;
}

bool asks_for_the_last_turn(const ExprPtr& condition, const Scope& scope) {
  const Symbol* s = scope.find(compared_with_zero(condition));
  return s && (counts_down_to_zero(*s) || is_integer_of_step(*s));
}

// What may be left out for some blocks and not for others: copies that nobody will wait for,
// values, what is computed element by element, and rows of an output straight from registers (the
// first of several blocks that share a row writes its statistics).
bool may_be_left_out(const Stmt& s, const Scope& scope) {
  if (s.op == Op::call) {
    const Symbol* step = scope.find(s.name());
    return step && step->stmt && step->stmt->op == Op::step &&
           std::all_of(step->stmt->body.begin(), step->stmt->body.end(),
                       [&](const Stmt& inner) { return may_be_left_out(inner, scope); });
  }
  if (s.op == Op::if_ || s.op == Op::thread)
    return std::all_of(s.body.begin(), s.body.end(),
                       [&](const Stmt& inner) { return may_be_left_out(inner, scope); });
  const bool copy = is(s.op, Family::copy_in) && !s.has(Hole::barrier);  // nobody is told of it
  const bool rows = is(s.op, Family::result) && s.has(Hole::src) && s.has(Hole::tensor);
  return s.op == Op::let || copy || rows || is(s.op, Family::map) || is(s.op, Family::gather) ||
         is(s.op, Family::registers);
}

// A copy that nobody is told of, or what holds one.
bool copies(const Stmt& s, const Scope& scope) {
  const Symbol* step = s.op == Op::call ? scope.find(s.name()) : nullptr;
  const bool has_body = s.op == Op::if_ || s.op == Op::thread;
  const std::vector<Stmt>* body = has_body ? &s.body
                                  : step && step->stmt && step->stmt->op == Op::step
                                      ? &step->stmt->body
                                      : nullptr;
  if (!body) return is(s.op, Family::copy_in) && !s.has(Hole::barrier);
  return std::any_of(body->begin(), body->end(),
                     [&](const Stmt& inner) { return copies(inner, scope); });
}

// Whether it mentions a block's place or data.
bool is_of_a_block(const ExprPtr& e) {
  return e->kind == ExprKind::field || e->kind == ExprKind::index ||
         std::any_of(e->args.begin(), e->args.end(), is_of_a_block);
}

bool calls_ceil_div(const ExprPtr& e) {
  return (e->kind == ExprKind::call && e->text == "ceil_div") ||
         std::any_of(e->args.begin(), e->args.end(), calls_ceil_div);
}

// The same field of the same kind of record: keys.first, key_blocks(c, i0, BM).first.
bool is_same_field(const ExprPtr& a, const ExprPtr& b, const Scope& scope) {
  if (a->kind != ExprKind::field || b->kind != ExprKind::field || a->text != b->text) return false;
  const Type of_a = type_of(a->args[0], scope), of_b = type_of(b->args[0], scope);
  return of_a.kind == Type::record && of_a == of_b;
}

// Whether some loop of the kernel begins or ends at it: keys.count, and not c.h, a block's place.
bool bounds_a_loop(const ExprPtr& field, const Check& c) {
  bool found = false;
  const auto look = [&](const ExprPtr& e) -> ExprPtr {
    found |= is_same_field(e, field, c.scope);
    return nullptr;
  };
  walk(c.parents.front()->body, [&](const Stmt& s) {
    if (!is(s.op, Family::loop) || s.op == Op::range || found) return;
    each_expression(s, [&](const ExprPtr& e) { rewrite(e, look); });
  });
  return found;
}

// Numbers of a range of key blocks, of a launch's tiles (`let steps = ceil_div(K, BK)`), small
// ones, and their sums; and with `index` that of a loop.
bool is_of_turns(const ExprPtr& e, const Check& c, bool index) {
  const Scope& scope = c.scope;
  if (e->kind == ExprKind::integer) return e->text.size() == 1;  // loops that are walked turn more
  if (e->kind == ExprKind::field) return bounds_a_loop(e, c);
  if (e->kind == ExprKind::name) {
    const Symbol* s = scope.find(e->text);
    const bool of_tiles = s && s->stmt && s->stmt->op == Op::let && s->value &&
                          calls_ceil_div(s->value) && !is_of_a_block(s->value);
    return of_tiles ||
           (index && s && ((s->stmt && is(s->stmt->op, Family::loop)) || is_integer_of_step(*s)));
  }
  return e->kind == ExprKind::binary && (e->text == "+" || e->text == "-") &&
         is_of_turns(e->args[0], c, index) && is_of_turns(e->args[1], c, index);
}

bool is_name_of_tiles(const ExprPtr& e, const Check& c) {
  return e->kind == ExprKind::name && is_of_turns(e, c, false);
}

// `n > keys.first`, `n + 1 < keys.count`, `steps > 1`: whether another turn follows. The schedules
// walk loops of few turns, of the first head and batch entry, which show such a condition both ways
// and others perhaps not.
bool asks_for_another_turn(const ExprPtr& e, const Check& c) {
  if (!is_comparison(*e) || e->text == "==" || e->text == "!=") return false;
  const ExprPtr &a = e->args[0], &b = e->args[1];
  if (is_name_of_tiles(a, c) && b->kind == ExprKind::integer)
    return is_of_turns(b, c, false);  // `steps > 2`: a third step
  const bool left = is_of_turns(a, c, true) && !is_of_turns(a, c, false);
  const bool right = is_of_turns(b, c, true) && !is_of_turns(b, c, false);
  return (left && is_of_turns(b, c, false)) || (right && is_of_turns(a, c, false));
}

// Whether statements of the step that may not be left out stand under `param > 0`, in itself or in
// a step that it hands the number to.
bool decides_in(const Stmt& step, const std::string& param, const Scope& scope) {
  bool found = false;
  walk(step.body, [&](const Stmt& s) {
    if (s.op == Op::if_ && compared_with_zero(s.condition()) == param)
      found |= !std::all_of(s.body.begin(), s.body.end(),
                            [&](const Stmt& inner) { return may_be_left_out(inner, scope); });
    const Symbol* called = s.op == Op::call ? scope.find(s.name()) : nullptr;
    if (!called || !called->stmt || called->stmt->op != Op::step) return;
    for (size_t n = 0; n < s.arguments().size() && n < called->params.size(); ++n)
      if (s.arguments()[n].expr->is_name(param))
        found |= decides_in(*called->stmt, called->params[n].name, scope);
  });
  return found;
}

}  // namespace

bool depends_on_launch(const ExprPtr& e, const Scope& scope) {
  switch (e->kind) {
    case ExprKind::integer:
    case ExprKind::real:
      return false;
    case ExprKind::name: {
      const Symbol* s = scope.find(e->text);
      return s ? !is_of_the_text(*s, scope)
               : !find_constant(e->text) && e->text != "true" && e->text != "false";
    }
    case ExprKind::index:
    case ExprKind::field:
      return true;
    case ExprKind::call:
      if (!find_function(e->text) || numbers_blocks(e->text)) return true;
      break;
    default:
      break;
  }
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const ExprPtr& a) { return depends_on_launch(a, scope); });
}

void branch_leaves_nothing_out(Check& c) {
  const ExprPtr& condition = c.stmt.condition();
  if (!c.warpgroups_block() && !c.inside(Op::warpgroup)) return;
  if (c.facts.incomplete) return;  // a step may call itself, which names.C2 has said
  if (!depends_on_launch(condition, c.scope) || asks_for_the_last_turn(condition, c.scope)) return;
  const bool of_turns = asks_for_another_turn(condition, c);
  for (const Stmt& s : c.stmt.body) {
    if (may_be_left_out(s, c.scope) && (of_turns || !copies(s, c.scope))) continue;
    c.broken("C2", s.span,
             fmt::format("`{}` is left out where `{}` does not hold, which differs from launch to "
                         "launch or from block to block",
                         print_head(s), print(condition)))
        .notes.push_back({"the condition is here", c.stmt.span});
  }
}

void steps_are_told_nothing_of_the_launch(Check& c, const Symbol& step) {
  if (c.facts.incomplete) return;  // it may call itself, which names.C2 has said
  const std::vector<Item>& given = c.stmt.arguments();
  for (size_t n = 0; n < given.size() && n < step.params.size(); ++n) {
    const Item& param = step.params[n];
    const ExprPtr& e = given[n].expr;
    if (param.type == "bool" && depends_on_launch(e, c.scope))
      c.broken("C2", e->span,
               fmt::format("`{}` is given `{}`, which differs from launch to launch or from block "
                           "to block",
                           param.name, print(e)));
    if (param.type != "i32" && param.type != "index") continue;
    const Symbol* s = e->kind == ExprKind::name ? c.scope.find(e->text) : nullptr;
    if (step.stmt && !(s && (counts_down_to_zero(*s) || is_integer_of_step(*s))) &&
        decides_in(*step.stmt, param.name, c.scope))
      c.broken("C2", e->span,
               fmt::format("`{}` is given `{}`, which is no index of a loop that ends at 0, and "
                           "`{}` asks whether it is in its last turn",
                           param.name, print(e), step.name));
  }
}

}  // namespace kw::tl
