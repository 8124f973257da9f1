#include "proofs/integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "proofs/heads.h"
#include "proofs/names.h"
#include "proofs/solver/sexpr.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Op;
using tl::Stmt;

class Walk : private Names {
 public:
  Walk(const tl::Program& program, const std::map<std::string, Term>& sizes, const Blocks& blocks,
       bool without_softmax, std::set<std::string> counts, Vocabulary& vocabulary)
      : Names(program, sizes, blocks, vocabulary), without_softmax_(without_softmax) {
    out_.counts = std::move(counts);
  }

  Uses run() {
    const Scope scope = module();
    tl::walk(program_.body, [&](const Stmt& s) {
      const Family family = tl::traits(s.op).family;
      const bool thing = family == Family::tensor || family == Family::memory ||
                         family == Family::barrier || family == Family::registers ||
                         family == Family::argument || family == Family::reduce ||
                         s.op == Op::flag || s.op == Op::sum || s.op == Op::dot_row;
      if (thing && s.has(tl::Hole::names))
        for (const tl::Item& d : s.names()) things_.insert(d.name);
      if (s.op == Op::accumulator)
        for (const tl::Item& d : s.names()) accumulators_[d.name] = &s;
      if (tl::begins_scores(s.op)) scores_.insert(tl::base_name(s.acc()));
    });
    for (const Stmt& s : program_.body) {
      if (s.op == Op::args) arguments(s, scope);
      if (tl::is(s.op, Family::pass)) pass(s, scope);
      if (!tl::is(s.op, Family::kernel)) continue;
      Scope inside = scope;
      if (s.op == Op::warpgroups_kernel) agents(s.me(), named("WARPGROUPS", inside), inside);
      kernel_ = &s.body;
      walk(s.body, inside);
      kernel_ = nullptr;
    }
    for (const auto& [condition, end] : ends_)
      if (end != "0" && !out_.counts.count(end)) out_.all.push_back(condition);
    out_.of_all = std::move(of_all_);
    out_.list = std::move(list_);
    out_.open = std::move(open_);
    return std::move(out_);
  }

 private:
  void computed(const Term& t, const Scope& scope, int64_t least) override {
    if (on_host_) return;
    std::string key = fmt::format("{}\n{}", t.text, least);
    for (const std::string& p : scope.premises) key += "\n" + p;
    if (steps_.insert(key).second) out_.steps.push_back({scope.premises, t, least});
  }

  void walk(const std::vector<Stmt>& body, Scope& scope) {
    for (size_t n = 0; n < body.size(); ++n) {
      if (n + 1 < body.size() && choose(body[n], body[n + 1], scope))
        ++n;
      else
        statement(body[n], scope);
    }
  }

  // Where two branches are one choice.
  bool choose(const Stmt& one, const Stmt& other, Scope& scope) {
    if (one.op != Op::if_ || other.op != Op::if_) return false;
    const Term c = eval(one.condition(), scope), not_c = eval(other.condition(), scope);
    if (c.sort != Term::boolean || not_c.text != negation(c).text || c.is("true") || c.is("false"))
      return false;
    const auto eval_here = [&](const ExprPtr& e, const Scope& s) { return eval(e, s); };
    const Scope here = with_coordinates(scope);
    auto first = formula_of(one.body, here, eval_here),
         second = formula_of(other.body, here, eval_here);
    if (!first || !second) return false;
    out_.choices.push_back({{scope.premises, c, tl::print(one.condition()), one.span, tile_, false},
                            not_c.text,
                            std::move(*first),
                            std::move(*second)});
    for (const Stmt* s : {&one, &other}) {
      chosen_ = true;
      branch(*s, scope);
    }
    return true;
  }

  Scope with_coordinates(const Scope& scope) {
    Scope inside = scope;
    bind_element(inside);
    return inside;
  }

