// Which scores are dropped: the condition of the mask.
//
//   where(j < N, s[i, j], -inf)   ->   where(j < min(N, i + 1), s[i, j], -inf)
//                                 ->   where(j < min(N, max(i + 1, kept)), s[i, j], -inf)
//   with `let kept = prefix[c.b]`
//                                 ->   where(i - 63 <= j and j < min(N, i + 1), s[i, j], -inf)
//                                 ->   where(document[c.b, i] == document[c.b, j] and
//                                              j < min(N, i + 1), s[i, j], -inf)
//
// When     the form has a keep predicate. What of it keeps one range of keys in every row, by
//          bounds.h, becomes the bounds of that range: one or two comparisons an element, the rest
//          once a row. Any other conjunct is written as it is.
// Effect   none: integers.
#include <fmt/format.h>

#include "transfer/editing/terms.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/masks/coordinates.h"
#include "transfer/masks/key_bounds.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

// Every read at the batch and the head alone becomes the name of a `let`.
ExprPtr without_reads(Edit& edit, const ExprPtr& e) {
  bool failed = false;
  const ExprPtr out = spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::read || failed || varies_in_a_block(x)) return nullptr;
    const ExprPtr name = edit.hoist(x, {singular(x->name), "kept", x->name + "_value"});
    failed = !name;
    return name;
  });
  return failed ? nullptr : out;
}

void conjuncts(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (e->kind != Kind::binary || e->name != "and") return out.push_back(e);
  for (const ExprPtr& a : e->args) conjuncts(a, out);
}

// keep == ranges and others: the conjuncts that are a range of keys in each row, and the rest, null
// where there is none.
struct Parts {
  ExprPtr ranges, others;
};

Parts taken_apart(const ExprPtr& keep, const ExprPtr& keys) {
  std::vector<ExprPtr> all;
  conjuncts(keep, all);
  Parts out;
  for (const ExprPtr& e : all) {
    ExprPtr& part = key_bounds(e, keys) ? out.ranges : out.others;
    part = part ? spec::binary("and", part, e) : e;
  }
  return out;
}

// The condition as TL text. What is no range comes first: a comparison before a read would become a
// branch around it, and the rows of a thread could not share what they read at a key.
std::optional<std::string> condition(Edit& edit) {
  const ExprPtr keys = size(edit.facts.keys);
  const auto text = [&](const ExprPtr& e) -> std::optional<std::string> {
    const ExprPtr named = without_reads(edit, e);
    return named ? edit.in_map(named, false) : std::nullopt;
  };
  const Parts parts = taken_apart(edit.keep, keys);
  std::optional<std::string> others = "";
  if (parts.others) {
    others = text(parts.others);
    if (!others) return std::nullopt;
    edit.result.notes.push_back(
        "the mask is not a range of keys in each row: what of it is not one value in a tile is "
        "evaluated for every score of a visited block");
    others = "(" + *others + ") and ";
  }
  const auto bounds = key_bounds(parts.ranges, keys);
  const auto upper = text(bounds->upper ? smaller(keys, bounds->upper) : keys);
  if (!upper) return std::nullopt;
  if (!bounds->lower) return *others + "j < " + *upper;
  const auto lower = text(bounds->lower);
  if (!lower) return std::nullopt;
  return fmt::format("{}{} <= j and j < {}", *others, *lower, *upper);
}

}  // namespace

bool rule_mask(Edit& edit) {
  if (!edit.keep) return true;
  const std::optional<std::string> keep = condition(edit);
  if (!keep) return false;
  const tl::ExprPtr parsed = tl::parse_expr(*keep, edit.diagnostics);
  if (!parsed) return false;
  const Place place = mask_of(edit.program, edit.facts);
  tl::Item& body = (*place.block)[place.at].body[0].items(tl::Hole::value).at(0);
  body.expr = tl::where(parsed, body.expr->args[1], body.expr->args[2]);
  return true;
}

}  // namespace kw::transfer
