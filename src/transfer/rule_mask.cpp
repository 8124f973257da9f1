// Which scores are dropped: the condition of the mask.
//
//   where(j < N, s[i, j], -inf)   ->   where(j < min(N, i + 1), s[i, j], -inf)
//                                 ->   where(j < min(N, max(i + 1, kept)), s[i, j], -inf)
//   with `let kept = prefix[c.b]`
//                                 ->   where(i - 63 <= j and j < min(N, i + 1), s[i, j], -inf)
//                                 ->   where(j < N and (...), s[i, j], -inf)
//
// When     the form has a keep predicate. Where its kept keys are one range in every row
// (bounds.h),
//          it becomes the bounds of that range: one or two comparisons an element, the rest once a
//          row. Any other predicate is written as it is.
// Effect   none: integers.
#include <fmt/format.h>

#include "transfer/bounds.h"
#include "transfer/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

// Every read becomes the name of a `let`.
ExprPtr without_reads(Edit& edit, const ExprPtr& e) {
  bool failed = false;
  const ExprPtr out = spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::read || failed) return nullptr;
    const ExprPtr name = edit.hoist(x, {singular(x->name), "kept", x->name + "_value"});
    failed = !name;
    return name;
  });
  return failed ? nullptr : out;
}

// The condition as TL text.
std::optional<std::string> condition(Edit& edit) {
  const ExprPtr keys = spec::leaf(Kind::size, spec::Type::integer, edit.facts.keys);
  const auto text = [&](const ExprPtr& e) -> std::optional<std::string> {
    const ExprPtr named = without_reads(edit, e);
    return named ? edit.in_map(named, false) : std::nullopt;
  };
  const auto bounds = key_bounds(edit.keep, keys);
  if (!bounds) {
    const auto predicate = text(edit.keep);
    if (!predicate) return std::nullopt;
    edit.result.notes.push_back(
        "the mask is no range of keys in each row: it is evaluated as it is "
        "written, for every score of a visited block");
    return fmt::format("j < {} and ({})", edit.facts.keys, *predicate);
  }
  const auto upper = text(bounds->upper ? smaller(keys, bounds->upper) : keys);
  if (!upper) return std::nullopt;
  if (!bounds->lower) return "j < " + *upper;
  const auto lower = text(bounds->lower);
  if (!lower) return std::nullopt;
  return fmt::format("{} <= j and j < {}", *lower, *upper);
}

}  // namespace

bool rule_mask(Edit& edit) {
  if (!edit.keep) return true;
  const std::optional<std::string> keep = condition(edit);
  if (!keep) return false;
  const auto parsed = tl::parse_statement("let keep = " + *keep, edit.diagnostics);
  if (!parsed) return false;
  const Place place = mask_of(edit.program, edit.facts);
  tl::Item& body = (*place.block)[place.at].body[0].items("f").at(0);
  body.expr = tl::where(parsed->items("d").at(0).expr, body.expr->args[1], body.expr->args[2]);
  return true;
}

}  // namespace kw::transfer