  // Numbers that a launch computes: 0.1 where N > 9999.
  void arguments(const Stmt& s, const Scope& scope) {
    std::set<std::string> computed;
    for (const Stmt& a : s.body)
      for (const tl::Item& d : a.names()) {
        if (a.op == Op::arg_f32 && d.expr) as_real([&] { note(d.expr, scope, a); });
        if (a.op == Op::arg_size && d.expr && !is_whole_blocks(d.expr)) computed.insert(d.name);
        if (a.op == Op::arg_size && !d.expr && !sizes_.count(d.name))
          out_.of_tables.insert(named(d.name, scope).text);
      }
    // A tensor has the sizes of the launch: what lies beyond others is nothing to a copy, or to a
    // pass.
    for (const Stmt& a : s.body)
      if (tl::is(a.op, Family::tensor))
        for (const tl::Item& d : a.dims())
          if (computed.count(d.name)) open(fmt::format("a tensor of as many rows as `{}`", d.name));
  }

  // ceil_div(M, BM) * BM: each block of the other side, whole, is in a tensor of as many rows.
  bool is_whole_blocks(const ExprPtr& e) const {
    const ExprPtr tile = tl::name("B" + sides_.columns);
    return sides_.of_keys &&
           tl::equal(e,
                     tl::binary("*", tl::call("ceil_div", {tl::name(sides_.columns), tile}), tile));
  }

  void pass(const Stmt& s, const Scope& scope) {
    if (s.op == Op::lists) return;  // what it lists is read of its words (lists.h)
    if (s.op != Op::rows && s.op != Op::after) return open(fmt::format("the pass {}", s.name()));
    on_host_ = true;  // which computes in 64 bits
    out_.launched.push_back(
        {scope.premises, eval(s.count(), scope), tl::print(s.count()), s.span, {}, false});
    on_host_ = false;
    Scope inside = scope;
    const std::string& warp = s.items(tl::Hole::index)[0].name;
    inside.names[warp] = {vocabulary_.fresh(warp), {}};
    inside.premises.push_back(counted(inside.names[warp].term.text));
    walk(s.body, inside);
  }

  void statement(const Stmt& s, Scope& scope) {
    if (kernel_) out_.reached.insert({&s, within_});
    if (tl::is_loop(s.op)) return loop(s, scope);
    if (tl::is(s.op, Family::tiles)) return;  // order.h
    switch (s.op) {
      case Op::warpgroup:
      case Op::thread: {
        Scope inside = scope;
        return role(s, inside);
      }
      case Op::warpgroups: {
        Scope inside = scope;
        agents(s.me(), named("WARPGROUPS", scope), inside);
        return role(s, inside);
      }
      case Op::count:
        turns_ = fmt::format("(+ {} 1)", turns_);
        return;
      case Op::cluster:
        return agents(s.rank(), eval(s.ctas(), scope), scope);
      case Op::let:
        let(s, scope);
        if (kernel_ && !tile_) rows_ = tile_of(*kernel_, scope, false);
        for (const tl::Item& d : s.names())
          if (scope.names[d.name].term.sort == Term::real) as_real([&] { note(d.expr, scope, s); });
        return;
      case Op::var:
        for (const tl::Item& d : s.names()) {
          scope.names[d.name] = {vocabulary_.fresh(d.name), {}};
          scope.premises.push_back(counted(scope.names[d.name].term.text));
        }
        return;
      case Op::step:
        return declare_step(s);
      case Op::call:
        return call(s, scope);
      case Op::if_:
        return branch(s, scope);
      case Op::each_row:
        return each_row(s, scope);
      case Op::sum:
      case Op::dot_row:
        fields(s, scope);
        for (const tl::Item& d : s.names()) scope.names[d.name] = {{Term::real, ""}, {}};
        return;
      default:
        if (!s.body.empty()) return open("a statement with a block of its own");
        return fields(s, scope);
    }
  }

  // ---- whose turns
  void role(const Stmt& s, Scope& scope) {
    turns_ = "0";
    looped_ = false;
    walk(s.body, scope);
    if (looped_) out_.turns.push_back({scope.premises, turns_, s.span});
    looped_ = false;
    turns_ = "0";
  }

  // A loop of which each turn takes the next place of the rings, and the key block below.
  void turning(const Stmt& s, const Term& begin, const Term& end, const Scope& scope) {
    if (conditions_) return open("the turns of a loop under a condition");
    looped_ = true;
    out_.loops.push_back({scope.premises, begin.text, end.text, turns_, s.span});
    turns_ =
        fmt::format("(+ {0} (ite (>= {1} {2}) (+ (- {1} {2}) 1) 0))", turns_, begin.text, end.text);
  }

