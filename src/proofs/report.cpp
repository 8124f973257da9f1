// What a report of obligations says, in words.
#include <fmt/format.h>

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

std::string print(const Report& r) {
  if (!r.not_run.empty()) return fmt::format("indices: not proved: {}", r.not_run);
  std::string text = fmt::format("indices: {} of {} obligations proved for every size by {}",
                                 r.proved(), r.obligations.size(), r.solver);
  for (const Limit& l : r.limits) text += (&l == &r.limits[0] ? "; only for " : " and ") + print(l);
  if (r.small_data) text += "; only for integers of the data within 2^29";
  if (const Obligation* open = r.first(Answer::unknown))
    text += fmt::format("; open: {}: {}", open->what, open->why);
  return text;
}

}  // namespace kw::proofs
