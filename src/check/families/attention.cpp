// The check of attention: operands q, k and v, key blocks, and the statement that differs first.
//
// Which key blocks run is decided by the function behind a key loop's bounds. For everything else
// the failing case runs once more, watched.
#include "check/families/attention.h"

#include <algorithm>

#include "check/planted.h"
#include "operator/evaluate/evaluate.h"

namespace kw::check::families {

using spec::Form;
using spec::Kind;
using spec::Operand;
using spec::Problem;
using tl::Op;
using tl::Stmt;

namespace {

// Elements of argument[indices]: how far apart neighbours in b, head, row and d are. Of pages,
// which a kernel has where others have the batch, neighbours among pages and in one.
struct Strides {
  int64_t b = 0, head = 0, row = 0, d = 0;
};

Strides strides_of(const Operand& operand, const Tensor& t, const char* row) {
  const std::optional<spec::Pages> pages = spec::pages_of(operand);
  Strides s;
  int64_t stride = t.count();
  for (size_t n = 0; n < operand.indices.size(); ++n) {
    stride = t.shape[n] ? stride / t.shape[n] : 0;
    const spec::ExprPtr& e = operand.indices[n];
    if (pages && (n == pages->page || n == pages->row)) {
      (n == pages->page ? s.b : s.row) = stride;
      continue;
    }
    if (e->kind == Kind::binary) s.head = stride;  // h // (H // G): the key head
    if (e->kind != Kind::index) continue;
    (e->name == "b" ? s.b : e->name == "h" ? s.head : e->name == row ? s.row : s.d) = stride;
  }
  return s;
}

// The heads of a further product's operand that a case runs: those of queries, of keys, or its one.
std::vector<int64_t> own_heads(const Operand& operand, const std::vector<int64_t>& query_heads,
                               const std::vector<int64_t>& key_heads) {
  const spec::ExprPtr head = spec::head_of(operand);
  return !head ? std::vector<int64_t>{0} : head->kind == Kind::binary ? key_heads : query_heads;
}

// What decides which key blocks run: the return of the function behind the bounds of a key loop.
const Stmt* range_statement(const tl::Program& program) {
  std::string keys, def;
  const Stmt* found = nullptr;
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::range_down_counted || !keys.empty()) return;
    tl::rewrite(s.begin(), [&](const tl::ExprPtr& e) {
      if (e->kind == tl::ExprKind::field) keys = e->args[0]->text;
      return tl::ExprPtr();
    });
  });
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::let) return;
    for (const tl::Item& d : s.names())
      if (d.name == keys && d.expr->kind == tl::ExprKind::call) def = d.expr->text;
  });
  for (const Stmt& s : program.body)
    if (s.op == Op::def && s.name() == def)
      tl::walk(s.body, [&](const Stmt& r) {
        if (r.op == Op::return_) found = &r;
      });
  return found;
}

}  // namespace

Tensor gather(const Operand& operand, const Problem& problem, const char* row,
              const std::vector<int64_t>& heads, int64_t B, int64_t rows, int64_t D) {
  const Tensor& from = problem.tensors.at(operand.argument);
  const Strides s = strides_of(operand, from, row);
  if (const std::optional<spec::Pages> pages = spec::pages_of(operand)) {
    B = from.shape[pages->page];
    rows = pages->rows;
  }
  Tensor to(from.dtype, {B, int64_t(heads.size()), rows, D});
  double* out = to.values.data();
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h : heads)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t d = 0; d < D; ++d)
          *out++ = from.values[b * s.b + h * s.head + r * s.row + d * s.d];
  return to;
}

// Several terms are compared as a whole, and their key blocks by the one mask that they share.
std::string Attention::undecided(const Form& form) const {
  if (form.terms.empty()) return "the function has no softmax over scores";
  if (form.terms.size() == 1) return {};
  for (const spec::Term& t : form.terms) {
    if (!t.keep != !form.terms[0].keep || (t.keep && !spec::equal(t.keep, form.terms[0].keep)))
      return "its terms keep different keys";
    for (const Operand* o : spec::operands(t))
      if (o->row) return "rows change before the product of one of its terms";
  }
  return {};
}

