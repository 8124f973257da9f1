// Types of expressions. Ints and reals never mix silently: C would convert, and `t / 2` or `m * 2`
// would mean something else than it says. There is one conversion, f32(x).
#include <algorithm>

#include "tl/laws/laws_check.h"
#include "tl/syntax/maps.h"
#include "tl/syntax/precedence.h"

namespace kw::tl {
namespace {

const Type kInteger{Type::integer, ""}, kReal{Type::real, ""}, kBoolean{Type::boolean, ""},
    kRow{Type::row, ""}, kUnknown{};

// Of the maps, those that set what they do not read.
bool sets_elements(Op op) { return is(op, Family::gather); }

bool is_declared(const Scope& scope, const std::string& record) {
  const Symbol* s = scope.find(record);
  return s && s->category == Category::record;
}

// Bodies at every column of an operand's row, in the pre-pass.
bool over_columns(Op op) { return op == Op::sum || op == Op::write_row; }

class Typing {
 public:
  Typing(Check& c, const Scope& scope, const MapTarget* map) : c_(c), scope_(scope), map_(map) {}

  // A record that is not declared has been reported where it is named.
  Type of(const ExprPtr& e) {
    const Type type = of_any(e);
    return type.kind == Type::record && !is_declared(scope_, type.name) ? kUnknown : type;
  }

 private:
  Type of_any(const ExprPtr& e) {
    switch (e->kind) {
      case ExprKind::integer:
        return kInteger;
      case ExprKind::real:
        return kReal;
      case ExprKind::name:
        return of_name(e);
      case ExprKind::index:
        return of_index(e);
      case ExprKind::field:
        return of_field(e);
      case ExprKind::call:
        return of_call(e);
      case ExprKind::unary:
        return of_unary(e);
      case ExprKind::where:
        return of_where(e);
      case ExprKind::binary:
        return of_binary(e);
    }
    return kUnknown;
  }

  Type wrong(const char* family, const char* label, const ExprPtr& e, std::string message) {
    c_.broken_as(family, label, e->span, std::move(message));
    return kUnknown;
  }

  Type of_name(const ExprPtr& e) {
    if (find_constant(e->text)) return kReal;
    if (e->text == "true" || e->text == "false") return kBoolean;
    const bool along = map_ && (map_->op == Op::set_diagonals || map_->op == Op::add_diagonals);
    if (along && e->text == "d") return kInteger;
    if (map_ && (e->text == "i" || e->text == "j")) {
      if (map_->op == Op::map_at || map_->op == Op::add_each) return kInteger;
      if (map_->op == (e->text == "i" ? Op::set_rows : Op::set_columns)) return kInteger;
      if (map_->op == Op::set_tile) return kInteger;
      if ((over_columns(map_->op) || map_->op == Op::set_line) && e->text == "j") return kInteger;
      if (map_->op == Op::map_real) return kReal;
      if (map_->op == Op::map && !scope_.find(e->text)) {
        c_.broken("C3", e->span,
                  fmt::format("`{}` is not a value in a map: it has no coordinates", e->text))
            .hint = "map_at gives i and j as ints, map_real as reals";
        return kUnknown;
      }
    }
    const Symbol* s = scope_.find(e->text);
    if (!s) return wrong("names", "C2", e, fmt::format("`{}` is not declared here", e->text));
    switch (s->category) {
      case Category::param:
      case Category::size:
      case Category::toggle:
      case Category::scalar:
      case Category::local:
        return s->type;
      case Category::row:
        if (s->element == "i32" && !map_)
          return wrong("row", "C3", e,
                       fmt::format("`{}` holds ints: only set_rows and maps know them", s->name));
        return map_ ? of_whole(e, *s) : kRow;
      default:
        return of_whole(e, *s);
    }
  }

  Type of_whole(const ExprPtr& e, const Symbol& s) {
    return wrong("types", "C6", e,
                 fmt::format("a value is due here, `{}` is {}", e->text, word(s.category)));
  }

