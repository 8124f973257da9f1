// Plain integers (integers.h): sums of block numbers, indices, counters and sizes.
#include <optional>
#include <set>
#include <string>

#include "proofs/heads.h"
#include "proofs/integers.h"
#include "proofs/solver/sexpr.h"

namespace kw::proofs {
namespace {

// Whether a term is the pattern, with one term for each @ of it.
bool matches(const Sexpr& pattern, const Sexpr& e, std::optional<Sexpr>& bound) {
  if (pattern.atom == "@") {
    if (!bound) bound = e;
    return print(*bound) == print(e);
  }
  if (pattern.parts.size() != e.parts.size() || pattern.atom != e.atom) return false;
  for (size_t n = 0; n < e.parts.size(); ++n)
    if (!matches(pattern.parts[n], e.parts[n], bound)) return false;
  return true;
}

// The symbols of a plain term; nothing where it is none.
std::optional<std::set<std::string>> symbols(const Sexpr& e, const Uses& uses) {
  if (mentions_only(e, uses.of_agents)) return std::set<std::string>{};
  // Cases have few numbers of heads, and one length of a table: no general position.
  if (e.parts.empty()) {
    if (counts_heads(e.atom) || uses.of_tables.count(e.atom)) return std::nullopt;
    return std::set<std::string>{e.atom};
  }
  if (const std::string text = print(e); uses.firsts.count(text))
    return std::set<std::string>{text};
  for (const std::string& block : uses.key_blocks) {
    std::optional<Sexpr> place;
    if (!matches(read_term(block), e, place) || !place || !symbols(*place, uses)) continue;
    return std::set<std::string>{print(e)};
  }
  const std::string& op = e.parts[0].atom;
  if (op != "+" && op != "-" && op != "*") return std::nullopt;
  std::set<std::string> all;
  int factors = 0;  // that are no numbers: not every agent has rows in every block of a case
  for (size_t n = 1; n < e.parts.size(); ++n) {
    const auto part = symbols(e.parts[n], uses);
    if (!part) return std::nullopt;
    factors += !mentions_only(e.parts[n], {});
    if (op == "*" && factors > 1) return std::nullopt;
    all.insert(part->begin(), part->end());
  }
  return all;
}

}  // namespace

bool says_which_agent(const std::string& term, const Uses& uses) {
  return mentions_only(read_term(term), uses.of_agents);
}

bool is_plain(const Term& term, const Uses& uses) {
  return symbols(read_term(term.text), uses).has_value();
}

}  // namespace kw::proofs
