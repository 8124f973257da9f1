// The rules of an RMS normalisation. A kernel of it has its arguments by name: x and weight, y, and
// of a sum residual and h; the number `eps` and the constant C, the columns of a row.
//
//   form      nothing changes; x[b, i, d] is bound to x[B, H, M, C]
//   element   element bf16                    ->  element f16
//   columns   param C = 4096                  ->  param C = 1024, and the constants of its tiles
//   eps       eps: f32 = 1.0e-06              ->  eps: f32 = 1.0e-05, or the user's own argument
//
// When     the form differs in it from the kernel.
// Effect   none: C decides in which order the sum is taken, the type what outputs round to.
#include <fmt/format.h>

#include <algorithm>

#include "support/lines.h"
#include "transfer/editing/declarations.h"
#include "transfer/editing/edits.h"
#include "transfer/editing/spell.h"
#include "transfer/family.h"
#include "transfer/rules.h"

namespace kw::transfer::families {
namespace {

using spec::Kind;
using tl::Op;
using tl::Stmt;

constexpr int64_t kMostColumns = 16384;  // of a line: law line.C2

class Edits {
 public:
  Edits(const tl::Program& source, const spec::Form& form, const Target& target,
        Diagnostics& diagnostics)
      : form_(form), target_(target), diagnostics_(diagnostics) {
    result.program = source;
  }

  Result result;

  bool refuse(const char* code, const Span& where, const std::string& what,
              const std::string& hint) {
    diagnostics_.error(code, where, what).hint = hint;
    return false;
  }

  bool condition(const std::string& holds, const std::string& why) {
    return add_condition(result, holds, why, diagnostics_);
  }

  // The letters of a tensor of the kernel; empty where it has none of this name and rank.
  std::vector<std::string> letters(const char* name, size_t rank) const {
    std::vector<std::string> out;
    const Stmt* declared = declaration_of_argument(result.program, name);
    const bool tensor =
        declared && (declared->op == Op::arg_tensor || declared->op == Op::arg_tiled);
    if (tensor && declared->dims().size() == rank)
      for (const tl::Item& s : declared->dims()) out.push_back(s.name);
    return out;
  }

  // Which argument is which, and what the function fixes.
  bool rule_form() {
    const spec::Norm& n = *form_.norm;
    const bool sum = n.residual.has_value();
    const bool has_sum = !letters("residual", 4).empty();
    if (letters("x", 4).empty() || letters("weight", 1).empty() || letters("y", 4).empty() ||
        sum != has_sum)
      return refuse(
          "transfer.kernel", {},
          fmt::format("this kernel is not an RMS normalisation of {}: it has {}",
                      sum ? "a sum" : "rows alone",
                      sum != has_sum && has_sum ? "an argument residual"
                      : sum != has_sum          ? "no residual[B, H, M, C]"
                                                : "no x, y[B, H, M, C] and weight[C]"),
          sum ? "kernels/sm80/add_rms_norm.cu is one" : "kernels/sm80/rms_norm.cu is one");
    if (!bind("x", n.x) || (sum && !bind("residual", *n.residual)) || !bind("weight", n.weight))
      return false;
    for (const spec::Output& o : form_.outputs)
      result.bindings.push_back({o.name, "", dims_of_output()});
    if (sum && !form_.returns("h"))
      return refuse("transfer.output", {}, "the kernel writes the sum h, and the function keeps it",
                    "return (y, h), as a layer does that goes on with the sum");
    return fixed_sizes();
  }

  bool bind(const char* name, const spec::Operand& operand) {
    const spec::Argument* given = form_.argument(operand.argument);
    if (given && given->dtype != form_.dtype)
      return refuse("transfer.dtype", given->span,
                    fmt::format("{} is {}, the rows are {}", operand.argument,
                                kw::name(given->dtype), kw::name(form_.dtype)),
                    fmt::format("pass it as {}", kw::name(form_.dtype)));
    if (given && !given->stride_order.empty() &&
        given->stride_order.back() + 1 != static_cast<int>(given->dims.size()))
      return refuse(
          "transfer.operand", given->span,
          fmt::format("{}'s columns do not follow each other in memory", operand.argument),
          "pass it .contiguous()");
    std::vector<int> dims;
    for (const char* role : {"b", "h", "i", "d"}) {
      const auto at = std::find_if(
          operand.indices.begin(), operand.indices.end(),
          [&](const spec::ExprPtr& e) { return e->kind == Kind::index && e->name == role; });
      dims.push_back(at == operand.indices.end() ? -1
                                                 : static_cast<int>(at - operand.indices.begin()));
    }
    if (operand.indices.size() == 1) dims = {0};  // of the weight
    result.bindings.push_back({name, operand.argument, dims});
    return true;
  }

  std::vector<int> dims_of_output() const {
    std::vector<int> dims;
    const auto& user = form_.output_dims;
    for (const char* role : {"b", "h", "i", "d"}) {
      const auto at = std::find(user.begin(), user.end(), role);
      dims.push_back(at == user.end() ? -1 : static_cast<int>(at - user.begin()));
    }
    return dims;
  }

  bool fixed_sizes() {
    const std::vector<std::string> at = letters("x", 4);
    const spec::Size* sizes[] = {&form_.B, &form_.H, &form_.M};
    for (size_t n = 0; n < 3; ++n)
      if (sizes[n]->name.empty() && !condition(fmt::format("{} == {}", at[n], sizes[n]->constant),
                                               "the function fixes this size"))
        return false;
    return true;
  }

