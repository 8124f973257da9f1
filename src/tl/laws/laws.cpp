// The walk that asks every statement's law, with real scopes, and the table of laws.
#include "tl/laws/laws.h"

#include <algorithm>
#include <bit>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

using LawFunction = void (*)(Check&);
constexpr LawFunction kLaws[] = {
#define OP(word, level, where, holds, ...) law_##word,
#include "tl/ops.def"
};

class Walk {
 public:
  Walk(Facts& facts, Diagnostics& diagnostics) : facts_(facts), diagnostics_(diagnostics) {}

  void block(const std::vector<Stmt>& body, Scope& scope) {
    for (const Stmt& s : body) {
      Check check{s, scope, parents_, facts_, diagnostics_};
      if (in_sketch(check)) {
        judge_sketched(check, made_);
        if (s.op == Op::grid) law_grid(check);
      } else if (operands_are_right(check)) {
        expressions_have_types(check);
        kLaws[static_cast<size_t>(s.op)](check);
      } else {
        facts_.incomplete = true;
      }
      inner(s, scope, check);
    }
  }

 private:
  void inner(const Stmt& s, Scope& scope, Check& check) {
    const Block holds = row(s.op).holds;
    if (holds == Block::args || holds == Block::shared) {
      parents_.push_back(&s);
      block(s.body, scope);
      parents_.pop_back();
      return;
    }
    if (holds == Block::body) {
      Scope within(&scope);
      declare_inside(within, s);
      names_are_unique(check, within, 0);
      parents_.push_back(&s);
      block(s.body, within);
      parents_.pop_back();
    }
    const size_t before = scope.symbols().size();
    declare(scope, s);
    names_are_unique(check, scope, before);
  }

  Facts& facts_;
  Diagnostics& diagnostics_;
  std::vector<const Stmt*> parents_;
  std::set<std::string> made_;  // by the statements of a sketch
};

}  // namespace

const std::vector<Law>& laws() {
  static const std::vector<Law> all = {
#define LAW(word, label, sentence) {#word "." #label, sentence},
#include "tl/laws/laws.def"
  };
  return all;
}

const Law* law(std::string_view id) {
  for (const Law& l : laws())
    if (l.id == id) return &l;
  return nullptr;
}

bool verify(const Program& program, Diagnostics& diagnostics) {
  Diagnostics found;
  Facts facts;
  Scope module;
  Walk(facts, found).block(program.body, module);
  judge_module(program, facts, found);
  // Paths are followed only where every statement is right by itself.
  if (!found.has_errors())
    walk(program.body, [&](const Stmt& s) {
      if (s.op == Op::warpgroups || s.op == Op::warpgroups_kernel) judge_flow(s, facts, found);
      if (s.op != Op::warpgroup) return;
      for (const Stmt& thread : s.body)
        if (thread.op == Op::thread) judge_storing_thread(thread, facts, found);
    });
  std::vector<Diagnostic> sorted = found.all();
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return a.span.begin < b.span.begin;
  });
  for (Diagnostic& d : sorted) diagnostics.add(std::move(d));
  return !found.has_errors();
}

Diagnostic& Check::broken(const char* label, Span span, std::string message) {
  return broken_as(std::string(word(stmt.op)).c_str(), label, std::move(span), std::move(message));
}

Diagnostic& Check::broken_as(const char* family, const char* label, Span span,
                             std::string message) {
  const std::string code = fmt::format("{}.{}", family, label);
  const Law* broken_law = law(code);
  Diagnostic& d = diagnostics.error(code, span.known() ? span : stmt.span, std::move(message));
  if (broken_law) d.hint = fmt::format("the law: {}", broken_law->text);
  return d;
}

const Stmt* Check::inside(Op op) const {
  for (auto p = parents.rbegin(); p != parents.rend(); ++p)
    if ((*p)->op == op) return *p;
  return nullptr;
}

const Stmt* Check::warpgroups_block() const {
  const Stmt* warpgroups = inside(Op::warpgroups);
  return warpgroups ? warpgroups : inside(Op::warpgroups_kernel);
}

uint32_t Check::who() const {
  const int64_t warpgroups = facts.warpgroups_are_known() ? facts.warpgroups() : 1;
  uint32_t all = (1u << warpgroups) - 1;
  for (const Stmt* p : parents)
    for (const auto& [branch, role] : facts.roles)
      if (branch == p) all &= role;
  return all;
}

int64_t Check::warps() const { return 4 * std::popcount(who()); }

Agent Check::agent() const {
  if (const Stmt* warpgroups = warpgroups_block()) {
    // Of one role there may be several branches: the first stands for all.
    const bool some = std::any_of(parents.begin(), parents.end(), [&](const Stmt* p) {
      return std::any_of(facts.roles.begin(), facts.roles.end(),
                         [&](const auto& r) { return r.first == p; });
    });
    const auto role = std::find_if(facts.roles.begin(), facts.roles.end(),
                                   [&](const auto& r) { return r.second == who(); });
    return some && role != facts.roles.end() ? role->first : warpgroups;
  }
  if (inside(Op::warpgroup)) return inside(Op::thread);
  return nullptr;
}

const Symbol* Check::find(const ExprPtr& e) const {
  const std::string base = base_name(e);
  return base.empty() ? nullptr : scope.find(base);
}

std::optional<int64_t> Check::constant(const ExprPtr& e) const {
  if (!e) return std::nullopt;
  const Interval range = interval_of(e, scope);
  if (range.lo != range.hi) return std::nullopt;
  return range.lo;
}

std::optional<int64_t> Check::extent(const Symbol* tile, size_t axis) const {
  if (!tile || tile->shape.size() <= axis) return std::nullopt;
  return constant(tile->shape[axis]);
}

}  // namespace kw::tl