  // prefix[c.b], or in a map body s[i, j] and m[i].
  Type of_index(const ExprPtr& e) {
    const ExprPtr& base = e->args[0];
    const Symbol* s = base->kind == ExprKind::name ? scope_.find(base->text) : nullptr;
    if (!s)
      return wrong("names", "C2", base, fmt::format("`{}` is not declared here", print(base)));
    if (s->category == Category::tensor || is_left(*s) || writer_of(*s)) return of_read(e, *s);
    if (s->category == Category::scratch) return of_scratch(e, *s);
    if (map_ && s->type.kind == Type::tile) return of_element(e, *s, 2);
    if (map_ && s->type.kind == Type::row) return of_element(e, *s, 1);
    return wrong("types", "C6", e,
                 fmt::format("a value is due here, `{}` is {}", s->name, word(s->category)));
  }

  // Whether what stands behind the tensor's name is so many ints for each of `dimensions`.
  bool indexed(const ExprPtr& e, const Symbol& s, size_t dimensions, size_t each) {
    const size_t given = e->args.size() - 1;
    if (given != dimensions * each) {
      wrong("types", "C5", e,
            fmt::format("`{}` has {} dimensions, it is read with {} indices", s.name, dimensions,
                        given));
      return false;
    }
    for (size_t n = 1; n < e->args.size(); ++n) {
      const Type t = of(e->args[n]);
      if (t == kInteger || t == kUnknown) continue;
      wrong("types", "C5", e->args[n],
            fmt::format("an index is an int, `{}` is {}", print(e->args[n]), text(t)));
      return false;
    }
    return true;
  }

  // What the pre-pass wrote, in the kernel that comes after it.
  Type of_scratch(const ExprPtr& e, const Symbol& s) {
    if (!indexed(e, s, 1, 1)) return kUnknown;
    if (c_.inside(Op::lists))
      return wrong("lists", "C3", e, fmt::format("`{}` is written here, not read", s.name));
    return kInteger;
  }

  // least(document, b, b, i0, i1): over the elements of a box, all of whose indices are given by
  // their first and their last.
  Type of_range(const ExprPtr& e) {
    const Symbol* s = e->args.empty() || e->args[0]->kind != ExprKind::name
                          ? nullptr
                          : scope_.find(e->args[0]->text);
    if (!s || s->category != Category::tensor)
      return wrong("types", "C4", e, fmt::format("`{}` takes a tensor first", e->text));
    if (!indexed(e, *s, s->dims.size(), 2)) return kUnknown;
    if (s->written || (s->type != kInteger && s->type != kBoolean))
      return wrong("types", "C4", e,
                   fmt::format("`{}` is of an `in` tensor of ints or bools, `{}` is `{} {}`",
                               e->text, s->name, s->written ? "out" : "in", s->element));
    if (!c_.inside(Op::lists))
      return wrong("lists", "C3", e,
                   fmt::format("`{}` is computed by all lanes of a warp together, and here they do "
                               "different things",
                               e->text));
    return kInteger;
  }

  // Whether the pass over rows behind the kernel reads it, which the kernel has stored.
  bool is_left(const Symbol& s) {
    const bool behind = map_ && over_columns(map_->op) && c_.facts.rows_behind;
    return behind && s.scratch && s.element == "element" && s.dims.size() == 4;
  }

  // The loop over rows in which the row that it is at has been written before, or null.
  const Stmt* writer_of(const Symbol& s) {
    const Stmt* loop =
        map_ && over_columns(map_->op) && !c_.parents.empty() ? c_.parents.back() : nullptr;
    if (!loop || loop->op != Op::each_row || !s.scratch) return nullptr;
    for (const Stmt& before : loop->body) {
      if (&before == &c_.stmt) break;
      if (before.op == Op::write_row && base_name(before.tensor()) == s.name) return loop;
    }
    return nullptr;
  }

