#include "check/far_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "check/family.h"
#include "check/planted.h"
#include "check/program_numbers.h"
#include "operator/family.h"

namespace kw::check {
namespace {

// Arguments of reals that sinks read, and scores, masks and the epilogue do not.
std::set<std::string> sinks_of(const spec::Form& form) {
  std::set<std::string> sinks, others, out;
  for (const spec::Term& t : form.terms) {
    add_reads(t.sink, sinks);
    for (const spec::ExprPtr& e : {t.score, t.keep, t.factor}) add_reads(e, others);
    for (const spec::Operand* o : operands(t)) others.insert(o->argument);
  }
  add_reads(form.epilogue, others);
  for (const std::string& name : sinks)
    if (const spec::Argument* a = form.argument(name); a && is_float(a->dtype))
      if (!others.count(name)) out.insert(name);
  return out;
}

// Queries of one sign and keys of the other, or of one, so that scores lie around `score` with a
// scale of 1 / sqrt(D); what is neither or both stays as drawn. Sinks around `sink`.
void plant_scores(const spec::Form& form, spec::Problem& problem, double score, double sink) {
  std::map<std::string, double> factors;
  std::set<std::string> keys;
  for (const spec::Term& t : form.terms) {
    const auto away = [&](const spec::Operand& q, const spec::Operand& k, int64_t D) {
      const double drawn = mean_size(problem.tensors.at(q.argument)) *
                           mean_size(problem.tensors.at(k.argument)) * std::sqrt(double(D));
      factors[q.argument] = score / (drawn * double(1 + t.more.size()));
      keys.insert(k.argument);
    };
    away(t.q, t.k, form.D.constant);
    for (const spec::FurtherProduct& m : t.more) away(m.q, m.k, m.D);
  }
  for (const auto& [name, factor] : factors) {
    Tensor& t = problem.tensors.at(name);
    if (!keys.count(name))
      for (double& x : t.values) x = drawn(t.dtype, std::abs(x) * factor);
  }
  for (const std::string& name : keys)
    for (double& x : problem.tensors.at(name).values) x = std::abs(x);
  for (const std::string& name : sinks_of(form)) {
    if (const auto t = problem.tensors.find(name); t != problem.tensors.end())
      for (double& x : t->second.values) x = drawn(t->second.dtype, sink + x);
    if (const auto x = problem.scalars.find(name); x != problem.scalars.end()) x->second += sink;
  }
}

// How many keys a tile of the program's has.
int64_t tile_of(const tl::Program& program) {
  int64_t tile = 128;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (s.op != tl::Op::param) return;
    for (const tl::Item& item : s.names())
      if (item.name == "BN" && item.expr && item.expr->kind == tl::ExprKind::integer)
        tile = std::stoll(item.expr->text);
  });
  return tile;
}

// A head of each of the case's groups.
void keep_a_head_of_each(const spec::Form& form, Case& c) {
  if (c.heads.size() < 2 || !spec::heads_are_alike(form)) return;
  c.heads = {c.heads.front(), c.heads.back()};
}

}  // namespace

bool all_softmax(const spec::Form& form) {
  return !form.terms.empty() &&
         std::all_of(form.terms.begin(), form.terms.end(),
                     [](const auto& t) { return t.normaliser == spec::Normaliser::softmax; });
}

bool has_drawn_sinks(const spec::Form& form) { return !sinks_of(form).empty(); }

void plant_below(const spec::Form& form, spec::Problem& problem) {
  plant_scores(form, problem, -175, -150);
}

void plant_above(const spec::Form& form, spec::Problem& problem) {
  plant_scores(form, problem, 80, 100);
}

bool lies_below(const spec::Form& form, const Case& c) {
  Diagnostics ignored;
  const auto problem = problem_of(form, c, ignored);
  if (!problem) return false;
  spec::Evaluator evaluator(form, *problem);
  std::vector<double> output(evaluator.value_dim());
  for (int64_t i = 0; i < evaluator.queries(); ++i) {
    const double lse = evaluator.row(0, c.heads[0], i, output.data());
    if (std::isfinite(lse)) return lse < -100 && lse > -2000;
  }
  return false;
}

std::vector<Case> cases_of_tails(const tl::Program& program, const spec::Capture& capture,
                                 const Options& options) {
  constexpr uint64_t kSalt = 50000;
  constexpr int64_t kBehind = 65;  // queries behind all keys of the last tile: a tile and one more
  const spec::Form& form = capture.form;
  std::vector<Case> cases;
  if (!Family::of(form).hides_keys_past_the_end(form) || !all_softmax(form)) return cases;
  if (form.N.name.empty() || capture.cases.empty()) return cases;
  const int64_t tile = tile_of(program);
  const auto add = [&](int64_t block, int64_t past_the_end, bool of_more) {
    const int64_t end = (block + 1) * tile;
    Case c = case_of(capture, of_more ? 2 : 1, end + kBehind, end - past_the_end,
                     kSalt + cases.size() + (options.rehearsal << 20));
    choose_heads(form, c, false);
    keep_a_head_of_each(form, c);
    if (!of_more) keep_one_head(form, c);
    c.planted = Planted::below;
    c.grid = 1 + int(cases.size() % 3);
    cases.push_back(std::move(c));
  };
  add(0, 1, true);
  if (!lies_below(form, cases[0])) return {};
  if (options.effort == Effort::quick) return cases;
  std::set<int64_t> done = {1, tile / 2, tile - 1};
  add(1, 1, false);
  add(2, 1, false);
  add(0, tile / 2, false);
  add(1, tile / 2, false);
  add(1, tile - 1, false);
  for (const int64_t number : numbers_of(program).numbers)
    if (number > 4 && number < tile && done.insert(number).second) add(0, number, false);
  return cases;
}

}  // namespace kw::check
