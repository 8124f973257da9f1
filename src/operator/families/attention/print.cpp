// The form of attention as a person would write it.
#include <fmt/format.h>

#include <set>

#include "operator/families/attention/attention.h"

namespace kw::spec {
namespace {

std::string any_sizes(const Form& form) {
  std::string out;
  std::set<std::string> seen;
  for (const Size* s : {&form.B, &form.M, &form.N})
    if (!s->name.empty() && seen.insert(s->name).second) out += (out.empty() ? "" : ", ") + s->name;
  return out.empty() ? "" : "; any " + out;
}

std::string fixed_sizes(const Form& form) {
  std::string out;
  const std::pair<const char*, const Size*> sizes[] = {
      {"B", &form.B}, {"M", &form.M}, {"N", &form.N}};
  for (const auto& [letter, s] : sizes)
    if (s->name.empty()) out += fmt::format(", {} {}", letter, s->constant);
  return out;
}

std::string heads(const Form& form) {
  if (form.H.constant == form.G.constant)
    return fmt::format("{} head{}", form.H.constant, form.H.constant == 1 ? "" : "s");
  return fmt::format("{} query / {} key heads", form.H.constant, form.G.constant);
}

std::string dims(const Form& form) {
  if (form.D.constant == form.Dv.constant) return fmt::format("D {}", form.D.constant);
  return fmt::format("D {}, Dv {}", form.D.constant, form.Dv.constant);
}

// `k[b, h, j, d] = ...`, and the sums that it mentions.
std::string row(const std::string& name, const Operand& operand) {
  if (!operand.row) return "";
  std::string out = fmt::format("  {} row   {}\n", name, print(operand.row->element));
  for (size_t n = 0; n < operand.row->sums.size(); ++n)
    out += fmt::format("    sum{}  over d of {}\n", n, print(operand.row->sums[n]));
  return out;
}

std::string read_of(const Operand& o) {
  std::string at;
  for (const ExprPtr& e : o.indices) at += (at.empty() ? "" : ", ") + print(e);
  return fmt::format("{}[{}]", o.argument, at);
}

// `s2 = q2[b, h, i, d] . k2[b, 0, j, d]`: which arguments a further product is of.
std::string further(size_t number, const FurtherProduct& m) {
  return fmt::format("  product s{} = {} . {}, D {}\n", number, read_of(m.q), read_of(m.k), m.D) +
         row(fmt::format("q of s{}", number), m.q) + row(fmt::format("k of s{}", number), m.k);
}

}  // namespace

std::string attention::print(const Form& form) {
  std::string out = fmt::format("{}: {}, {}, {}{}{}\n", form.name, types_of(form), heads(form),
                                dims(form), fixed_sizes(form), any_sizes(form));
  for (const Term& t : form.terms) {
    if (form.terms.size() > 1)
      out += fmt::format("  term {} of {}, whose sum is the output\n", &t - &form.terms[0] + 1,
                         form.terms.size());
    const bool softmax = t.normaliser == Normaliser::softmax;
    for (const auto& [name, o] : {std::pair("q", &t.q), {"k", &t.k}, {"v", &t.v}}) {
      if (pages_of(*o)) out += fmt::format("  {} pages {}\n", name, read_of(*o));
      out += row(name, *o);
    }
    for (size_t n = 0; n < t.more.size(); ++n) out += further(n + 2, t.more[n]);
    out += (softmax ? "  score   " : "  weight  ") + print(t.score) + "\n";
    if (t.keep) out += "  keep    " + print(t.keep) + "\n";
    if (softmax) out += "  softmax over j\n";
    if (t.normaliser == Normaliser::sum) out += "  divided by the sum over j\n";
    if (t.sink) out += "  sink    " + print(t.sink) + "\n";
    if (t.factor) out += "  times   " + print(t.factor) + "\n";
    if (t.finite_mask) out += "  a row that keeps no key is a uniform softmax\n";
  }
  if (form.epilogue && form.epilogue->kind != Kind::output)
    out += "  then    " + print(form.epilogue) + "\n";
  if (form.returns("column_sums")) out += "  also    sum over i of the softmax\n";
  if (form.saves) out += "  also    logsumexp of the scores; the output before it is rounded\n";
  for (const Output& o : form.outputs)
    if (o.name == "lse")
      out += fmt::format("  also    logsumexp of the scores{}\n",
                         o.dims.empty() ? "" : fmt::format(", [{}]", fmt::join(o.dims, ", ")));
  return out;
}

}  // namespace kw::spec