  Type of_written(const ExprPtr& e, const Symbol& s, const Stmt& loop) {
    const std::string own[] = {loop.batch_index(), loop.head_index(), loop.row_index(), "j"};
    for (size_t n = 0; n < 4; ++n)
      if (!e->args[n + 1]->is_name(own[n].c_str()))
        return wrong("write_row", "C4", e->args[n + 1],
                     fmt::format("`{}` is read at `{}`, and its lane has written `{}`", s.name,
                                 print(e->args[n + 1]), own[n]));
    return s.type;
  }

  Type of_read(const ExprPtr& e, const Symbol& s) {
    if (!indexed(e, s, s.dims.size(), 1)) return kUnknown;
    if (const Stmt* loop = writer_of(s); loop && s.dims.size() == 4) return of_written(e, s, *loop);
    if (is_left(s)) {
      c_.facts.read_behind.emplace(s.name, &c_.stmt);
      return s.type;
    }
    // Elements that nothing computes with yet, or that a pre-pass over rows makes reals of.
    const bool whole = map_ && (map_->op == Op::set_line || over_columns(map_->op));
    if (s.written || s.scratch || (s.element == "element" && !whole))
      return wrong(
          "types", "C5", e,
          fmt::format("an `in` tensor of numbers or bools can be read, `{}` is `{} {}`", s.name,
                      s.written   ? "out"
                      : s.scratch ? "scratch"
                                  : "in",
                      s.element));
    return s.type;
  }

  Type of_element(const ExprPtr& e, const Symbol& s, size_t rank) {
    if (map_->op == Op::map_line || map_->op == Op::sum_line) return of_line(e, s);
    if (!has_element(map_->op)) {
      c_.broken("C2", e->span,
                fmt::format("the body may read tensors, `{}` is {}", s.name, word(s.category)));
      return kUnknown;
    }
    const bool placed = map_->op == Op::map_at || map_->op == Op::map_real;
    const bool own = s.name == map_->target, column = s.category == Category::column;
    const bool diagonal = s.category == Category::diagonal;
    std::vector<ExprPtr> at = element_indices(&s);
    if (own && rank == 2) at = {name("i"), name("j")};
    const bool other = s.category == Category::accumulator && !own && map_->op == Op::map;
    const bool data = (holds_data(s) && map_->op != Op::map_rows) || other;
    const bool readable =
        own || data || s.category == Category::row || ((column || diagonal) && placed);
    if (readable && is_at(*e, at)) {
      if (placed && rank == 1 && !diagonal) vector_fits(e, s, column ? 1 : 0);
      for (size_t axis : {0, 1})
        if (data || diagonal) vector_fits(e, s, axis);
      return scalar_type(s.element);
    }
    c_.broken("C2", e->span,
              readable ? fmt::format("`{}` is read as `{}`", s.name, print(index(name(s.name), at)))
                       : fmt::format("the body may read `{}` and row vectors, `{}` is {}{}",
                                     map_->target, s.name, word(s.category),
                                     s.category == Category::operand ? " of " + s.element : ""));
    return kUnknown;
  }

  Type of_line(const ExprPtr& e, const Symbol& s) {
    const std::vector<ExprPtr> at = element_indices(&s);
    if (s.category == Category::line && is_at(*e, at)) return kReal;
    c_.broken(map_->op == Op::map_line ? "C2" : "C1", e->span,
              s.category == Category::line
                  ? fmt::format("`{}` is read as `{}`", s.name, print(index(name(s.name), at)))
                  : fmt::format("the body may read lines, `{}` is {}", s.name, word(s.category)));
    return kUnknown;
  }

