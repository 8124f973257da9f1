// Passes over rows: what the rows of an operand become before the kernel reads them, and what their
// gradients do behind it. Warps do not know of each other, and all lanes of a warp are at the same
// row.
#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

// The loop over rows that the statement stands in, or null after a report.
const Stmt* loop_of(Check& c, const char* label) {
  const Stmt* loop = c.parents.empty() ? nullptr : c.parents.back();
  if (loop && loop->op == Op::each_row) return loop;
  c.broken(label, c.stmt.span, fmt::format("`{}` stands in no loop over rows", word(c.stmt.op)));
  return nullptr;
}

// Whether a row of the tensor is one value.
bool is_of_values(const Symbol* tensor) { return tensor && tensor->dims.size() == 3; }

// As many columns as the rows that are being computed have.
void columns_agree(Check& c, const ExprPtr& written, const char* label) {
  const Symbol* tensor = c.find(written);
  if (is_of_values(tensor)) {
    c.broken(label, c.stmt.span, fmt::format("a row of `{}` is one value", tensor->name))
        .notes.push_back({fmt::format("`{}` is declared here", tensor->name), tensor->span});
    return;
  }
  const std::optional<int64_t> columns = c.constant(c.stmt.columns());
  if (!tensor || tensor->dims.empty() || !columns) return;
  const std::optional<int64_t> due = c.constant(name(tensor->dims.back()));
  if (due && *due != *columns)
    c.broken(label, c.stmt.columns()->span,
             fmt::format("{} columns, rows of `{}` have {}", *columns, tensor->name, *due))
        .notes.push_back({fmt::format("`{}` is declared here", tensor->name), tensor->span});
}

}  // namespace

void law_rows(Check& c) {
  launcher_computes(c, "C4", c.stmt.count(), "the number of blocks");
  if (c.facts.threads > 0)
    pass_has_warps(c, "C3", "a second pass over rows behind the kernel", c.facts.rows_behind);
  else
    pre_pass_is_possible(c, "C3", "a second pre-pass over rows", c.facts.rows);
  for (const Stmt& s : c.stmt.body)
    if (s.op != Op::let && s.op != Op::each_row)
      c.broken("C2", s.span, fmt::format("`{}` stands where rows are taken", word(s.op)));
}

void law_each_row(Check& c) {
  if (!c.inside(Op::rows))
    c.broken("C1", c.stmt.span, "rows are taken outside a pre-pass over rows");
  const Symbol* tensor = c.find(c.stmt.tensor());
  const bool behind = c.facts.rows_behind && tensor && tensor->written &&
                      tensor->element == "element" && tensor->dims.size() == 4;
  if (tensor && (c.facts.rows_behind ? !behind : !tensor->scratch))
    c.broken("C2", c.stmt.tensor()->span,
             fmt::format("`{}` is `{}`", tensor->name, word_of_access(*tensor)))
        .notes.push_back({fmt::format("`{}` is declared here", tensor->name), tensor->span});
  const std::vector<Stmt>& body = c.stmt.body;
  for (size_t n = 0; n < body.size(); ++n) {
    const bool last = n + 1 == body.size();
    const bool writes = is_of_values(tensor)
                            ? body[n].op == Op::write_value &&
                                  base_name(body[n].tensor()) == base_name(c.stmt.tensor())
                            : body[n].op == Op::write_row;
    const bool of_another =
        body[n].op == Op::write_row && base_name(body[n].tensor()) != base_name(c.stmt.tensor());
    if (last ? writes
             : body[n].op == Op::let || body[n].op == Op::sum || body[n].op == Op::dot_row ||
                   body[n].op == Op::write_value || of_another)
      continue;
    c.broken("C3", body[n].span,
             fmt::format("`{}` stands {}", word(body[n].op),
                         last ? "where the row is written" : "among lets, sums and values"));
  }
}

void law_sum(Check& c) {
  if (const Stmt* loop = loop_of(c, "C1")) columns_agree(c, loop->tensor(), "C2");
}