  bool rule_element() {
    for (Stmt& s : result.program.body)
      if (s.op == Op::element && s.type() != kw::name(form_.dtype)) {
        std::optional<Stmt> own =
            tl::parse_statement(fmt::format("element {}", kw::name(form_.dtype)), diagnostics_);
        if (!own) return false;
        s = std::move(*own);
      }
    return true;
  }

  // The columns, and the constants that the tile database has for them.
  bool rule_columns() {
    tl::Item* columns = constant_named(result.program, letters("x", 4)[3]);
    if (!columns)
      return refuse("transfer.kernel", {}, "this kernel has no constant of its columns",
                    "kernels/sm80/rms_norm.cu has C");
    const int64_t C = form_.D.constant;
    if (C % 8 != 0 || C > kMostColumns)
      return refuse(
          "transfer.columns", form_.argument(form_.norm->x.argument)->span,
          C % 8 != 0 ? fmt::format("rows have {} columns, and 16 bytes are copied at once", C)
                     : fmt::format("rows have {} columns, and the registers of a warpgroup hold {}",
                                   C, kMostColumns),
          fmt::format("supported are multiples of 8 up to {}", kMostColumns));
    columns->expr = tl::integer(C);
    const std::vector<const Tiles*> rows = rows_for(C);
    if (rows.empty()) return true;
    const size_t tried = std::min(static_cast<size_t>(target_.tried), rows.size() - 1);
    result.roomier = tried + 1 < rows.size();
    result.tiles = rows[tried]->place;
    for (const Constant& c : rows[tried]->constants) {
      tl::Item* d = constant_named(result.program, c.name);
      if (!d)
        return refuse("transfer.kernel", {},
                      fmt::format("this kernel has no constant {}, which its tiles set ({})",
                                  c.name, result.tiles),
                      "rows are for one kernel's text: see its targets");
      const int64_t* number = std::get_if<int64_t>(&c.value);
      d->expr = number ? tl::integer(*number) : tl::name(text_of(c.value));
    }
    return true;
  }

  // A row of the database is for as many columns as it says and for fewer: that of the fewest is
  // the best, those of more leave more registers. Rows of other texts, with constants that this one
  // has not, are none of its; a user's are, and said to be wrong.
  std::vector<const Tiles*> rows_for(int64_t C) {
    std::vector<const Tiles*> rows;
    for (const Tiles& t : target_.tiles)
      if (t.dim >= C && t.is_for(target_.name) &&
          (t.users || std::all_of(t.constants.begin(), t.constants.end(), [&](const Constant& c) {
             return constant_named(result.program, c.name) != nullptr;
           })))
        rows.push_back(&t);
    std::stable_sort(rows.begin(), rows.end(), [](const Tiles* a, const Tiles* b) {
      return a->users != b->users ? a->users : a->dim < b->dim;
    });
    return rows;
  }

  bool rule_eps() {
    const spec::ExprPtr& eps = form_.norm->eps;
    for (Stmt& s : result.program.body) {
      if (s.op != Op::args) continue;
      for (Stmt& a : s.body)
        for (tl::Item& d : a.names())
          if (d.name == "eps" && d.expr)
            return eps->kind == Kind::argument ? take(d, *eps) : set(d, eps);
    }
    return refuse("transfer.kernel", {}, "this kernel has no number eps",
                  "kernels/sm80/rms_norm.cu has one");
  }

  bool set(tl::Item& d, const spec::ExprPtr& eps) {
    const auto value = spell(eps, {}, diagnostics_);
    if (!value) return false;
    if (!same_number(d.expr, eps)) d.expr = *value;
    return true;
  }

  static bool same_number(const tl::ExprPtr& written, const spec::ExprPtr& eps) {
    const bool number =
        written->kind == tl::ExprKind::real || written->kind == tl::ExprKind::integer;
    return number && eps->kind == Kind::number &&
           std::stod(written->text) == spec::number_value(eps);
  }

  // The user's own number, under its own name where the kernel has none of it.
  bool take(tl::Item& d, const spec::Expr& eps) {
    const std::string own = eps.name == "eps" || !declaration_of_argument(result.program, eps.name)
                                ? eps.name
                                : eps.name + std::string(spec::kGiven);
    d.expr = nullptr;
    if (own != d.name) {
      const std::string before = d.name;
      d.name = own;
      const auto renamed = [&](const tl::ExprPtr& e) -> tl::ExprPtr {
        return e->kind == tl::ExprKind::name && e->text == before ? tl::name(own) : nullptr;
      };
      tl::walk(result.program.body, [&](Stmt& s) {
        tl::each_expression(s, [&](tl::ExprPtr& e) { e = tl::rewrite(e, renamed); });
      });
    }
    result.bindings.push_back({own, eps.name, {}});
    return true;
  }

 private:
  const spec::Form& form_;
  const Target& target_;
  Diagnostics& diagnostics_;
};

constexpr Rule<Edits> kRules[] = {{"form", [](Edits& e) { return e.rule_form(); }},
                                  {"element", [](Edits& e) { return e.rule_element(); }},
                                  {"columns", [](Edits& e) { return e.rule_columns(); }},
                                  {"eps", [](Edits& e) { return e.rule_eps(); }}};

class RmsNorm : public Family {
 public:
  std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                                 const Target& target, Diagnostics& diagnostics) const override {
    Edits edits(source, form, target, diagnostics);
    return apply_rules<Edits>(kRules, source, edits);
  }
  // Nothing of it is a matter of opinion.
  std::optional<Result> begin(const tl::Program& source, const spec::Form& form,
                              const Target& target, Diagnostics& diagnostics) const override {
    return this->transfer(source, form, target, diagnostics);
  }
};

}  // namespace

const Family& rms_norm() {
  static const RmsNorm family;
  return family;
}

}  // namespace kw::transfer::families