  // As many elements as the tile that is being mapped has rows (axis 0) or columns (axis 1).
  void vector_fits(const ExprPtr& e, const Symbol& s, size_t axis) {
    const Symbol* tile = scope_.find(map_->target);
    const bool both = s.category == Category::operand || s.category == Category::accumulator ||
                      s.category == Category::diagonal;
    const std::optional<int64_t> due = c_.extent(tile, axis), has = c_.extent(&s, both ? axis : 0);
    const char* what = axis ? "columns" : "rows";
    if (due && has && *due != *has)
      c_.broken(map_->op == Op::map ? "C4" : "C3", e->span,
                fmt::format("`{}` has {} {}, `{}` has {} {}", s.name, *has,
                            both ? what : "elements", map_->target, *due, what))
          .notes.push_back({fmt::format("`{}` is declared here", s.name), s.span});
  }

  Type of_field(const ExprPtr& e) {
    const Type base = of(e->args[0]);
    if (base == kUnknown) return kUnknown;
    const Symbol* record = base.kind == Type::record ? scope_.find(base.name) : nullptr;
    if (!record)
      return wrong(
          "types", "C3", e,
          fmt::format("`{}` is {}, it has no field `{}`", print(e->args[0]), text(base), e->text));
    const auto& fields = record->fields;
    if (std::find(fields.begin(), fields.end(), e->text) != fields.end()) return kInteger;
    return wrong("types", "C3", e,
                 fmt::format("the fields of {} are {}: `{}` is not one of them", base.name,
                             fmt::join(fields, ", "), e->text));
  }

  Type of_call(const ExprPtr& e) {
    const Symbol* s = scope_.find(e->text);
    if (s && s->category == Category::def) {
      arguments_fit(c_, "types", "C4", e->span, e->text, s->params, e->args, scope_, map_);
      return s->type;
    }
    const Function* f = find_function(e->text);
    if (!f) return wrong("names", "C2", e, fmt::format("no function is called `{}`", e->text));
    if (f->returns == Returns::range) return of_range(e);
    if (static_cast<size_t>(f->arity) != e->args.size())
      return wrong(
          "types", "C4", e,
          fmt::format("`{}` takes {} arguments, {} are given", e->text, f->arity, e->args.size()));
    return of_function(e, *f);
  }

  Type of_function(const ExprPtr& e, const Function& f) {
    if (f.returns == Returns::row) return of_total(e);
    std::vector<Type> given;
    for (const ExprPtr& a : e->args) given.push_back(of(a));
    if (std::count(given.begin(), given.end(), kUnknown)) return kUnknown;
    const bool to_real = f.name == "f32";
    const Type due = to_real || f.returns == Returns::integer ? kInteger
                     : f.returns == Returns::real             ? kReal
                                                              : given[0];
    for (size_t n = 0; n < given.size(); ++n) {
      if (given[n] == due && (due == kInteger || due == kReal)) continue;
      if (due == kReal && given[n] == kInteger && f.returns == Returns::real &&
          c_.constant(e->args[n]))
        continue;
      return wrong(
          "types", "C4", e->args[n],
          fmt::format("`{}` takes {}, `{}` is {}", f.name, text(due == kInteger ? kInteger : kReal),
                      print(e->args[n]), text(given[n])));
    }
    return f.returns == Returns::like_arguments ? due
           : f.returns == Returns::integer      ? kInteger
                                                : kReal;
  }

  Type of_total(const ExprPtr& e) {
    const Symbol* s = c_.find(e->args[0]);
    if (s && s->category == Category::lane_sum) return kRow;
    return wrong("types", "C4", e->args[0],
                 fmt::format("total takes a lane sum, `{}` is {}", print(e->args[0]),
                             s ? word(s->category) : "not declared"));
  }

  Type of_unary(const ExprPtr& e) {
    const Type t = of(e->args[0]);
    if (t == kUnknown) return t;
    if (e->text == "not") {
      if (t == kBoolean) return t;
      return wrong("types", "C2", e,
                   fmt::format("`not` is for bools, `{}` is {}", print(e->args[0]), text(t)));
    }
    if (t == kInteger || t == kReal) return t;
    return wrong("types", "C1", e,
                 fmt::format("`-` is for numbers, `{}` is {}", print(e->args[0]), text(t)));
  }