  // Counters and numbers of blocks: 2^30 turns are more than a launch makes.
  static std::string counted(const std::string& name) { return in_range(name, "1073741824"); }

  // ---- what names run over
  void agents(const std::string& name, const Term& end, Scope& scope) {
    bind_below(name, end, scope, of_all_);
    if (is_literal(end.text)) out_.of_agents.insert(scope.names[name].term.text);
  }

  void loop(const Stmt& s, const Scope& scope) {
    Scope inside = scope;
    for (const tl::Hole hole : {tl::Hole::use, tl::Hole::counter, tl::Hole::index})
      if (s.has(hole)) {
        const std::string& name = s.items(hole)[0].name;
        inside.names[name] = {vocabulary_.fresh(name), {}};
        inside.premises.push_back(counted(inside.names[name].term.text));
      }
    if (s.op == Op::range) {
      note(s.end(), scope, s);
      agents(s.items(tl::Hole::index)[0].name, eval(s.end(), scope), inside);
    } else if (s.has(tl::Hole::begin)) {
      Term& n = inside.names[s.items(tl::Hole::index)[0].name].term;
      const Term begin = eval(s.begin(), scope), end = eval(s.end(), scope);
      if (begin.sort != Term::integer || end.sort != Term::integer)
        return open(begin.sort == Term::integer ? end.text : begin.text);
      if (sides_.of_keys && !bind_pairs(n, begin)) return open("the turns of a loop over queries");
      out_.ranges.push_back({scope.premises, &s, begin.text, end.text});
      inside.premises.push_back(
          fmt::format("(and (<= {} {}) (<= {} {}))", end.text, n.text, n.text, begin.text));
      indices_.insert(n.text);
      if (s.has(tl::Hole::counter)) turning(s, begin, end, scope);
      within_.push_back(&s);
      walk(s.body, inside);
      return within_.pop_back();
    }
    walk(s.body, inside);
  }

  void each_row(const Stmt& s, const Scope& scope) {
    Scope inside = scope;
    const auto bind = [&](tl::Hole hole, const char* as) {
      inside.names[s.items(hole)[0].name] = {vocabulary_.constant(as), {}};
    };
    bind(tl::Hole::batch_index, "block.b");
    bind(tl::Hole::head_index, "row.h");
    bind(tl::Hole::row_index, "row");
    inside.names["j"] = {vocabulary_.constant("column"), {}};
    for (const char* name : {"row", "row.h", "column"}) inside.premises.push_back(counted(name));
    walk(s.body, inside);
  }

  // ---- control
  void call(const Stmt& s, const Scope& scope) {
    Scope inside = scope;
    const Stmt* step = enter(s, inside);
    if (!step) return;
    // What is given for a bool, call.C2 holds to the text.
    for (size_t n = 0; n < step->params().size() && n < s.arguments().size(); ++n)
      if (step->params()[n].type != "bool") note(s.arguments()[n].expr, scope, s);
    const std::optional<TileAt> outer = tile_;
    tile_ = tile_of(step->body, inside, true);
    walk(step->body, inside);
    tile_ = outer;
  }

  // The tile that maps are about: one of them says where it begins; before the loops over key
  // blocks only which rows are its.
  std::optional<TileAt> tile_of(const std::vector<Stmt>& body, const Scope& scope, bool keys) {
    std::optional<TileAt> found;
    tl::walk(body, [&](const Stmt& s) {
      if (s.op != Op::map_at && s.op != Op::map_real) return;
      const auto tile = accumulators_.find(tl::base_name(s.target()));
      if (found || tile == accumulators_.end()) return;
      const Term i0 = eval(s.i0(), scope), j0 = keys ? eval(s.j0(), scope) : Term::number(0),
                 rows = eval(tile->second->rows(), scope),
                 columns = eval(tile->second->columns(), scope);
      if (i0.sort == Term::integer && j0.sort == Term::integer && is_literal(rows.text) &&
          is_literal(columns.text))
        found = TileAt{i0.text, keys ? j0.text : "", std::stoll(rows.text),
                       keys ? std::stoll(columns.text) : 0};
    });
    return found;
  }

