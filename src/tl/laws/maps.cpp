// Maps and rows. A body sees one element: its own, and its row's values; what it reads is checked
// with the types of the expression (laws_types.cpp reports C2 and C3 of the maps).
#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

// What a statement writes that may be of several kinds.
const Symbol* named(Check& c, Hole hole) {
  const Item& item = c.stmt.items(hole).at(0);
  const std::string name = item.expr ? print(item.expr) : item.name;
  const Symbol* s = item.expr ? c.find(item.expr) : c.find(item);
  if (!s)
    c.broken_as("names", "C2", item.expr ? item.expr->span : item.span,
                fmt::format("`{}` is not declared here", name));
  return s;
}

// l[i] * e or e * l[i], with l nowhere in e.
bool scales(const ExprPtr& body, const std::string& lane_sum) {
  if (body->kind != ExprKind::binary || body->text != "*") return false;
  const auto is_element = [&](const ExprPtr& e) {
    return e->kind == ExprKind::index && e->args[0]->is_name(lane_sum);
  };
  const ExprPtr &a = body->args[0], &b = body->args[1];
  return (is_element(a) && !mentions(b, lane_sum)) || (is_element(b) && !mentions(a, lane_sum));
}

}  // namespace

void law_fill(Check& c) {
  const Symbol* s = named(c, Hole::target);
  if (s && s->category == Category::row && s->element == "i32")
    c.broken_as("row", "C3", c.stmt.target()->span,
                fmt::format("`{}` holds ints: only set_rows and maps know them", s->name))
        .notes.push_back({fmt::format("`{}` is declared here", s->name), s->span});
  else if (s && s->category != Category::accumulator && s->category != Category::row &&
           s->category != Category::lane_sum)
    c.broken("C1", c.stmt.target()->span,
             fmt::format("an accumulator, a row vector or a lane sum is due here, `{}` is {}",
                         s->name, word(s->category)))
        .notes.push_back({fmt::format("`{}` is declared here", s->name), s->span});
}

void law_map(Check&) {}            // C1: the table; C2, C3: laws_types.cpp
void law_map_at(Check&) {}         // likewise
void law_map_real(Check&) {}       // likewise
void law_set_rows(Check&) {}       // likewise
void law_set_columns(Check&) {}    // likewise
void law_set_diagonals(Check&) {}  // likewise

// What the read mentions is judged with the types; here, that it is one, and of neighbours.
void law_set_tile(Check& c) {
  const Symbol& t = *c.find(c.stmt.target());
  const ExprPtr& body = c.stmt.value();
  if (!holds_data(t))
    c.broken("C1", c.stmt.target()->span,
             fmt::format("an operand of bf16, f16 or bool is due here, `{}` is of {}", t.name,
                         t.element))
        .notes.push_back({fmt::format("`{}` is declared here", t.name), t.span});
  if (body->kind != ExprKind::index) {
    c.broken("C2", body->span, fmt::format("`{}` is not a read of a tensor", print(body)));
    return;
  }
  const Symbol* from = c.find(body->args[0]);
  if (!from || from->category != Category::tensor) return;  // laws_types.cpp said it
  if (holds_data(t) && from->element != t.element)
    c.broken("C2", body->span,
             fmt::format("`{}` holds {}, `{}` {}", from->name, from->element, t.name, t.element))
        .notes.push_back({fmt::format("`{}` is declared here", from->name), from->span});
  const auto mentions_j = [](const ExprPtr& e) { return mentions(e, "j"); };
  if (!body->args.back()->is_name("j"))
    c.broken("C3", body->args.back()->span,
             fmt::format("the last index is `{}`", print(body->args.back())));
  else if (std::any_of(body->args.begin(), body->args.end() - 1, mentions_j))
    c.broken("C3", body->span, fmt::format("`{}` has j twice", print(body)));
}

void law_map_rows(Check& c) {
  const Symbol& s = *c.find(c.stmt.target());
  const ExprPtr& body = c.stmt.value();
  if (s.category == Category::lane_sum && !scales(body, s.name))
    c.broken(
         "C3", body->span,
         fmt::format("`{}` is a lane sum: `{}` would count once for each of the row's four lanes",
                     s.name, print(body)))
        .notes.push_back({fmt::format("`{}` is declared here", s.name), s.span});
}

void law_compute(Check& c) {
  if (!c.inside(Op::plan))
    c.broken("C1", c.stmt.span, "`compute` stands outside a plan").hint =
        "a kernel says map, map_rows, online_max, ...";
}

void law_to_operand(Check& c) {
  const Symbol &p = *c.find(c.stmt.dst()), &s = *c.find(c.stmt.src());
  for (size_t axis : {0, 1}) {
    const std::optional<int64_t> x = c.extent(&p, axis), y = c.extent(&s, axis);
    if (x && y && *x != *y)
      c.broken("C2", c.stmt.span,
               fmt::format("{} of `{}` ({}) and `{}` ({}) differ", axis ? "columns" : "rows",
                           p.name, *x, s.name, *y))
          .notes.push_back({fmt::format("`{}` is declared here", s.name), s.span});
  }
}

namespace {
void sets_flag(Check& c) {
  const Symbol* flag = named(c, Hole::flag);
  if (flag && (!flag->stmt || flag->stmt->op != Op::flag))
    c.broken("C1", c.stmt.items(Hole::flag)[0].span,
             fmt::format("a flag is due here, `{}` is {}", flag->name, word(flag->category)));
  else if (flag)
    c.facts.flags_set.insert(flag->stmt);
}
}  // namespace

void law_any_exceeds(Check& c) { sets_flag(c); }
void law_any_differs(Check& c) {
  sets_flag(c);
  const ExprPtr& one = c.stmt.threshold();
  if (!(one->kind == ExprKind::real || one->kind == ExprKind::integer) || std::stod(one->text) != 1)
    c.broken("C2", one->span,
             fmt::format("factors are compared with `{}`: rows whose factor is that, and not 1, "
                         "would be left as they are",
                         print(one)));
}

void law_online_max(Check& c) {
  sets_flag(c);
  const Symbol *m = c.find(c.stmt.max()), *factor = c.find(c.stmt.alpha());
  if (m == factor)
    c.broken("C2", c.stmt.alpha()->span,
             fmt::format("`{}` is the reference and the factor at once", m->name));
}

void law_row_max(Check&) {}  // C1: the table
void law_row_sum(Check&) {}  // likewise
void law_add(Check&) {}      // likewise

}  // namespace kw::tl
