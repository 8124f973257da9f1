#include "proofs/solver/shifts.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "proofs/solver/sexpr.h"

namespace kw::proofs {
namespace {

using Shifts = std::map<std::string, std::set<std::string>>;  // of each integer, its counts

void shifts_in(const Sexpr& e, Shifts& out) {
  if (e.is("bits.right", 2)) out[print(e.parts[1])].insert(print(e.parts[2]));
  for (const Sexpr& p : e.parts) shifts_in(p, out);
}

std::string shifted(const std::string& x, const std::string& count) {
  return fmt::format("(bits.right {} {})", x, count);
}

}  // namespace

std::vector<std::string> shift_bounds(const std::vector<std::string>& terms) {
  Shifts shifts;
  for (const std::string& t : terms)
    if (t.find("bits.right") != std::string::npos) shifts_in(read_term(t), shifts);
  std::vector<std::string> out;
  for (const auto& [end, counts] : shifts)
    for (const std::string& few : counts)
      for (const std::string& many : counts) {
        if (few == many) continue;
        for (const auto& [x, counts_of_x] : shifts)
          for (const std::string& r : counts_of_x) {
            if (x == end) continue;
            const std::string between =
                fmt::format("(and (<= 0 {0}) (<= {0} {1}) (<= {1} {2}) (<= {2} 31))", few, r, many);
            const std::string of_x = shifted(x, r), one = shifted(end, few),
                              other = shifted(end, many);
            out.push_back(fmt::format("(=> (and {} (<= {} {})) (or (<= {} {}) (<= {} {})))",
                                      between, end, x, one, of_x, other, of_x));
            out.push_back(fmt::format("(=> (and {} (<= {} {})) (or (<= {} {}) (<= {} {})))",
                                      between, x, end, of_x, one, of_x, other));
          }
      }
  return out;
}

}  // namespace kw::proofs
