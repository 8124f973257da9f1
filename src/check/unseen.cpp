#include "check/unseen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "check/planted.h"
#include "check/turning_points.h"
#include "operator/family.h"
#include "support/threads.h"
#include "tl/laws/laws.h"
#include "tl/traits.h"

namespace kw::check {
namespace {

// Scores of the rows that are evaluated for one number (of a quick check a quarter of them), and
// cases that a program runs on.
constexpr int64_t kWork = 4'000'000;
constexpr size_t kCases = 2;
constexpr int kStatements = 4;  // of a kind: some stand where a toggle leads nowhere

int64_t most_rows(const spec::Form& form, const Case& c) {
  return std::max(spec::value_of(form.M, c.sizes), spec::value_of(form.N, c.sizes));
}

// What a comparison of reals becomes: another at equal ones; one of equality is never true of any.
spec::ExprPtr otherwise(const spec::ExprPtr& e) {
  using spec::binary;
  const spec::ExprPtr &a = e->args[0], &b = e->args[1];
  if (e->name == "<") return binary("<=", a, b);
  if (e->name == "<=") return binary("<", a, b);
  return binary(e->name == "==" ? "<" : "<=", a, a);
}

// The comparisons by which the greater or the lesser of two is chosen: where they are equal, both
// are one.
std::set<std::string> choices_of_one(const spec::ExprPtr& whole) {
  std::set<std::string> out;
  spec::rewrite(whole, [&](const spec::ExprPtr& e) {
    if (e->kind != spec::Kind::where || !spec::is_comparison(e->args[0])) return spec::ExprPtr();
    const std::string a = spec::print(e->args[0]->args[0]), b = spec::print(e->args[0]->args[1]),
                      one = spec::print(e->args[1]), other = spec::print(e->args[2]);
    if ((one == a && other == b) || (one == b && other == a)) out.insert(spec::print(e->args[0]));
    return spec::ExprPtr();
  });
  return out;
}

// What a part of a form may be in its place: an integer one larger; a comparison of reals another
// where they are equal, one of integers true and false, but for masks', of which the proofs speak.
std::vector<spec::ExprPtr> others(const spec::ExprPtr& part, const std::set<std::string>& same,
                                  bool mask) {
  if (part->kind == spec::Kind::number && part->type == spec::Type::integer)
    return {spec::integer(part->integer + 1)};
  if (!spec::is_comparison(part) || same.count(spec::print(part))) return {};
  const bool reals =
      part->args[0]->type == spec::Type::real || part->args[1]->type == spec::Type::real;
  if (reals) return {otherwise(part)};
  if (mask) return {};
  return {spec::boolean(true), spec::boolean(false)};
}

// A form of which one part is another; nothing where there are not so many.
struct Changed {
  spec::Form form;
  int64_t number = 0;
  std::string what, where;  // "1025 for 1024", the expression as it was
  bool compares = false;    // it is a comparison
  bool mask = false;        // of one
  std::set<int64_t> near;   // the integers of that expression
};

std::optional<Changed> changed(const spec::Form& form, int nth) {
  Changed out{.form = form};
  spec::Family::of(form).each_expression(out.form, [&](spec::ExprPtr& e, const spec::Extents&) {
    if (!e) return;
    const std::string before = spec::print(e);
    const std::set<std::string> same = choices_of_one(e);
    const bool mask = std::any_of(form.terms.begin(), form.terms.end(), [&](const spec::Term& t) {
      return t.keep && spec::print(t.keep) == before;
    });
    e = spec::rewrite(e, [&](const spec::ExprPtr& part) -> spec::ExprPtr {
      const std::vector<spec::ExprPtr> all = others(part, same, mask);
      const int which = std::exchange(nth, nth - int(all.size()));
      if (which < 0 || which >= int(all.size())) return nullptr;
      out.compares = part->kind != spec::Kind::number;
      out.number = out.compares ? 0 : part->integer;
      out.what = fmt::format("{} for {}", spec::print(all[size_t(which)]), spec::print(part));
      out.where = before;
      out.mask = mask;
      out.near = written_integers(e);
      return all[size_t(which)];
    });
  });
  return out.where.empty() ? std::nullopt : std::optional(std::move(out));
}

// Whether sums of all the rows that were looked at are further apart than what is accepted.
bool other_sums(const spec::Held& one, const spec::Held& other) {
  for (size_t n = 0; n < one.allowed.size() && n < other.want.size(); ++n)
    if (std::fabs(one.want[n] - other.want[n]) > one.allowed[n]) return true;
  return false;
}

// Inputs of the cases, drawn once: each number is looked for in several.
class Problems {
 public:
  Problems(const spec::Form& form, const std::vector<Case>& cases) : form_(form), cases_(cases) {
    known_.resize(cases.size());
  }

