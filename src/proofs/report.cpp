// What a report of obligations says, in words.
#include <fmt/format.h>

#include <optional>

#include "proofs/proofs.h"

namespace kw::proofs {

int Report::proved() const {
  int n = 0;
  for (const Obligation& o : obligations) n += o.answer == Answer::proved;
  return n;
}

bool Report::complete() const {
  return not_run.empty() && !obligations.empty() && proved() == int(obligations.size());
}

const Obligation* Report::first(Answer answer) const {
  for (const Obligation& o : obligations)
    if (o.answer == answer) return &o;
  return nullptr;
}

std::string print(const Limit& l) { return tl::print(l.holds); }

namespace {

// Of numbers, heads and their products.
std::optional<int64_t> value_of(const tl::ExprPtr& e, int64_t query_heads, int64_t key_heads) {
  if (e->kind == tl::ExprKind::integer) return std::stoll(e->text);
  if (e->is_name("H")) return query_heads;
  if (e->is_name("G")) return key_heads;
  if (e->kind != tl::ExprKind::binary || e->text != "*") return std::nullopt;
  const auto a = value_of(e->args[0], query_heads, key_heads),
             b = value_of(e->args[1], query_heads, key_heads);
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

}  // namespace

bool admits(const Limit& limit, int64_t query_heads, int64_t key_heads) {
  const tl::Expr& e = *limit.holds;
  if (e.kind != tl::ExprKind::binary) return true;
  const auto a = value_of(e.args[0], query_heads, key_heads),
             b = value_of(e.args[1], query_heads, key_heads);
  if (!a || !b) return true;
  return e.text == "==" ? *a == *b : e.text == "<=" ? *a <= *b : true;
}

std::string print(const Report& r) {
  if (!r.not_run.empty()) return fmt::format("indices: not proved: {}", r.not_run);
  std::string text = fmt::format("indices: {} of {} obligations proved for every size by {}",
                                 r.proved(), r.obligations.size(), r.solver);
  for (const Limit& l : r.limits) text += (&l == &r.limits[0] ? "; only for " : " and ") + print(l);
  if (r.small_reals) text += "; only where integers of the data that become reals lie within 2^24";
  if (r.small_data) text += "; only for integers of the data within 2^29";
  if (const Obligation* open = r.first(Answer::unknown))
    text += fmt::format("; open: {}: {}", open->what, open->why);
  return text;
}

}  // namespace kw::proofs
