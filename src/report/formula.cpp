// The form's expressions are printed as `capture --form` prints them, with the signs of a formula
// where a keyboard has two characters.
#include "report/formula.h"

#include <utility>

namespace kw::report {
namespace {

std::string with_signs(std::string text) {
  const std::pair<const char*, const char*> signs[] = {{"<=", "≤"}, {">=", "≥"},    {"!=", "≠"},
                                                       {"==", "="}, {" * ", " · "}, {" - ", " − "}};
  for (const auto& [from, to] : signs)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
         at += std::string(to).size())
      text.replace(at, std::string(from).size(), to);
  return text;
}

Markup line(const char* what, const Markup& words) {
  return html("<div><dt>{}</dt><dd>{}</dd></div>\n", what, words);
}

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

std::string read_of(const spec::Operand& o) {
  std::string at;
  for (const spec::ExprPtr& e : o.indices) at += (at.empty() ? "" : ", ") + spec::print(e);
  return fmt::format("{}[{}]", o.argument, at);
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

Markup of_product(const spec::Form& form) {
  const spec::Product& p = *form.product;
  Markup out = line("output", html("c = {}, with s = Σ<sub>d</sub> {} · {}",
                                   with_signs(spec::print(p.value)), read_of(p.a), read_of(p.b)));
  if (p.returns_sums)
    out += line(p.returns_matrix ? "also" : "given", html("Σ<sub>j</sub> c, for each row"));
  return out;
}

}  // namespace

Markup formula(const spec::Form& form) {
  Markup out;
  if (form.product) out += of_product(form);
  for (const spec::Term& t : form.terms) out += of_term(form, t);
  if (form.epilogue && form.epilogue->kind != spec::Kind::output)
    out += line("then", html("{}", with_signs(spec::print(form.epilogue))));
  return html("<dl class=\"formula\">\n{}</dl>\n", out);
}

}  // namespace kw::report