  void branch(const Stmt& s, const Scope& scope) {
    const bool chosen = std::exchange(chosen_, false);
    Scope inside = scope;
    const Term condition = eval(s.condition(), scope);
    if (condition.is("false")) return;
    if (condition.is("true")) return walk(s.body, inside);
    if (is_of_agents(condition)) return of_agent(s, condition, inside);
    if (const std::string end = last_turn(*s.condition(), scope); !end.empty()) {
      ends_.push_back(
          {{inside.premises, condition, tl::print(s.condition()), s.span, tile_, false}, end});
      inside.premises.push_back(condition.text);
    } else if (masks_alone(s)) {
      inside.premises.push_back(condition.text);
    } else {  // of one that asks a flag too, its other parts
      note(s.condition(), scope, s);
      if (condition.sort == Term::boolean) inside.premises.push_back(condition.text);
      if (!chosen) out_.branches.insert(condition.text);
    }
    ++conditions_;
    walk(s.body, inside);
    --conditions_;
  }

  // A branch that drops elements of scores, and does nothing else: when, is the mask's obligation.
  bool masks_alone(const Stmt& branch) const {
    return std::all_of(branch.body.begin(), branch.body.end(), [&](const Stmt& s) {
      if (s.op == Op::row || s.op == Op::column || s.op == Op::diagonal) return true;
      if (tl::is(s.op, Family::gather)) return is_read_in(branch, tl::base_name(s.target()));
      if ((s.op != Op::map && s.op != Op::map_at) || s.value()->kind != ExprKind::where)
        return false;
      const ExprPtr &kept = s.value()->args[1], &dropped = s.value()->args[2];
      const bool zero = is_zero(dropped) && without_softmax_;
      const ExprPtr own = tl::index(s.target(), {tl::name("i"), tl::name("j")});
      return scores_.count(tl::base_name(s.target())) && tl::equal(kept, own) &&
             (is_minus_infinity(dropped) || zero);
    });
  }

  // Nobody else reads the vector, which the branch alone sets.
  bool is_read_in(const Stmt& branch, const std::string& vector) const {
    const auto reads = [&](const std::vector<Stmt>& body) {
      int n = 0;
      tl::walk(body, [&](const Stmt& s) {
        for (const tl::Field& f : s.fields)
          for (const tl::Item& item : f.items) n += item.expr && tl::mentions(item.expr, vector);
      });
      return n;
    };
    return kernel_ && reads(*kernel_) == reads(branch.body);
  }

  // What some agents do and others do not is a role of its own.
  void of_agent(const Stmt& s, const Term& condition, Scope& scope) {
    scope.premises.push_back(condition.text);
    const std::string outer = std::exchange(turns_, "0");
    const bool looped = std::exchange(looped_, false);
    walk(s.body, scope);
    if (looped_ && (looped || outer != "0")) open("turns of some agents beside those of all");
    if (looped_) out_.turns.push_back({scope.premises, turns_, s.span});
    turns_ = outer;
    looped_ = looped;
  }

  // `n > keys.first`, of the index of a loop: whether this is the last turn of it, or of a loop
  // behind it. "": it asks something else.
  std::string last_turn(const Expr& e, const Scope& scope) {
    if (e.kind != ExprKind::binary) return "";
    const std::string index = eval(e.args[0], scope).text;
    const bool first = index == (pairs_ && pairs_->alone ? pairs::kPlace : pairs::kFirst);
    if (!indices_.count(index) && !first) return "";
    const Term with = eval(e.args[1], scope);
    return with.sort == Term::integer ? with.text : "";
  }

