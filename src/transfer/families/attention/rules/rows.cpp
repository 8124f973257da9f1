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
#include <fmt/format.h>

#include <algorithm>

#include "tl/traits.h"
#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

constexpr int kThreads = 256;
// Rows of a CTA: eight for each warp, so that what belongs to no row is fetched once for
// them.
constexpr int kRows = 64;

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
  explicit RowWriter(Edit& edit) : edit_(edit), f_(edit.facts) {
    for (const char* name : {"b", "h", "r", "w"}) locals_[name] = edit.local(name);
  }

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
  Edit& edit_;
  Facts& f_;
  std::map<std::string, std::string> locals_;
  std::vector<std::string> loops_, counts_;
  std::vector<std::pair<ExprPtr, std::string>> norms_;  // of one operand

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
    if (!declare(o, rows) || !loop(o, rows)) return false;
    const std::string count = fmt::format("{} * {}", *o.heads, *o.length);
    if (std::find(counts_.begin(), counts_.end(), count) == counts_.end()) counts_.push_back(count);
    load_from(edit_.program.body, *o.argument, rows);
    *o.argument = rows;
    return true;
  }

  // The argument is read element by element, and the kernel reads what the pre-pass makes of it.
  bool declare(const Operand& o, const std::string& rows) {
    std::vector<Stmt>& args = args_of(edit_.program).body;
    for (size_t at = 0; at < args.size(); ++at) {
      Stmt& s = args[at];
      if (s.op != Op::arg_tiled && s.op != Op::arg_tensor) continue;
      std::vector<tl::Item>& names = s.names();
      const auto found = std::find_if(names.begin(), names.end(),
                                      [&](const tl::Item& d) { return d.name == *o.argument; });
      if (found == names.end()) continue;
      std::string dims;
      for (const tl::Item& d : s.dims()) dims += (dims.empty() ? "" : ", ") + d.name;
      const char* tiled = s.op == Op::arg_tiled ? "tiled " : "";
      names.erase(found);
      if (names.empty()) args.erase(args.begin() + at--);
      return edit_.insert({&args, at + 1},
                          fmt::format("{}: {}scratch element[{}]", rows, tiled, dims)) &&
             edit_.insert({&args, at + 1},
                          fmt::format("{}: in {}[{}]", *o.argument, kw::name(o.type), dims));
    }
    return edit_.refuse("transfer.kernel", {},
                        fmt::format("this kernel has no argument {}", *o.argument), "");
  }

  bool loop(const Operand& o, const std::string& rows) {
    Spelling how;
    how.indices = {{"b", tl::name(locals_["b"])},
                   {"h", tl::name(locals_["h"])},
                   {o.row, tl::name(locals_["r"])},
                   {"d", tl::name("j")}};
    const std::string place = fmt::format("{}, {}, {}", locals_["b"], locals_["h"], locals_["r"]);
    std::string out = fmt::format("    for {} in each_row({}, {}):\n", place, rows, locals_["w"]);
    const spec::RowMap& map = **o.map;
    int norms = 0;
    norms_.clear();
    for (size_t n = 0; n <= map.sums.size(); ++n) {
      const bool last = n == map.sums.size();
      const ExprPtr body = with_norms(last ? map.element : map.sums[n], how, out, norms);
      const auto text = body ? spell(body, how, edit_.diagnostics) : std::nullopt;
      if (!text) return false;
      const std::string name = n ? fmt::format("row_total{}", n + 1) : "row_total";
      const std::string head = last ? fmt::format("write_row {}[{}]", rows, place)
                                    : fmt::format("sum {}", edit_.local(name));
      out += fmt::format("        {} over j < {} = {}\n", head, *o.columns, tl::print(*text));
      if (!last) how.totals.push_back(tl::name(edit_.local(name)));
    }
    loops_.push_back(out);
    return true;
  }

  // What is computed from sums and is the same for the whole row is a `let` before it.
  ExprPtr with_norms(const ExprPtr& e, const Spelling& how, std::string& out, int& norms) {
    if (e->kind == Kind::total || !spec::mentions(e, Kind::total)) return e;
    if (!spec::mentions(e, Kind::index, "d")) {
      for (const auto& [known, name] : norms_)
        if (spec::equal(known, e)) return spec::leaf(Kind::argument, e->type, name);
      const auto text = spell(e, how, edit_.diagnostics);
      if (!text) return nullptr;
      const std::string name = edit_.local(norms++ ? fmt::format("norm{}", norms) : "norm");
      out += fmt::format("        let {} = {}\n", name, tl::print(*text));
      norms_.push_back({e, name});
      return spec::leaf(Kind::argument, e->type, name);
    }
    spec::Expr copy = *e;
    for (ExprPtr& a : copy.args)
      if (a = with_norms(a, how, out, norms); !a) return nullptr;
    return std::make_shared<const spec::Expr>(std::move(copy));
  }

  void load_from(std::vector<Stmt>& body, const std::string& from, const std::string& rows) {
    for (Stmt& s : body) {
      const bool loads = tl::is(s.op, tl::Family::copy_in);
      if (loads && tl::base_name(s.tensor()) == from) s.tensor() = tl::name(rows);
      load_from(s.body, from, rows);
    }
  }

  bool write_pre_pass() {
    const Stmt& kernel = *edit_.program.kernel();
    const std::string name =
        edit_.fresh({kernel.name().substr(0, kernel.name().rfind('_')) + "_rows"});
    const std::string most =
        counts_.size() == 1 ? counts_[0] : fmt::format("max({}, {})", counts_[0], counts_[1]);
    std::string out = fmt::format("rows {}, threads {}, {} of ceil_div({} * {}, {}):\n", name,
                                  kThreads, locals_["w"], f_.batch, most, kRows);
    for (const std::string& loop : loops_) out += loop;
    std::vector<Stmt>& program = edit_.program.body;
    for (size_t at = 0; at < program.size(); ++at)
      if (program[at].op == kernel.op) return edit_.insert({&program, at}, out);
    return false;
  }
};

}  // namespace

bool rule_rows(Edit& edit) { return RowWriter(edit).write(); }

}  // namespace kw::transfer