namespace {
bool is_here(const Check& c, const Stmt& loop) {
  return c.stmt.batch()->is_name(loop.batch_index()) && c.stmt.head()->is_name(loop.head_index()) &&
         c.stmt.row()->is_name(loop.row_index());
}

void another_row_is_due(Check& c, const char* label, const Stmt& loop) {
  c.broken(label, c.stmt.span,
           fmt::format("the loop is at row {}[{}, {}, {}]", print(loop.tensor()),
                       loop.batch_index(), loop.head_index(), loop.row_index()));
}

// As many rows as those that the loop is over.
bool has_its_rows(const Check& c, const Stmt& loop, const Symbol& tensor) {
  const Symbol* rows = c.find(loop.tensor());
  return rows && rows->dims.size() >= 3 && tensor.dims.size() >= 3 &&
         std::equal(rows->dims.begin(), rows->dims.begin() + 3, tensor.dims.begin());
}
}  // namespace

void law_dot_row(Check& c) {
  const Stmt* loop = loop_of(c, "C1");
  const Symbol *a = c.find(c.stmt.src()), *b = c.find(c.stmt.tensor());
  if (!loop || !a || !b) return;
  if (!is_here(c, *loop)) another_row_is_due(c, "C1", *loop);
  columns_agree(c, c.stmt.tensor(), "C2");
  const std::optional<int64_t> columns = c.constant(c.stmt.columns());
  if (columns && *columns % 8 != 0)
    c.broken("C2", c.stmt.columns()->span, fmt::format("{} columns: no multiple of 8", *columns));
  const auto is_in = [](const Symbol& t, const char* type) {
    return t.category == Category::tensor && !t.written && !t.scratch && t.element == type &&
           t.dims.size() == 4;
  };
  if (!is_in(*a, "f32")) return another_tensor_is_due(c, "C3", c.stmt.src(), *a);
  if (!is_in(*b, "element")) return another_tensor_is_due(c, "C3", c.stmt.tensor(), *b);
  const Symbol* rows = c.find(loop->tensor());
  const bool of_heads = rows && rows->dims.size() >= 3 &&
                        std::equal(a->dims.begin(), a->dims.begin() + 2, rows->dims.begin());
  if (a->dims != b->dims || !of_heads)
    c.broken("C3", c.stmt.span,
             fmt::format("`{}` is [{}], `{}` [{}]", a->name, fmt::join(a->dims, ", "), b->name,
                         fmt::join(b->dims, ", ")));
}

void law_write_value(Check& c) {
  const Stmt* loop = loop_of(c, "C1");
  const Symbol* tensor = c.find(c.stmt.tensor());
  if (!loop || !tensor) return;
  if (!tensor->scratch || tensor->element != "f32" || tensor->dims.size() != 3)
    another_tensor_is_due(c, "C2", c.stmt.tensor(), *tensor);
  c.facts.values_written.emplace(tensor->name, &c.stmt);
  const bool alike = tensor->dims.size() == 3 && has_its_rows(c, *loop, *tensor);
  if (!is_here(c, *loop) || !alike) another_row_is_due(c, "C3", *loop);
}

void law_write_row(Check& c) {
  const Stmt* loop = loop_of(c, "C1");
  if (!loop) return;
  const Symbol* tensor = c.find(c.stmt.tensor());
  const bool own = base_name(c.stmt.tensor()) == base_name(loop->tensor());
  const bool beside = tensor && !c.facts.rows_behind && tensor->scratch &&
                      tensor->element == "element" && tensor->dims.size() == 4 &&
                      has_its_rows(c, *loop, *tensor);
  if ((!own && !beside) || !is_here(c, *loop)) another_row_is_due(c, "C2", *loop);
  columns_agree(c, own || beside ? c.stmt.tensor() : loop->tensor(), "C3");
}

void judge_rows_behind(const Program& program, const Facts& facts, Diagnostics& diagnostics) {
  if (facts.incomplete) return;
  const auto report = [&](const Stmt& s, std::string message) {
    Diagnostic& d = diagnostics.error("round_sums.C5", s.span, std::move(message));
    d.hint = fmt::format("the law: {}", law("round_sums.C5")->text);
  };
  for (const auto& [name, s] : facts.left)
    if (!facts.read_behind.contains(name))
      report(*s, fmt::format("nothing behind the kernel reads `{}`", name));
  for (const auto& [name, s] : facts.read_behind)
    if (!facts.left.contains(name))
      report(*s, fmt::format("nothing in the kernel stores `{}`", name));
  walk(program.body, [&](const Stmt& s) {
    const bool touches = is(s.op, Family::copy_in) || s.op == Op::each_row;
    if (touches && facts.left.contains(base_name(s.tensor())))
      report(s, fmt::format("`{}` is stored by the kernel", base_name(s.tensor())));
  });
}

}  // namespace kw::tl