  // ---- what statements use
  void fields(const Stmt& s, Scope& scope) {
    const bool elements =
        tl::is(s.op, Family::map) || tl::is(s.op, Family::gather) || s.op == Op::add_diagonals;
    const Scope inside = elements ? with_coordinates(scope) : scope;
    const bool tile = s.op == Op::map || s.op == Op::map_at || s.op == Op::map_real;
    dropped_ = tile && scores_.count(tl::base_name(s.target()));
    weights_ = dropped_ && (without_softmax_ || takes_exponential(s.value()));
    for (const tl::Field& f : s.fields) {
      if (s.op == Op::wait_turn && f.hole == tl::Hole::number) continue;  // one_order.h
      along_ = heads_of_copy(s, f);
      for (const tl::Item& item : f.items)
        if (item.expr && !known_later(s, item.expr, inside)) {
          const bool value =
              (elements || s.op == Op::sum) && s.has(tl::Hole::value) && item.expr == s.value();
          in(value, [&] { note(item.expr, inside, s); });
        }
      along_.clear();
    }
    if (elements) begins_at_tile(s, scope);
    dropped_ = weights_ = false;
    if (tl::is(s.op, Family::gather))
      scope.names[tl::base_name(s.target())] = {eval(s.value(), inside), {}};
  }

  // Vectors and maps are about the elements of their step's tile.
  void begins_at_tile(const Stmt& s, const Scope& scope) {
    const auto other = [&](tl::Hole hole, const std::string& first) {
      return s.has(hole) && s.expr(hole) && !first.empty() &&
             eval(s.expr(hole), scope).text != first;
    };
    const std::optional<TileAt>& tile = tile_ ? tile_ : rows_;
    if (tile && (other(tl::Hole::i0, tile->i0) || other(tl::Hole::j0, tile->j0)))
      open("a vector or a map of another tile than its step's");
  }

  // Whether an integer is read as a number of reals, or as an index, a coordinate or a condition.
  void in(bool real, const std::function<void()>& what) {
    const bool outer = std::exchange(real_, real);
    what();
    real_ = outer;
  }
  void as_real(const std::function<void()>& what) { in(true, what); }

  // Integers and truths that a vector holds: they are looked at where something reads them.
  bool known_later(const Stmt& s, const ExprPtr& e, const Scope& scope) {
    if (!tl::is(s.op, Family::gather) || s.value() != e) return false;
    const Term t = eval(e, scope);
    return t.sort == Term::integer || t.sort == Term::boolean;
  }

  // Of a tile of scores -inf, or a weight 0: the condition is one of the mask's, which is another
  // obligation.
  bool drops(const ExprPtr& e) const {
    return dropped_ && (is_minus_infinity(e) || (weights_ && is_zero(e)));
  }

  void use(const Term& t, const ExprPtr& e, const Scope& scope, const Stmt& s) {
    if (t.sort == Term::open) return open(t.text);
    if (t.sort == Term::real || is_literal(t.text) || t.is("true") || t.is("false")) return;
    std::string key = t.text;
    for (const std::string& p : scope.premises) key += "\n" + p;
    if (tile_) key += fmt::format("\nof {} {}", tile_->i0, tile_->j0);
    const bool real = real_ && t.sort == Term::integer;
    if (real) key += "\nreal";
    if (!along_.empty()) key += "\nalong " + along_;
    if (seen_.insert(key).second)
      out_.all.push_back(
          {scope.premises, t, tl::print(e), s.span, tile_ ? tile_ : rows_, real, along_});
  }

  void each(const std::vector<ExprPtr>& all, size_t from, const Scope& scope, const Stmt& s) {
    for (size_t n = from; n < all.size(); ++n) note(all[n], scope, s);
  }

  // Its largest parts that are integers or truths.
  void note(const ExprPtr& e, const Scope& scope, const Stmt& s) {
    switch (e->kind) {
      case ExprKind::integer:
      case ExprKind::real:
        return;
      case ExprKind::name:
        if (scope.names.count(e->text)) return use(scope.names.at(e->text).term, e, scope, s);
        if (!things_.count(e->text) && eval(e, scope).sort == Term::open)
          open(fmt::format("the name {}", e->text));
        return;
      case ExprKind::field:
        return use(eval(e, scope), e, scope, s);
      case ExprKind::index:
        return element(e, scope, s);
      case ExprKind::call:
        return called(e, scope, s);
      case ExprKind::where:
        return choice(e, scope, s);
      case ExprKind::binary:
      case ExprKind::unary: {
        const Term t = eval(e, scope);
        const bool of_reals = std::any_of(e->args.begin(), e->args.end(), [&](const ExprPtr& a) {
          return eval(a, scope).sort == Term::real;
        });
        const bool of_truths = e->text == "and" || e->text == "or" || e->text == "not";
        if (t.sort == Term::real || of_reals || (t.sort == Term::open && of_truths))
          return in(!of_truths, [&] { each(e->args, 0, scope, s); });
        return use(t, e, scope, s);
      }
    }
  }

