#include "proofs/reals/past_the_end.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "proofs/names.h"
#include "tl/syntax/expr.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

// A condition that stands fast where `row < M` does not hold.
std::optional<bool> truth(const ExprPtr& e, const ExprPtr& row) {
  if (e->kind != ExprKind::binary) return std::nullopt;
  if (e->text == "<" && tl::equal(e->args[0], row) && e->args[1]->is_name("M")) return false;
  if (e->text == "==" && is_minus_infinity(e->args[0]) && is_minus_infinity(e->args[1]))
    return true;
  return std::nullopt;
}

// What a pass writes, at a row past the end, as far as conditions on that row decide it.
ExprPtr past_the_end(const ExprPtr& value, const ExprPtr& row,
                     const std::map<std::string, ExprPtr>& lets) {
  return tl::rewrite(value, [&](const ExprPtr& e) -> ExprPtr {
    if (e->kind == ExprKind::name)
      if (const auto let = lets.find(e->text); let != lets.end()) return let->second;
    if (e->kind != ExprKind::where) return nullptr;
    const std::optional<bool> is = truth(e->args[0], row);
    return is ? e->args[*is ? 1 : 2] : nullptr;
  });
}

class PastTheEnd {
 public:
  explicit PastTheEnd(const tl::Program& program) {
    for (const Stmt& s : program.body)
      if (s.op == Op::rows) pass(s);
    tl::walk(program.body, [&](const Stmt& s) { kernel(s); });
  }

  std::string why() const {
    for (const std::string& tile : weights_) {
      // What columns begin as; of a score that is changed first, what is added. Of others neither:
      // their weights are by another reference.
      const Sets& rings = filled_.count(tile) ? filled_ : added_;
      const auto own = rings.find(tile);
      if (own == rings.end()) continue;
      for (const std::string& vector : own->second)
        if (std::string left = why_of(vector); !left.empty()) return left;
    }
    return "";
  }

 private:
  // Whatever is loaded into such a ring is -inf past the end.
  std::string why_of(const std::string& vector) const {
    const auto loaded = loaded_.find(vector);
    if (loaded == loaded_.end())
      return fmt::format("`{}`, which no copy fills, stands for a log-sum", vector);
    for (const std::string& tensor : loaded->second) {
      const auto written = written_.find(tensor);
      if (written == written_.end())
        return fmt::format("`{}`, which no pass writes, stands for a log-sum", tensor);
      if (!is_minus_infinity(written->second))
        return fmt::format(
            "`{}` of a row past the end is `{}`, and not -inf, by which its weights are 0", tensor,
            tl::print(written->second));
    }
    return "";
  }

  // Names of a pass are of its rows: a `let` stands for its value in what is written behind it.
  void pass(const Stmt& of) {
    std::map<std::string, ExprPtr> lets;
    tl::walk(of.body, [&](const Stmt& s) {
      if (s.op == Op::let)
        for (const tl::Item& d : s.names())
          if (d.expr && d.expr->kind == ExprKind::where) lets[d.name] = d.expr;
      if (s.op != Op::write_value) return;
      const ExprPtr& row = s.expr(tl::Hole::row);
      std::map<std::string, ExprPtr> there;
      for (const auto& [name, value] : lets) there[name] = past_the_end(value, row, {});
      ExprPtr& known = written_[tl::base_name(s.expr(tl::Hole::tensor))];
      if (!known || is_minus_infinity(known)) known = past_the_end(s.value(), row, there);
    });
  }

  void kernel(const Stmt& s) {
    if (s.op == Op::tma_load_rows || s.op == Op::cp_async_rows)
      loaded_[tl::base_name(s.dst())].insert(tl::base_name(s.expr(tl::Hole::tensor)));
    if (s.op == Op::fill_columns) filled_[tl::base_name(s.dst())].insert(tl::base_name(s.src()));
    if (s.op == Op::add_columns) added_[tl::base_name(s.dst())].insert(tl::base_name(s.src()));
    if (tl::is(s.op, tl::Family::map) && s.has(tl::Hole::value) &&
        s.value()->kind == ExprKind::call && s.value()->text == "exp2")
      weights_.insert(tl::base_name(s.target()));
  }

  using Sets = std::map<std::string, std::set<std::string>>;

  std::map<std::string, ExprPtr> written_;  // by tensor, what a pass writes past the end
  Sets loaded_;                             // by ring, tensors
  Sets filled_, added_;                     // by tile, rings: fill_columns, add_columns
  std::set<std::string> weights_;           // tiles
};

}  // namespace

std::string weights_past_the_end(const tl::Program& program) { return PastTheEnd(program).why(); }

}  // namespace kw::proofs