proofs::Report Attention::indices(const tl::Program& program, const Form& form,
                                  const proofs::Solver& solver) const {
  proofs::Report none;
  if (form.terms.size() != 1)
    none.not_run = "of several terms nothing is proved";
  else if (form.terms[0].finite_mask)
    none.not_run = "of rows that keep no key and are not empty nothing is proved";
  else if (packs_heads(program))
    none.not_run = "where heads are rows of a tile nothing is proved";
  else if (program.find(Op::combine_parts))
    none.not_run = "where keys are split over blocks nothing is proved";
  else
    return proofs::prove_attention(program, form, solver);
  return none;
}

void Attention::bind(const tl::Program&, const Form& form, const Problem& problem, const Case& c,
                     const std::vector<int64_t>& key_heads, exec::Launch& launch) const {
  const int64_t B = spec::value_of(form.B, problem.sizes),
                M = spec::value_of(form.M, problem.sizes),
                N = spec::value_of(form.N, problem.sizes);
  for (size_t t = 0; t < form.terms.size(); ++t) {
    const spec::Term& term = form.terms[t];
    const auto put = [&](char operand, Tensor tensor) {
      launch.tensors.emplace(form.operand_name(t, operand), std::move(tensor));
    };
    Tensor q = gather(term.q, problem, "i", c.heads, B, M, form.D.constant);
    pack_rows(c, q);
    put('q', std::move(q));
    put('k', gather(term.k, problem, "j", key_heads, B, N, form.D.constant));
    put('v', gather(term.v, problem, "j", key_heads, B, N, form.Dv.constant));
    for (size_t p = 0; p < term.more.size(); ++p) {
      const spec::FurtherProduct& m = term.more[p];
      const auto put_more = [&](char operand, const Operand& from, const char* row, int64_t rows) {
        launch.tensors.emplace(
            form.operand_name(t, operand, p + 1),
            gather(from, problem, row, own_heads(from, c.heads, key_heads), B, rows, m.D));
      };
      put_more('q', m.q, "i", M);
      put_more('k', m.k, "j", N);
    }
  }
}

std::set<std::string> Attention::sharpened(const Form& form) const {
  std::set<std::string> queries;
  for (const spec::Term& t : form.terms) {
    queries.insert(t.q.argument);
    for (const spec::FurtherProduct& m : t.more) queries.insert(m.q.argument);
  }
  return queries;
}

std::optional<Counterexample> Attention::coverage(const Form& form, const Problem& problem,
                                                  const Case& c, const exec::Outcome& run,
                                                  int& blocks) const {
  const int64_t queries = spec::value_of(form.M, problem.sizes);
  return check_blocks(form, problem, c, visits_of(c, queries, run), blocks);
}

// Locators know the values of one term, up to its output, from all of its keys.
bool Attention::can_locate(const tl::Program& program, const Form& form,
                           const std::string& output) const {
  return form.terms.size() == 1 && output != "column_sums" && !program.find(Op::combine_parts);
}

void Attention::locate(const tl::Program& program, const spec::Capture& capture, const Case& c,
                       Counterexample& what) const {
  Diagnostics ignored;
  const auto problem = problem_of(capture.form, c, ignored);
  if (!problem) return;
  if (what.output == "key blocks") {
    const Stmt* range = range_statement(program);
    return name_statement(program, range, "the key range is decided here", what);
  }
  const auto launch = check::bind(program, capture.form, *problem, c, ignored);
  if (!launch) return;
  spec::Evaluator evaluator(capture.form, *problem);
  const std::unique_ptr<Locator> locator = make_locator(c, evaluator, what);
  exec::run(program, *launch, locator.get());
  const Difference found = locator->found();
  name_statement(program, found.statement, found.text, what);
}

std::unique_ptr<Locator> Attention::exact_locator(const Case& c, const Form& form,
                                                  const Problem& named,
                                                  const exec::Launch& launch) const {
  return make_exact_locator(c, form, named, launch);
}

const Family& attention() {
  static const Attention family;
  return family;
}

}  // namespace kw::check::families