  void choice(const ExprPtr& e, const Scope& scope, const Stmt& s) {
    const Term t = eval(e, scope);
    if (t.sort == Term::integer || t.sort == Term::boolean) return use(t, e, scope, s);
    const bool a = drops(e->args[1]), b = drops(e->args[2]);
    if (!a && !b) in(false, [&] { note(e->args[0], scope, s); });
    if (!a) note(e->args[1], scope, s);
    if (!b) note(e->args[2], scope, s);
  }

  void element(const ExprPtr& e, const Scope& scope, const Stmt& s) {
    const Term t = eval(e, scope);
    if (scope.names.count(tl::base_name(e)) || t.sort == Term::integer || t.sort == Term::boolean)
      return use(t, e, scope, s);
    if (t.sort == Term::open) return open(t.text);
    in(false, [&] {
      for (size_t n = 1; n < e->args.size(); ++n) {
        along_ = heads_along(e->args[0], n - 1);
        note(e->args[n], scope, s);
        along_.clear();
      }
    });
    // The base of q_s[me][u] has indices of its own.
    if (e->args[0]->kind == ExprKind::index) in(false, [&] { note(e->args[0], scope, s); });
  }

  // How many heads lie along a tensor's dimension, where that is a symbol; "" for other dimensions.
  std::string heads_along(const ExprPtr& tensor, size_t dimension) const {
    if (!tensor || tensor->kind != ExprKind::name) return "";
    const auto of = extents_.find(user_of(tensor->text));
    if (of == extents_.end() || dimension >= of->second.size()) return "";
    return counts_heads(of->second[dimension]) ? of->second[dimension] : "";
  }

  // A copy is of one tensor's [batch, head, row, column], or [batch, head, row].
  std::string heads_of_copy(const Stmt& s, const tl::Field& f) const {
    if (f.hole != tl::Hole::head) return "";
    for (const tl::Field& other : s.fields)
      for (const tl::Item& item : other.items)
        if (const std::string heads = heads_along(item.expr, 1); !heads.empty()) return heads;
    return "";
  }

  void called(const ExprPtr& e, const Scope& scope, const Stmt& s) {
    const Term t = Names::called(*e, scope).term;
    if (t.sort == Term::integer || t.sort == Term::boolean) return use(t, e, scope, s);
    // One that the solver does not know, of more than constants: rsqrt(D) is a number of the text.
    const bool of_integers = std::any_of(e->args.begin(), e->args.end(), [&](const ExprPtr& a) {
      const Term given = eval(a, scope);
      return given.sort == Term::integer && !is_literal(given.text);
    });
    if (function_of(e->text) || (t.sort == Term::open && of_integers && e->text != "f32"))
      return open(fmt::format("the function {}", e->text));
    as_real([&] { each(e->args, 0, scope, s); });
  }

  const bool without_softmax_;
  Uses out_;
  std::vector<std::pair<Use, std::string>> ends_;  // conditions on an index, and with what
  std::string turns_ = "0";                        // of this role so far, since the block began
  bool looped_ = false, on_host_ = false;
  int conditions_ = 0;  // that a statement stands under
  std::set<std::string> indices_, seen_, steps_, things_,
      scores_;  // things_: names that are no numbers

  std::map<std::string, const Stmt*> accumulators_;
  const std::vector<Stmt>* kernel_ = nullptr;
  std::vector<const Stmt*> within_;    // loops
  std::optional<TileAt> tile_, rows_;  // of the step that is walked; of its warpgroup
  bool dropped_ = false, weights_ = false, chosen_ = false, real_ = false;
  std::string along_;  // what is looked at is an index along so many heads
};

}  // namespace

Uses uses_of(const tl::Program& program, const std::map<std::string, Term>& sizes,
             const Blocks& blocks, bool without_softmax, std::set<std::string> counts,
             Vocabulary& vocabulary) {
  return Walk(program, sizes, blocks, without_softmax, std::move(counts), vocabulary).run();
}

}  // namespace kw::proofs