  Type of_where(const ExprPtr& e) {
    const Type condition = of(e->args[0]), a = of(e->args[1]), b = of(e->args[2]);
    if (condition != kBoolean && condition != kUnknown)
      return wrong(
          "types", "C2", e->args[0],
          fmt::format("a condition is a bool, `{}` is {}", print(e->args[0]), text(condition)));
    if (a == kUnknown || b == kUnknown) return kUnknown;
    if (a == b) return a;
    return wrong("types", "C2", e,
                 fmt::format("the values of where are {} and {}", text(a), text(b)));
  }

  Type of_binary(const ExprPtr& e) {
    const Type a = of(e->args[0]), b = of(e->args[1]);
    if (a == kUnknown || b == kUnknown) return kUnknown;
    const std::string& op = e->text;
    const auto disagree = [&](const char* label, std::string_view due) {
      Type t = wrong("types", label, e,
                     fmt::format("`{}` is for {}: `{}` is {}, `{}` is {}", op, due,
                                 print(e->args[0]), text(a), print(e->args[1]), text(b)));
      return t;
    };
    if (op == "and" || op == "or")
      return a == kBoolean && b == kBoolean ? a : disagree("C2", "bools");
    if (op == "//" || op == "%") {
      const std::optional<int64_t> divisor = c_.constant(e->args[1]);
      if (a != kInteger || b != kInteger) return disagree("C1", "ints");
      if (divisor && *divisor < 1)
        return wrong("types", "C7", e,
                     fmt::format("the divisor of `{}` is {}", print(e), *divisor));
      return a;
    }
    if (precedence(op) == kBits) return a == kInteger && b == kInteger ? a : disagree("C1", "ints");
    if (op == "/") return a == kReal && b == kReal ? a : disagree("C1", "reals");
    if (a != b || (a != kInteger && a != kReal)) return disagree("C1", "two ints or two reals");
    return precedence(op) == kComparison ? kBoolean : a;
  }

