#include "proofs/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "proofs/heads.h"
#include "proofs/solver/sexpr.h"
#include "tl/scope/functions.h"
#include "tl/scope/scope.h"

namespace kw::proofs {

using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

const Blocks& blocks_of_queries() {
  static const Blocks of{"m", "h", "M", "H", "BM", "N", false};
  return of;
}

const Blocks& blocks_of_keys() {
  static const Blocks of{"n", "g", "N", "G", "BN", "M", true};
  return of;
}

// ---- the module
Scope Names::module() {
  address_ = true;  // how many blocks and words there are: memory is the limit
  Scope scope;
  for (const auto& [name, term] : sizes_) scope.names[name] = {term, {}};
  for (const Stmt& s : program_.body) of_module(s, scope);
  for (const auto& [tensor, letters] : dims_)
    for (const std::string& letter : letters) {
      const Term extent = named(letter, scope);
      extents_[tensor].push_back(extent.sort == Term::integer ? extent.text : "");
    }
  for (const Stmt& s : program_.body)
    if (s.op == Op::lists) find_list(s, scope);
  address_ = false;
  return scope;
}

std::string Names::type_of(const std::string& tensor) const {
  const auto found = data_.find(tensor);
  return found == data_.end() ? "" : found->second.type;
}

std::string Names::user_of(const std::string& tensor) const {
  const auto found = data_.find(tensor);
  return found == data_.end() ? tensor : found->second.user;
}

const Stmt* Names::function_of(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

void Names::of_module(const Stmt& s, Scope& scope) {
  if (s.op == Op::param || s.op == Op::toggle)
    for (const tl::Item& d : s.names()) scope.names[d.name] = {eval(d.expr, scope), {}};
  if (s.op == Op::args)
    for (const Stmt& a : s.body) argument(a, scope);
  if (s.op == Op::record)
    for (const tl::Item& f : s.names()) records_[s.name()].push_back(f.name);
  if (s.op == Op::def) functions_[s.name()] = &s;
}

void Names::argument(const Stmt& s, Scope& scope) {
  for (const tl::Item& d : s.names()) {
    std::string user = d.name;
    if (user.ends_with(spec::kGiven)) user.resize(user.size() - spec::kGiven.size());
    if (s.op == Op::arg_tensor || s.op == Op::arg_tiled) {
      data_[d.name] = {user, s.items(tl::Hole::access)[0].type};
      std::vector<std::string> letters;
      for (const tl::Item& dim : s.dims()) letters.push_back(dim.name);
      dims_.push_back({user, letters});
    } else if (s.op == Op::arg_scratch) {
      data_[d.name] = {d.name, "i32"};
      scratch_.insert(d.name);
    } else if (s.op == Op::arg_f32) {
      scope.names[d.name] = {{Term::real, ""}, {}};
    } else if (s.op == Op::arg_size || s.op == Op::arg_i32) {
      const bool of_form = scope.names.count(d.name) > 0;
      if (!of_form)
        scope.names[d.name] = {d.expr ? eval(d.expr, scope) : vocabulary_.scalar(user), {}};
      else if (d.expr)
        computed_sizes_.push_back({d.name, eval(d.expr, scope), s.span});
    }
  }
}

// ---- expressions
Term Names::eval(const ExprPtr& e, const Scope& scope) {
  constexpr size_t kLongest = 1 << 18;
  Term out = formula(e, scope);
  return out.text.size() > kLongest ? Term::unknown("an integer of too many operations") : out;
}

Term Names::formula(const ExprPtr& e, const Scope& scope) {
  switch (e->kind) {
    case ExprKind::integer:
      return Term::number(std::stoll(e->text));
    case ExprKind::real:
      return {Term::real, ""};
    case ExprKind::name:
      return named(e->text, scope);
    case ExprKind::field:
      return field(*e, scope);
    case ExprKind::index:
      return element(*e, scope);
    case ExprKind::call:
      return called(*e, scope).term;
    case ExprKind::binary: {
      const Term a = eval(e->args[0], scope), b = eval(e->args[1], scope);
      std::optional<Term> half = of_pair(e->text, a, b);
      if (!half && e->text == "//") half = heads_a_group(a, b);
      const Term t = half ? *half : operation(e->text, a, b);
      const bool widens = e->text == "+" || e->text == "-" || e->text == "*" || e->text == "<<";
      if (widens) may_widen(t.text.starts_with("(bits.left") ? shifted_left(a, b) : t, scope);
      if ((e->text == "//" || e->text == "%") && !is_literal(b.text)) may_widen(b, scope, 1);
      return t;
    }
    case ExprKind::unary: {
      const Term a = eval(e->args[0], scope);
      if (e->text == "not") return negation(a);
      const Term t = operation("-", Term::number(0), a);
      if (e->args[0]->kind != ExprKind::integer) may_widen(t, scope);
      return t;
    }
    case ExprKind::where:
      return chosen(*e, scope);
  }
  return Term::unknown("an expression");
}

// What is not chosen is not computed.
Term Names::chosen(const Expr& e, const Scope& scope) {
  const Term condition = eval(e.args[0], scope);
  if (condition.sort != Term::boolean)
    return choice(condition, eval(e.args[1], scope), eval(e.args[2], scope));
  const auto under = [&](const Term& holds, const ExprPtr& value) {
    Scope inside = scope;
    inside.premises.push_back(holds.text);
    return eval(value, inside);
  };
  return choice(condition, under(condition, e.args[1]), under(negation(condition), e.args[2]));
}

// The other operators give what is no wider than what it is made of.
void Names::may_widen(const Term& t, const Scope& scope, int64_t least) {
  if (t.sort == Term::integer && !address_) computed(t, scope, least);
}

// A parameter, a result or a field of this type.
void Names::is_of(const std::string& type, const Term& t, const Scope& scope) {
  if (type == "index" && !is_literal(t.text)) may_widen(t, scope, 0);
}

Term Names::named(const std::string& name, const Scope& scope) const {
  if (name == "true" || name == "false") return Term::truth(name == "true");
  const auto found = scope.names.find(name);
  if (found != scope.names.end()) return found->second.term;
  return tl::find_constant(name) ? Term{Term::real, ""}
                                 : Term::unknown(fmt::format("the name {}", name));
}

Term Names::field(const Expr& e, const Scope& scope) {
  Value record;
  if (e.args[0]->kind == ExprKind::name) {
    const auto found = scope.names.find(e.args[0]->text);
    if (found != scope.names.end()) record = found->second;
  } else if (e.args[0]->kind == ExprKind::call) {
    record = called(*e.args[0], scope);
  }
  const auto found = record.fields.find(e.text);
  return found != record.fields.end() ? found->second
                                      : Term::unknown(fmt::format("the field {}", e.text));
}

// Of a tensor, of a vector, or of the scores themselves.
Term Names::element(const Expr& e, const Scope& scope) {
  const std::string base = tl::base_name(std::make_shared<Expr>(e));
  if (const auto vector = scope.names.find(base); vector != scope.names.end())
    return vector->second.term;
  const auto data = data_.find(base);
  if (data == data_.end()) return {Term::real, ""};
  const std::string& type = data->second.type;
  const bool truth = type == "bool";
  if (!truth && tl::scalar_type(type).kind != tl::Type::integer) return {Term::real, ""};
  std::vector<Term> at;
  address_ = scratch_.count(base) > 0;
  for (size_t n = 1; n < e.args.size(); ++n) at.push_back(eval(e.args[n], scope));
  address_ = false;
  if (scratch_.count(base))
    return words_ && words_->scratch == base && at.size() == 1
               ? word_of_list(at[0])
               : Term::unknown(fmt::format("what stands in {}", base));
  return vocabulary_.read(data->second.user, truth, at);
}

// `list_blocks visits[w * list_words] ...`: lists lie one behind the other.
void Names::find_list(const Stmt& pass, const Scope& scope) {
  for (const Stmt& s : pass.body) {
    if (s.op != Op::list_blocks) continue;
    const ExprPtr& at = s.at();
    const Term groups = eval(s.groups(), scope);
    const bool formed = at->kind == ExprKind::binary && at->text == "*" &&
                        at->args[0]->is_name(pass.index().c_str()) &&
                        !tl::mentions(at->args[1], pass.index()) && is_literal(groups.text);
    if (!formed) return open(fmt::format("where a list begins, `{}`", tl::print(at)));
    words_ =
        ListWords{s.scratch()->text, eval(at->args[1], scope).text, std::stoll(groups.text), {}};
    for (const ExprPtr& e : {at->args[1], pass.count()})
      if (e->kind == ExprKind::name) words_->sizes.insert(e->text);
  }
}

// Which word of which list an address is: list * stride + offset, and a key block's place behind
// the numbers before them. Where the offset is not written that way, nothing is known of it.
Term Names::word_of_list(const Term& at) {
  if (at.sort != Term::integer) return at;
  std::vector<Sexpr> offsets;
  Sexpr e = read_term(at.text);
  for (; e.is("+", 2); e = Sexpr(e.parts[1])) offsets.insert(offsets.begin(), e.parts[2]);
  if (!e.is("*", 2) || print(e.parts[2]) != words_->stride)
    return Term::unknown(fmt::format("the word {} of a list", at.text));
  const std::string list = print(e.parts[1]);
  if (list_.empty()) list_ = list;
  if (list_ != list) return Term::unknown("two lists for one block");
  if (offsets.size() == 1 && offsets[0].is("+", 2) && is_literal(print(offsets[0].parts[1])))
    offsets = {offsets[0].parts[1], offsets[0].parts[2]};
  int64_t before = 0;
  const int64_t header = 2 + words_->groups;
  size_t n = 0;
  for (; n < offsets.size() && before < header && is_literal(offsets[n].atom); ++n)
    before += std::stoll(offsets[n].atom);
  const auto rest = [&] {
    std::string sum = n < offsets.size() ? print(offsets[n++]) : "0";
    for (; n < offsets.size(); ++n) sum = fmt::format("(+ {} {})", sum, print(offsets[n]));
    return Term{Term::integer, sum};
  };
  if (before == header) return vocabulary_.apply("list.at", rest());
  if (n == offsets.size() && before == 0) return vocabulary_.constant("list.count");
  if (n == offsets.size() && before == 1) return vocabulary_.constant("list.full");
  if (n == offsets.size() && before < header)
    return vocabulary_.apply("list.group", Term::number(before - 2));
  if (before == 2 && n + 1 == offsets.size()) return vocabulary_.apply("list.group", rest());
  return Term::unknown(fmt::format("the word {} of a list", at.text));
}

// A function of the program is what its body says of the arguments.
Value Names::called(const Expr& e, const Scope& scope) {
  std::vector<Term> given;
  const auto def = functions_.find(e.text);
  if (def == functions_.end() && (e.text == "least" || e.text == "greatest"))
    return {extreme(e, scope), {}};
  if (def == functions_.end()) {
    for (const ExprPtr& a : e.args) given.push_back(eval(a, scope));
    if (e.text == "f32") return {{Term::real, ""}, {}};
    const Term t = function(e.text, given);
    if (e.text == "abs") may_widen(t, scope);
    if (e.text == "ceil_div" && given.size() == 2) {
      may_widen(operation("+", given[0], given[1]), scope);
      if (!is_literal(given[1].text)) may_widen(given[1], scope, 1);
    }
    return {t, {}};
  }
  const Stmt& f = *def->second;
  Scope inside = scope;
  for (size_t n = 0; n < e.args.size() && n < f.params().size(); ++n) {
    const ExprPtr& a = e.args[n];
    const auto record = a->kind == ExprKind::name ? scope.names.find(a->text) : scope.names.end();
    Value& value = inside.names[f.params()[n].name];
    if (record != scope.names.end())
      value = record->second;
    else
      value = a->kind == ExprKind::call ? called(*a, scope) : Value{eval(a, scope), {}};
    if (value.fields.empty()) is_of(f.params()[n].type, value.term, scope);
  }
  for (const Stmt& s : f.body) {
    if (s.op == Op::let) let(s, inside);
    if (s.op != Op::return_) continue;
    const auto fields = records_.find(f.result());
    if (fields == records_.end()) {
      const Term value = eval(s.values()[0].expr, inside);
      is_of(f.result(), value, inside);
      return {value, {}};
    }
    Value record;
    for (size_t n = 0; n < fields->second.size(); ++n) {
      const Term value = eval(s.values()[n].expr, inside);
      is_of("index", value, inside);  // as all fields are
      record.fields[fields->second[n]] = value;
    }
    return record;
  }
  return {Term::unknown(fmt::format("the function {}", e.text)), {}};
}

// Of a loop, or for every statement of the kernel.
void Names::bind_below(const std::string& name, const Term& end, Scope& scope,
                       std::vector<std::string>& premises) {
  // Agents have one symbol in every walk, if as many: so two walks' terms may be compared.
  const bool agent = &premises == &of_all_ && is_literal(end.text);
  const Term t = agent ? vocabulary_.constant(fmt::format("{}.of.{}", name, end.text))
                       : vocabulary_.fresh(name);
  scope.names[name] = {t, {}};
  if (agent) agents_.insert(t.text);
  if (end.sort == Term::integer)
    premises.push_back(in_range(t.text, end.text));
  else
    open(end.text);
}

void Names::bind_role(const std::string& me, Scope& scope) {
  const Term all = named("WARPGROUPS", scope);
  bind_below(me, all, scope, of_all_);
}

bool Names::is_of_agents(const Term& condition) const {
  return condition.sort == Term::boolean && mentions_only(read_term(condition.text), agents_);
}

// A block of the output, whichever it is: its rows, head and batch entry lie in it.
bool Names::is_block(const Expr& e) const {
  const auto def = e.kind == ExprKind::call ? functions_.find(e.text) : functions_.end();
  return def != functions_.end() && is_block_function(*def->second);
}

bool Names::is_block_function(const Stmt& def) const {
  const auto fields = records_.find(def.result());
  return def.params().size() == 1 && def.params()[0].type == "index" && fields != records_.end() &&
         fields->second == std::vector<std::string>{sides_.row, sides_.head, "b"};
}

void Names::block(const std::string& name, Scope& scope) {
  Value c;
  const std::string rows = sides_.row;
  for (const std::string& f : {rows, std::string(sides_.head), std::string("b")})
    c.fields[f] = vocabulary_.constant("block." + f);
  const auto below = [&](const std::string& f, const std::string& size) {
    const Term end = named(size, scope);
    if (end.sort != Term::integer) return open(end.text);
    of_all_.push_back(fmt::format("(and (<= 0 block.{0}) (< block.{0} {1}))", f, end.text));
  };
  below(sides_.head, sides_.heads);
  below("b", "B");
  const Term first = operation("*", c.fields[rows], named(sides_.tile, scope)),
             end = named(sides_.rows, scope);
  if (first.sort != Term::integer || end.sort != Term::integer) return open("the rows of a block");
  of_all_.push_back(fmt::format("(and (<= 0 block.{}) (< {} {}))", rows, first.text, end.text));
  scope.names[name] = std::move(c);
}

void Names::let(const Stmt& s, Scope& scope) {
  for (const tl::Item& d : s.names()) {
    if (is_block(*d.expr))
      block(d.name, scope);
    else if (d.expr->kind == ExprKind::call)
      scope.names[d.name] = called(*d.expr, scope);
    else
      scope.names[d.name] = {eval(d.expr, scope), {}};
  }
}

const Stmt* Names::enter(const Stmt& call, Scope& scope) {
  const auto step = steps_.find(call.name());
  if (step == steps_.end()) {
    open(fmt::format("the step {}", call.name()));
    return nullptr;
  }
  const Scope outside = scope;
  const auto& params = step->second->params();
  for (size_t n = 0; n < params.size() && n < call.arguments().size(); ++n) {
    const ExprPtr& given = call.arguments()[n].expr;
    const Term t = eval(given, outside);
    if (sides_.of_keys && !pairs_ && params[n].type == "index") find_pairs(t);
    scope.names[params[n].name] = {params[n].type == "index" ? as_pair(t, scope) : t, {}};
  }
  return step->second;
}

// ---- pairs of a head and a block of queries
std::string Names::Pairs::last() const {
  return alone ? fmt::format("(- {} 1)", count) : fmt::format("(- (* {} {}) 1)", heads, count);
}

// heads * count - 1, or less: the number of a pair, counted from the last. Of one head a group it
// is count - 1.
bool Names::find_pairs(const Term& begin) {
  if (begin.sort != Term::integer) return false;
  Sexpr e = read_term(begin.text);
  if (!e.is("-", 2)) return false;
  while (e.is("-", 2) && is_literal(print(e.parts[2]))) e = Sexpr(e.parts[1]);
  const auto named = sizes_.find(heads::kLetter);
  const std::string ratio = named == sizes_.end()
                                ? operation("//", sizes_.at("H"), sizes_.at("G")).text
                                : named->second.text;
  const auto is_ratio = [&](const Sexpr& x) { return print(x) == ratio; };
  const bool grouped = e.is("*", 2) && is_ratio(e.parts[1]) && !is_ratio(e.parts[2]),
             alone = ratio == "1" && !is_literal(print(e));
  if (!grouped && !alone) return false;
  const Term heads = Term::an_int(grouped ? print(e.parts[1]) : "1"),
             count = Term::an_int(print(grouped ? e.parts[2] : e));
  if (pairs_)
    return pairs_->heads == heads.text && pairs_->count == count.text && pairs_->alone == !grouped;
  pairs_ = Pairs{heads.text, count.text, !grouped};
  const Term head = vocabulary_.constant(pairs::kHead), place = vocabulary_.constant(pairs::kPlace),
             own = vocabulary_.constant("block.h");
  of_all_.push_back(in_range(head.text, heads.text));
  of_all_.push_back(fmt::format("(=> (<= 1 {}) {})", count.text, in_range(place.text, count.text)));
  of_all_.push_back(
      fmt::format("(= {} (+ (* block.{} {}) {}))", own.text, sides_.head, heads.text, head.text));
  if (!is_literal(heads.text)) {  // what the solver would have to find of products of symbols
    of_all_.push_back(fmt::format("(<= (+ (* block.{0} {1}) {1}) {2})", sides_.head, heads.text,
                                  sizes_.at("H").text));
    of_all_.push_back(fmt::format("(=> (<= 0 {1}) (<= 0 (* {0} {1}) (* {2} {1})))", heads.text,
                                  count.text, heads::kMostOfAGroup));
  }
  return true;
}

bool Names::bind_pairs(Term& x, const Term& begin) {
  if (!find_pairs(begin)) return false;
  if (pairs_->alone) x = vocabulary_.constant(pairs::kPlace);
  turns_[x.text] = "";
  return true;
}

// What a step is given for the number of a pair. Of another turn than this one, x + 1, nothing is
// known but that it is one of the pairs, if it is. Of one head a group it is the place itself.
Term Names::as_pair(const Term& x, Scope& scope) {
  if (!pairs_ || x.sort != Term::integer || turns_.count(x.text)) return x;
  const bool first = x.text == pairs_->last();
  if (pairs_->alone) return first ? vocabulary_.constant(pairs::kPlace) : x;
  const Term own = first ? vocabulary_.constant(pairs::kFirst) : vocabulary_.fresh("turn.other");
  scope.premises.push_back(fmt::format("(= {} {})", own.text, x.text));
  turns_[own.text] = first ? "" : own.text.substr(4);
  return own;
}

// H // G, by its own symbol where these are symbols (heads.h).
std::optional<Term> Names::heads_a_group(const Term& a, const Term& b) const {
  const auto ratio = sizes_.find(heads::kLetter);
  if (ratio == sizes_.end() || a.text != sizes_.at("H").text || b.text != sizes_.at("G").text)
    return std::nullopt;
  return ratio->second;
}

// x // count and x % count, or the other way round.
std::optional<Term> Names::of_pair(const std::string& op, const Term& x, const Term& by) {
  if (!pairs_ || (op != "//" && op != "%")) return std::nullopt;
  const auto turn = turns_.find(x.text);
  if (turn == turns_.end() || (by.text != pairs_->count && by.text != pairs_->heads))
    return std::nullopt;
  const std::string head_by = by.text == pairs_->count ? "//" : "%";
  if (head_by_.empty()) head_by_ = head_by;
  if (head_by_ != head_by) return Term::unknown("turns that are counted in two ways");
  const bool head = op == head_by;
  const std::string name = (head ? pairs::kHead : pairs::kPlace) + turn->second;
  const Term t = vocabulary_.constant(name);
  if (!turn->second.empty() && others_.insert(name).second)
    of_all_.push_back(fmt::format("(=> (and (<= 0 {0}) (<= {0} {1})) {2})", x.text, pairs_->last(),
                                  in_range(name, head ? pairs_->heads : pairs_->count)));
  return t;
}

bool Names::takes_exponential(const ExprPtr& value) {
  bool found = false;
  tl::rewrite(value, [&](const ExprPtr& e) {
    found |= e->kind == ExprKind::call && e->text == "exp2";
    return ExprPtr();
  });
  return found;
}

void Names::bind_element(Scope& scope) {
  const Term i = vocabulary_.constant("i"), j = vocabulary_.constant("j");
  scope.names["i"] = {i, {}};
  scope.names["j"] = {j, {}};
  scope.names["d"] = {operation("-", j, i), {}};
}

void Names::bind_block(const Stmt& loop, Scope& scope) {
  for (const tl::Hole hole : {tl::Hole::use, tl::Hole::index})
    if (loop.has(hole)) {
      const std::string& name = loop.items(hole)[0].name;
      scope.names[name] = {vocabulary_.fresh(name), {}};
    }
}

void Names::declare_flags(const Stmt& s) {
  for (const tl::Item& d : s.names()) flags_.insert(d.name);
}

bool Names::on_flag(const ExprPtr& e) const {
  return std::any_of(flags_.begin(), flags_.end(),
                     [&](const std::string& f) { return tl::mentions(e, f); });
}

bool Names::possible(const ExprPtr& e, const Scope& scope) {
  if (e->kind == ExprKind::binary && e->text == "and")
    return possible(e->args[0], scope) && possible(e->args[1], scope);
  return on_flag(e) || !eval(e, scope).is("false");
}

bool is_minus_infinity(const ExprPtr& e) {
  return e->is_name("-inf") ||
         (e->kind == ExprKind::unary && e->text == "-" && e->args[0]->is_name("inf"));
}

ExprPtr value_of_row(const Stmt& s) {
  if (s.op != tl::Op::dot_row) return s.has(tl::Hole::value) ? s.value() : nullptr;
  const std::vector<ExprPtr> at = {s.batch(), s.head(), s.row(), tl::name("j")};
  return tl::binary("*", tl::index(s.src(), at), tl::index(s.tensor(), at));
}

bool is_zero(const ExprPtr& e) {
  return (e->kind == ExprKind::real || e->kind == ExprKind::integer) && std::stod(e->text) == 0;
}

}  // namespace kw::proofs
