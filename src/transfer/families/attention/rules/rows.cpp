// The rows of q, k or v that the function changes before the product are changed by a pre-pass,
// once, and the kernel loads them in the place of the argument.
//
//   q: tiled in element[B, H, M, D]   ->   q: in bf16[B, H, M, D]
//                                          q_rows: tiled scratch element[B, H, M, D]
//   rows attention_rows, threads 256, w of ceil_div(B * H * M, 64):
//       for b, h, r in each_row(q_rows, w):
//           sum row_total over j < D = q[b, h, r, j] * q[b, h, r, j]
//           let norm = rsqrt(row_total * 0.0078125 + 1e-06)
//           write_row q_rows[b, h, r] over j < D = q[b, h, r, j] * norm * weight[j]
//   tma_load q[...] -> ...          ->   tma_load q_rows[...] -> ...
//
// When     an operand of the form has a row map (operator/form.h); or is FP8 (e4m3) where its
// copies are
//          Hopper's own, which convert nothing: its rows become elements. Rows of k and v are
//          changed once for each key head.
// Effect   a row is computed in f32 and rounded once to the operands' type, which has all values of
//          e4m3.
#include "transfer/editing/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using spec::Kind;
using tl::Op;
using tl::Stmt;

// One operand: the name of its argument in the kernel, and what its rows become.
struct Operand {
  std::string* argument;
  const std::optional<spec::RowMap>* map;
  Dtype type;                                   // of its elements
  const char* row;                              // the index that numbers its rows
  const std::string *heads, *length, *columns;  // the letters of its sizes
};

class RowWriter {
 public:
  explicit RowWriter(Edit& edit) : edit_(edit), f_(edit.facts), rows_(edit, edit.local("w")) {}

  bool write() {
    const spec::Term& t = edit_.term;
    const Operand operands[] = {
        {&f_.q, &edit_.q_row, type_of(t.q), "i", &f_.heads, &f_.queries, &f_.dim},
        {&f_.k, &edit_.k_row, type_of(t.k), "j", &f_.groups, &f_.keys, &f_.dim},
        {&f_.v, &edit_.v_row, type_of(t.v), "j", &f_.groups, &f_.keys, &f_.value_dim}};
    for (Operand o : operands) {
      const std::optional<spec::RowMap> elements = its_elements(o);
      if (!*o.map && o.type == Dtype::e4m3 && is_tiled(*o.argument)) o.map = &elements;
      if (*o.map && !add(o)) return false;
    }
    return loops_.empty() || write_pre_pass();
  }

 private:
  Dtype type_of(const spec::Operand& operand) const {
    const spec::Argument* given = edit_.form.argument(operand.argument);
    return given && given->dtype == Dtype::e4m3 ? Dtype::e4m3 : edit_.form.dtype;
  }

  bool is_tiled(const std::string& argument) const {
    bool found = false;
    tl::walk(edit_.program.body, [&](const Stmt& s) {
      if (s.op != Op::arg_tiled) return;
      for (const tl::Item& d : s.names()) found = found || d.name == argument;
    });
    return found;
  }

  static spec::RowMap its_elements(const Operand& o) {
    const auto index = [](const char* name) {
      return spec::leaf(Kind::index, spec::Type::integer, name);
    };
    return {{},
            spec::read(*o.argument, spec::Type::real,
                       {index("b"), index("h"), index(o.row), index("d")})};
  }

  bool add(const Operand& o) {
    const std::string rows = edit_.fresh({*o.argument + "_rows", *o.argument + "_changed"});
    const auto loop = rows_.loop(rows, *o.columns, **o.map, o.row);
    if (!loop || !load_rows(edit_, *o.argument, o.type, rows)) return false;
    loops_.push_back(*loop);
    const std::string count = fmt::format("{} * {}", *o.heads, *o.length);
    if (std::find(counts_.begin(), counts_.end(), count) == counts_.end()) counts_.push_back(count);
    *o.argument = rows;
    return true;
  }

  bool write_pre_pass() {
    const Stmt& kernel = *edit_.program.kernel();
    const std::string name =
        edit_.fresh({kernel.name().substr(0, kernel.name().rfind('_')) + "_rows"});
    const std::string pass = rows_.pass(name, f_.batch, counts_, loops_);
    std::vector<Stmt>& program = edit_.program.body;
    for (size_t at = 0; at < program.size(); ++at)
      if (program[at].op == kernel.op) return edit_.insert({&program, at}, pass);
    return false;
  }

  Edit& edit_;
  Facts& f_;
  RowLoops rows_;
  std::vector<std::string> loops_, counts_;
};

}  // namespace

bool rule_rows(Edit& edit) { return RowWriter(edit).write(); }

}  // namespace kw::transfer
