// The pre-pass: a kernel of its own, launched before the other one, that says which key blocks are
// visited. Its CTAs do not know of each other; in one, each warp takes a key block at a
// time, and all its lanes compute the same.
#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

// A CTA finds 15 answers for one key block, and whether all rows keep all of it.
constexpr int64_t kMostGroups = 15;

}  // namespace

void pass_has_warps(Check& c, const char* once, const char* second, const Stmt*& known) {
  const std::optional<int64_t> threads = c.constant(c.stmt.threads());
  if (!threads || *threads % 32 || *threads < 32 || *threads > 1024)
    c.broken("C1", c.stmt.threads()->span,
             threads ? fmt::format("{} threads: not 1 to 32 warps of 32", *threads)
                     : "the number of threads is not constant");
  if (known)
    c.broken(once, c.stmt.span, second).notes.push_back({"the first is here", known->span});
  known = &c.stmt;
}

void pre_pass_is_possible(Check& c, const char* once, const char* second, const Stmt*& known) {
  pass_has_warps(c, once, second, known);
  if (c.facts.threads > 0) c.broken(once, c.stmt.span, "the pre-pass stands behind the kernel");
}

void law_lists(Check& c) {
  pre_pass_is_possible(c, "C4", "a second pre-pass", c.facts.lists);
  launcher_computes(c, "C5", c.stmt.count(), "the number of blocks");
  const std::vector<Stmt>& body = c.stmt.body;
  for (size_t n = 0; n < body.size(); ++n)
    if (body[n].op != (n + 1 == body.size() ? Op::list_blocks : Op::let))
      c.broken("C2", body[n].span,
               fmt::format("`{}` stands {}", word(body[n].op),
                           n + 1 == body.size() ? "where the list is due" : "among the lets"));
}

void law_list_blocks(Check& c) {
  if (!c.inside(Op::lists)) c.broken("C1", c.stmt.span, "key blocks are listed outside a pre-pass");
  const std::vector<Stmt>& body = c.stmt.body;
  for (size_t n = 0; n < body.size(); ++n) {
    const bool last = n + 1 == body.size();
    const bool right = body[n].op == (last ? Op::return_ : Op::let);
    if (!right || (last && body[n].values().size() != 2))
      c.broken("C2", body[n].span,
               fmt::format("`{}` stands {}", print_head(body[n]),
                           last ? "where two bools are returned" : "among the lets"));
  }
  const std::optional<int64_t> groups = c.constant(c.stmt.groups());
  if (groups && (*groups < 1 || *groups > kMostGroups))
    c.broken("C3", c.stmt.groups()->span,
             fmt::format("{} groups of rows: not 1 to {}", *groups, kMostGroups));
}

}  // namespace kw::tl