  // Null where there are none.
  std::shared_ptr<const spec::Problem> of(size_t n) {
    const std::lock_guard lock(mutex_);
    if (known_[n]) return known_[n];
    Diagnostics unused;
    auto problem = problem_of(form_, cases_[n], unused);
    if (!problem) return nullptr;
    auto made = std::make_shared<const spec::Problem>(std::move(*problem));
    if (scores_of(form_, cases_[n]) <= kWork / 8) known_[n] = made;
    return made;
  }

 private:
  const spec::Form& form_;
  const std::vector<Case>& cases_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const spec::Problem>> known_;  // of those that are little
};

// Every row: those at the numbers first, where a change of one shows, then the last, which see the
// most keys.
std::vector<int64_t> rows_by(const std::set<int64_t>& numbers, int64_t rows) {
  std::vector<int64_t> out;
  std::set<int64_t> first;
  for (const int64_t number : numbers)
    for (const int64_t i : {number - 1, number, number - 2, number + 1})
      if (i >= 0 && i < rows && first.insert(i).second) out.push_back(i);
  for (int64_t i = rows - 1; i >= 0; --i)
    if (!first.count(i)) out.push_back(i);
  return out;
}

// Whether a row of the case, or a sum of rows, comes out another way.
bool differ(const spec::Form& one, const Changed& change, const Case& c,
            const spec::Problem& problem, int64_t& work) {
  const spec::Form& other = change.form;
  const auto a = spec::truth(one, problem), b = spec::truth(other, problem);
  const std::vector<spec::Output> outputs = spec::outputs(one);
  const int64_t keys = spec::value_of(one.N, c.sizes);
  for (const int64_t i : rows_by(change.near, a->rows()))
    for (int64_t batch = 0; batch < a->batches(); ++batch)
      for (const int64_t h : c.heads) {
        if ((work -= keys) < 0) return false;
        a->row(batch, h, i);
        b->row(batch, h, i);
        for (size_t n = 0; n < outputs.size(); ++n) {
          if (!outputs[n].has_rows() || a->of(n).unspecified) continue;
          const std::vector<double>& got = a->of(n).want;
          if (!spec::accept(outputs[n], b->of(n), got.data(), 0, one.dtype).right) return true;
        }
      }
  for (size_t n = 0; n < outputs.size(); ++n)
    if (outputs[n].rule == spec::Rule::sum && other_sums(a->of(n), b->of(n))) return true;
  return false;
}

// The one whose data are such numbers first, which is little work; then those that reach beyond the
// number, and of these the smallest.
std::vector<size_t> nearest(const spec::Form& form, const std::vector<Case>& cases,
                            int64_t number) {
  std::vector<size_t> order(cases.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t n, size_t m) {
    const Case &a = cases[n], &b = cases[m];
    const bool a_has = a.planted == Planted::compared, b_has = b.planted == Planted::compared;
    if (a_has != b_has) return a_has;
    const bool a_reaches = most_rows(form, a) > number, b_reaches = most_rows(form, b) > number;
    if (a_reaches != b_reaches) return a_reaches;
    return scores_of(form, a) < scores_of(form, b);
  });
  return order;
}

void numbers(const spec::Form& form, const std::vector<Case>& cases, const Options& options,
             Unseen& out) {
  const int64_t most = options.effort == Effort::quick ? kWork / 4 : kWork;
  std::vector<Changed> all;
  while (auto other = changed(form, int(all.size()))) all.push_back(std::move(*other));
  for (const Changed& c : all) ++(c.compares ? out.comparisons : out.numbers);
  Problems problems(form, cases);
  std::vector<char> seen(all.size(), false);
  each_on_threads(std::max(options.threads, 1), all.size(), [&](size_t n) {
    int64_t work = most;
    for (const size_t c : nearest(form, cases, std::abs(all[n].number))) {
      const auto problem = work > 0 ? problems.of(c) : nullptr;
      if (problem && differ(form, all[n], cases[c], *problem, work)) seen[n] = true;
      if (seen[n] || work <= 0) break;
    }
  });
  for (size_t n = 0; n < all.size(); ++n) {
    if (seen[n]) continue;
    out.changes.push_back(fmt::format("{:.80} in {:.80}", all[n].what, all[n].where));
    if (all[n].compares && !all[n].mask) out.undecided.push_back(out.changes.back());
  }
}

// Kinds of statements that a program may lack: what declares, and what says who works, is missed by
// whatever comes after it.
bool is_work(tl::Op op) {
  switch (tl::traits(op).family) {
    case tl::Family::sync:
    case tl::Family::copy_in:
    case tl::Family::copy_out:
    case tl::Family::move:
    case tl::Family::result:
    case tl::Family::contract:
    case tl::Family::map:
    case tl::Family::gather:
    case tl::Family::reduce:
    case tl::Family::loop:
      return true;
    default:
      return op == tl::Op::if_ || op == tl::Op::call || op == tl::Op::count;
  }
}

// Takes a statement of this kind out of a body, after so many others; whether there was one.
bool leave_out(std::vector<tl::Stmt>& body, tl::Op op, int& others) {
  for (size_t n = 0; n < body.size(); ++n) {
    if (body[n].op == op && others-- == 0)
      return body.erase(body.begin() + std::ptrdiff_t(n)), true;
    if (leave_out(body[n].body, op, others)) return true;
  }
  return false;
}

void statements(const tl::Program& program, const spec::Capture& capture, std::vector<Case> cases,
                int threads, Unseen& out) {
  std::stable_sort(cases.begin(), cases.end(), [&](const Case& a, const Case& b) {
    return scores_of(capture.form, a) > scores_of(capture.form, b);
  });
  // Of those that are no work the largest: rings turn over in them.
  std::erase_if(cases, [&](const Case& c) { return scores_of(capture.form, c) > kWork / 8; });
  if (cases.size() > kCases) cases.resize(kCases);
  std::set<tl::Op> kinds;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (is_work(s.op)) kinds.insert(s.op);
  });
  // Whether the laws or a case see that it is not there; nothing where there are not so many.
  const auto seen = [&](tl::Op op, int others) -> std::optional<bool> {
    tl::Program less = program;
    if (!leave_out(less.body, op, others)) return std::nullopt;
    Diagnostics unused;
    if (!tl::verify(less, unused)) return true;
    const std::vector<Trial> trials =
        run_cases([&](const Case& c) { return run_trial(less, capture, c); }, cases, threads);
    return std::any_of(trials.begin(), trials.end(),
                       [](const Trial& t) { return !t.valid || t.failure; });
  };
  out.kinds = int(kinds.size());
  for (const tl::Op op : kinds) {
    std::optional<bool> is = false;
    for (int n = 0; n < kStatements && is && !*is; ++n) is = seen(op, n);
    if (!is || !*is) out.changes.push_back(fmt::format("no {}", tl::word(op)));
  }
}

}  // namespace

Unseen unseen(const tl::Program& program, const spec::Capture& capture,
              const std::vector<Case>& cases, const Options& options) {
  Unseen out;
  numbers(capture.form, cases, options, out);
  if (options.leave_out) statements(program, capture, cases, std::max(options.threads, 1), out);
  return out;
}

std::string print(const Unseen& u) {
  std::vector<std::string> all;
  const auto count = [&](int n, const char* what) {
    if (n > 0) all.push_back(fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"));
  };
  count(u.numbers, "number");
  count(u.comparisons, "comparison");
  if (u.kinds > 0) all.push_back(fmt::format("{} kinds of statements", u.kinds));
  if (all.empty()) return "changed in turn: nothing, the function has no number";
  const std::string of = fmt::format("{}", fmt::join(all, ", "));
  if (u.changes.empty()) return fmt::format("changed in turn: {}; the cases see each", of);
  return fmt::format("changed in turn: {}; the cases do not see: {}", of,
                     fmt::join(u.changes, "; "));
}

}  // namespace kw::check
