#include "proofs/solver/quotients.h"

#include <fmt/format.h>

#include <set>

#include "proofs/solver/sexpr.h"

namespace kw::proofs {
namespace {

void find(const Sexpr& e, std::set<std::string>& seen, std::vector<std::string>& out) {
  for (const Sexpr& p : e.parts) find(p, seen, out);
  const bool quotient = e.is("div", 2);
  if ((!quotient && !e.is("mod", 2)) || is_literal(print(e.parts[2]))) return;
  const std::string all = print(e), x = print(e.parts[1]), n = print(e.parts[2]);
  if (!seen.insert(all).second) return;
  out.push_back(
      fmt::format("(=> {} (= {} {}))", in_range(x, n), all, quotient ? std::string("0") : x));
  out.push_back(fmt::format("(=> (and (< 0 {1}) (<= {1} {0}) (< {0} (* 2 {1}))) (= {2} {3}))", x, n,
                            all, quotient ? "1" : fmt::format("(- {} {})", x, n)));
}

}  // namespace

std::vector<std::string> small_quotients(const std::vector<std::string>& terms) {
  std::set<std::string> seen;
  std::vector<std::string> out;
  for (const std::string& t : terms)
    if (t.find("(div ") != std::string::npos || t.find("(mod ") != std::string::npos)
      find(read_term(t), seen, out);
  return out;
}

}  // namespace kw::proofs
