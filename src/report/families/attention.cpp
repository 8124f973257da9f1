#include "report/families/attention.h"

namespace kw::report::families {
namespace {

// What weighs a value: over Kind::score as x.
Markup weight(spec::Normaliser n) {
  switch (n) {
    case spec::Normaliser::softmax:
      return html("softmax<sub>j</sub>(x)");
    case spec::Normaliser::sum:
      return html("(x / Σ<sub>j</sub> x)");
    case spec::Normaliser::none:
      return html("x");
  }
  return {};
}

// What a row of q, k or v becomes, and the sums over it that this mentions.
Markup row(const char* name, const spec::RowMap& map) {
  Markup out = html("each row of {} becomes {}", name, with_signs(spec::print(map.element)));
  for (size_t n = 0; n < map.sums.size(); ++n)
    out += html(", sum{} = Σ<sub>d</sub> {}", n, with_signs(spec::print(map.sums[n])));
  return out;
}

Markup of_term(const spec::Form& form, const spec::Term& t) {
  const int64_t group = form.G.constant ? form.H.constant / form.G.constant : 1;
  const std::string head = group > 1 ? fmt::format("h // {}", group) : "h";
  Markup out = line(
      "output", html("o[b, h, i] = Σ<sub>j</sub> {} · v[b, {}, j]", weight(t.normaliser), head));
  out += line("score", html("x = {}, with s = q[b, h, i] · k[b, {}, j]",
                            with_signs(spec::print(t.score)), head));
  for (size_t n = 0; n < t.more.size(); ++n)
    out += line("and", html("s{} = {} · {}", n + 2, read_of(t.more[n].q), read_of(t.more[n].k)));
  out += line("keys", t.keep ? html("those with <mark>{}</mark>", with_signs(spec::print(t.keep)))
                             : html("all of them"));
  if (t.sink) out += line("sink", html("one more logit: {}", with_signs(spec::print(t.sink))));
  for (const auto& [name, operand] : {std::pair("q", &t.q), {"k", &t.k}, {"v", &t.v}})
    if (operand->row) out += line("before", row(name, *operand->row));
  return out;
}

}  // namespace

Markup Attention::formula(const spec::Form& form) const {
  Markup out;
  for (const spec::Term& t : form.terms) out += of_term(form, t);
  if (form.epilogue && form.epilogue->kind != spec::Kind::output)
    out += line("then", html("{}", with_signs(spec::print(form.epilogue))));
  return out;
}

const Family& attention() {
  static const Attention family;
  return family;
}

}  // namespace kw::report::families