  Check& c_;
  const Scope& scope_;
  const MapTarget* map_;
};

bool is_map(Op op) {
  const std::vector<Part>& parts = row(op).tl.parts;
  return std::any_of(parts.begin(), parts.end(), [](const Part& p) { return p.kind == "map"; });
}

// What an expression hole wants where it is not an int.
Type due(const Check& c, Hole hole) {
  const Stmt& s = c.stmt;
  if (s.op == Op::return_ && c.inside(Op::list_blocks)) return kBoolean;
  if (s.op == Op::if_ || s.op == Op::toggle) return kBoolean;
  if (s.op == Op::fill || s.op == Op::arg_f32) return kReal;
  if (s.op == Op::write_value && hole == Hole::value) return kReal;
  const bool sums = s.op == Op::round_sums || s.op == Op::sum_tiles;
  if (sums && hole == Hole::scale) return kReal;
  if (s.op == Op::online_max && (hole == Hole::threshold || hole == Hole::scale)) return kReal;
  if ((s.op == Op::any_exceeds || s.op == Op::any_differs) && hole == Hole::threshold) return kReal;
  if (sets_elements(s.op) && hole == Hole::value) {
    const Symbol* t = c.find(s.target());
    return scalar_type(t ? t->element : "real");
  }
  if (is_map(s.op) && hole == Hole::value) return is(s.op, Family::result) ? kInteger : kReal;
  if (s.op == Op::row && hole == Hole::names) return kRow;
  return kInteger;
}

// A call's arguments, a let's value, the names of init and the expressions of a sketch have other
// laws or none.
bool is_judged_elsewhere(Op op) {
  return op == Op::call || op == Op::let || op == Op::init || op == Op::copy || op == Op::mma ||
         op == Op::mma_add || op == Op::mma_add_transposed || op == Op::compute;
}

bool is_value(std::string_view kind) {
  static constexpr std::string_view kinds[] = {"expr",  "exprs", "size",   "atom",  "sum", "num",
                                               "inits", "rows",  "values", "tiles", "map"};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

// `param BM = 128, WARPGROUPS = BM // 64`: a size is made of numbers and parameters.
bool wants_constant(std::string_view kind) { return kind == "size" || kind == "tiles"; }

void value_fits(Check& c, Hole hole, const ExprPtr& e, std::string_view kind, const Scope& scope) {
  MapTarget body{c.stmt.op, ""};
  const bool in_map = is_map(c.stmt.op) && kind == "map";
  if (in_map && c.stmt.has(Hole::target)) body.target = c.stmt.target()->text;
  const Type want = due(c, hole), got = checked_type(c, e, scope, in_map ? &body : nullptr);
  if (got == kUnknown) return;
  if (got != want)
    c.broken_as("types", "C6", e->span,
                fmt::format("{} is due here, `{}` is {}", text(want), print(e), text(got)));
  else if (wants_constant(kind) && !c.constant(e))
    c.broken_as("names", "C4", e->span,
                fmt::format("a constant is needed here, and `{}` is not one", print(e)));
}

}  // namespace

std::string text(const Type& type) {
  switch (type.kind) {
    case Type::integer:
      return "an int";
    case Type::real:
      return "a real";
    case Type::boolean:
      return "a bool";
    case Type::record:
      return "a " + type.name;
    case Type::row:
      return "a row vector";
    case Type::tile:
      return "a tile";
    case Type::unknown:
      break;
  }
  return "of no type";
}

Type checked_type(Check& c, const ExprPtr& e, const Scope& scope, const MapTarget* map) {
  return Typing(c, scope, map).of(e);
}

void expressions_have_types(Check& c) {
  if (is_judged_elsewhere(c.stmt.op)) return;
  std::map<Hole, std::string> kinds;
  for (const Part& p : row(c.stmt.op).tl.parts)
    if (p.hole()) kinds.emplace(p.name, p.kind);
  for (const Field& f : c.stmt.fields) {
    const std::string& kind = kinds[f.hole];
    if (!is_value(kind) || writes(access(c.stmt.op, f.hole))) continue;  // a place is no value
    Scope here(&c.scope);  // a later value of one statement sees the earlier names
    for (const Item& item : f.items) {
      if (item.expr) value_fits(c, f.hole, item.expr, kind, here);
      if (!item.name.empty()) here.add(symbol_of(c.stmt, item, here));
    }
  }
}

void arguments_fit(Check& c, const char* family, const char* label, Span span,
                   const std::string& callee, const std::vector<Item>& params,
                   const std::vector<ExprPtr>& arguments, const Scope& scope,
                   const MapTarget* map) {
  if (params.size() != arguments.size()) {
    c.broken_as(family, label, span,
                fmt::format("`{}` takes {} arguments, {} are given", callee, params.size(),
                            arguments.size()));
    return;
  }
  for (size_t n = 0; n < params.size(); ++n) {
    const std::string& name = params[n].type;
    const Type due = name == "bool"  ? kBoolean
                     : name == "f32" ? kReal
                     : name == "i32" || name == "index" || name == "size"
                         ? kInteger
                         : Type{Type::record, name};
    const Type got = checked_type(c, arguments[n], scope, map);
    if (due.kind == Type::record && !is_declared(scope, due.name)) continue;
    if (got != kUnknown && got != due)
      c.broken_as(family, label, arguments[n]->span,
                  fmt::format("`{}` of `{}` is {}, `{}` is {}", params[n].name, callee, text(due),
                              print(arguments[n]), text(got)));
  }
}

void another_tensor_is_due(Check& c, const char* label, const ExprPtr& at, const Symbol& tensor) {
  c.broken(label, at->span,
           fmt::format("`{}` is `{} {}` with {} dimensions", tensor.name, word_of_access(tensor),
                       tensor.element, tensor.dims.size()))
      .notes.push_back({"declared here", tensor.span});
}

}  // namespace kw::tl
