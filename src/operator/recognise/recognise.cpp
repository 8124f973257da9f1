#include "operator/recognise/recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "operator/recognise/parts.h"
#include "operator/recognise/roles.h"

namespace kw::spec {
namespace {

// An output dimension that is two indices in one, [B, M, H * D], shows in q as `x // c` or `x % c`.
// Returns c for the index x, or 0.
int64_t merged_with(const ExprPtr& q, const std::string& x) {
  if (q->kind == Kind::binary && (q->name == "//" || q->name == "%") &&
      q->args[0]->kind == Kind::index && q->args[0]->name == x && q->args[1]->kind == Kind::number)
    return q->args[1]->integer;
  for (const ExprPtr& a : q->args)
    if (const int64_t c = merged_with(a, x)) return c;
  return 0;
}

struct OutputIndices {
  Indices at;                      // for Elements::element of the output node
  std::vector<std::string> names;  // the indices in them, in the order of memory
};

OutputIndices plain_output(Elements& g, const Node& out) {
  OutputIndices o;
  for (int d = 0; d < out.rank(); ++d) {
    o.names.push_back(fmt::format("x{}", d));
    o.at.push_back(g.index(o.names.back(), out.shape[d]));
  }
  return o;
}

// The output with merged dimensions as two indices each; true when there are any.
bool split_output(Elements& g, const Node& out, const ExprPtr& q, OutputIndices& o) {
  OutputIndices split;
  for (int d = 0; d < out.rank(); ++d) {
    const std::string x = fmt::format("x{}", d);
    const int64_t c = merged_with(q, x);
    if (c == 0) {
      split.names.push_back(x);
      split.at.push_back(o.at[d]);
      continue;
    }
    const ExprPtr high = g.index(x + "a", g.split(out.shape[d], integer(c)).quotient);
    const ExprPtr low = g.index(x + "b", integer(c));
    split.names.insert(split.names.end(), {x + "a", x + "b"});
    split.at.push_back(binary("+", binary("*", high, integer(c)), low));
  }
  const bool changed = split.names != o.names;
  o = split;
  return changed;
}

// Does every row keep a key for certain? Tries key 0 and, where rows and keys have the same extent,
// the row's own.
bool every_row_keeps(const ExprPtr& keep, const Form& form,
                     const std::map<std::string, ExprPtr>& extents) {
  const auto with_key = [&](const ExprPtr& key) {
    const ExprPtr at = rewrite(keep, [&](const ExprPtr& x) -> ExprPtr {
      return x->kind == Kind::index && x->name == "j" ? key : nullptr;
    });
    const ExprPtr known = simplify_bounds(at, extents);
    return known->kind == Kind::number && known->integer != 0;
  };
  if (with_key(integer(0))) return true;
  return form.M.name == form.N.name && form.M.constant == form.N.constant &&
         with_key(leaf(Kind::index, Type::integer, "i"));
}

bool no_key_kept(const ExprPtr& keep, const Node& at, Diagnostics& diagnostics) {
  if (keep->kind != Kind::number || keep->integer) return false;
  diagnostics.error("spec.operand", at.span, "no query keeps any key");
  return true;
}

// The weights without a softmax: 0 where a key is dropped, whatever the mask was written with.
bool set_weight(Term& term, const ExprPtr& weight, const std::map<std::string, ExprPtr>& extents,
                const Node& contraction, Diagnostics& diagnostics) {
  const Score split = split_weight(weight);
  const ExprPtr keep = simplify_bounds(split.keep, extents);
  if (no_key_kept(keep, contraction, diagnostics)) return false;
  if (mentions(split.value, Kind::infinity)) {
    diagnostics
        .error("spec.operand", contraction.span,
               "an infinity in the scores does not become a weight of 0, so it is not a mask")
        .hint = "mask the weights: torch.where(keep, weights, 0.0)";
    return false;
  }
  term.score = split.value;
  if (keep->kind != Kind::number) term.keep = keep;
  return true;
}

// Of a mask by a number below this nobody asks whether scores may be as low.
constexpr double kBeyondAnyScore = -1e30;

// Whether a number as large as a finite mask's stands in it, which could take one off again.
bool has_such_a_number(const ExprPtr& e) {
  return (e->kind == Kind::number && std::fabs(e->value) >= -kBeyondAnyScore / 1e3) ||
         std::any_of(e->args.begin(), e->args.end(), has_such_a_number);
}

// The score map and the predicate of the term, and how finite masks are read.
bool set_score(Form& form, Term& term, const ExprPtr& scores,
               const std::map<std::string, ExprPtr>& extents, const Node& softmax,
               Diagnostics& diagnostics) {
  Score split = split_score(scores);
  split.keep = simplify_bounds(split.keep, extents);
  if (no_key_kept(split.keep, softmax, diagnostics)) return false;
  // Beside a sink a row without a key is no uniform softmax: the sink takes it.
  const bool certain = !split.finite || term.sink || every_row_keeps(split.keep, form, extents);
  if (!certain && split.added) {
    // Added to the score, the number shifts a row without a key as a whole: nothing is dropped.
    form.notes.push_back(
        {"a large negative number is added to scores of rows that may keep no key; "
         "it is kept as part of the score",
         softmax.span});
    term.score = scores;
    return true;
  }
  if (mentions(split.value, Kind::infinity)) {
    diagnostics
        .error("spec.operand", softmax.span,
               "an infinity in the scores is neither added nor chosen, so it is not a mask")
        .hint = "mask with masked_fill(..., float('-inf')) or torch.where";
    return false;
  }
  if (split.finite && has_such_a_number(split.value)) {
    diagnostics
        .error("spec.mask", softmax.span,
               fmt::format("scores are dropped by {}, and a number as large is in what is left of "
                           "them, {}",
                           split.number, print(split.value)))
        .hint = "drop them with -torch.inf, once";
    return false;
  }
  term.score = split.value;
  if (split.keep->kind != Kind::number) term.keep = split.keep;
  term.finite_mask = !certain;
  if (split.finite && split.number > kBeyondAnyScore)
    form.notes.push_back(
        {fmt::format("a mask by {} is taken for one by -inf: kept scores must lie above {}",
                     split.number, split.number + 100),
         softmax.span});
  if (!certain)
    form.notes.push_back(
        {"masked scores are a large finite number and some row may keep no key: "
         "such a row is a uniform softmax",
         softmax.span});
  return true;
}

// Adds one term to the form, and the form's sizes and output with the first.
std::optional<Roles> add_term(Elements& elements, const Graph& graph, const Parts& parts,
                              const OutputIndices& output, Form& form, Diagnostics& diagnostics) {
  std::optional<Roles> roles = assign_roles(elements, parts, output.names, form, diagnostics);
  if (!roles) return std::nullopt;
  Term term;
  term.q = roles->q;
  term.k = roles->k;
  term.v = roles->v;
  term.more = roles->more;
  form.epilogue = roles->rename(parts.epilogue);
  const ExprPtr scores = roles->rename(parts.scores);
  const Node& softmax = graph.nodes[parts.softmax];
  term.normaliser = parts.normaliser;
  if (parts.sink) term.sink = roles->rename(parts.sink);
  if (parts.factor) term.factor = roles->rename(parts.factor);
  if (term.factor &&
      (mentions(term.factor, Kind::index, "d") || mentions(term.factor, Kind::index, "j") ||
       !reduced_reads(term.factor).empty())) {
    diagnostics.error(
        "spec.several_terms", graph.nodes[parts.contraction].span,
        fmt::format("a softmax term is multiplied by {}, which is not one number per row",
                    print(term.factor)));
    return std::nullopt;
  }
  const bool set = term.normaliser == Normaliser::softmax
                       ? set_score(form, term, scores, roles->extents, softmax, diagnostics)
                       : set_weight(term, scores, roles->extents, softmax, diagnostics);
  if (!set) return std::nullopt;
  form.terms.push_back(std::move(term));
  return roles;
}

bool same_sizes(const Form& a, const Form& b) {
  const auto same = [](const Size& x, const Size& y) {
    return x.name == y.name && x.constant == y.constant;
  };
  return same(a.B, b.B) && same(a.H, b.H) && same(a.G, b.G) && same(a.M, b.M) && same(a.N, b.N) &&
         same(a.D, b.D) && same(a.Dv, b.Dv) && a.output_dims == b.output_dims;
}

bool same_read(const Operand& a, const Operand& b) {
  const bool rows = a.row || b.row;
  return !rows && a.argument == b.argument &&
         std::equal(a.indices.begin(), a.indices.end(), b.indices.begin(), b.indices.end(), equal);
}

}  // namespace

std::string Form::operand_name(size_t term, char operand, size_t product) const {
  const auto of = [&](size_t t, size_t p) -> const Operand& {
    if (p) return operand == 'q' ? terms[t].more[p - 1].q : terms[t].more[p - 1].k;
    return operand == 'q' ? terms[t].q : operand == 'k' ? terms[t].k : terms[t].v;
  };
  size_t number = 1;  // of the products of all terms
  for (size_t t = 0; t <= term; ++t)
    for (size_t p = 0; p <= terms[t].more.size(); ++p, ++number) {
      if (t == term && p == product)
        return operand + (number > 1 ? std::to_string(number) : std::string());
      if ((p == 0 || operand != 'v') && same_read(of(t, p), of(term, product)))
        return operand_name(t, operand, p);
    }
  return {};
}

std::string word(Training training) {
  constexpr const char* kWords[] = {"", "forward", "backward"};
  return kWords[static_cast<int>(training)];
}

Training training_of(std::string_view said) {
  for (const Training t : {Training::forward, Training::backward})
    if (word(t) == said) return t;
  return Training::none;
}

const Argument* Form::argument(const std::string& name) const {
  for (const Argument& a : arguments)
    if (a.name == name) return &a;
  return nullptr;
}

std::string Form::user_name(const std::string& kernel_name) const {
  if (argument(kernel_name) || !kernel_name.ends_with(kGiven)) return kernel_name;
  return kernel_name.substr(0, kernel_name.size() - kGiven.size());
}

bool Form::returns(const std::string& output) const {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const Output& o) { return o.name == output; });
}

std::optional<Form> recognise_attention(const Graph& graph, Diagnostics& diagnostics) {
  Elements elements(graph, diagnostics);
  const Node out = graph.nodes[graph.outputs[0]];
  OutputIndices output = plain_output(elements, out);
  std::optional<Parts> parts = find_parts(elements, output.at, 0, diagnostics);
  if (parts && split_output(elements, out, parts->q, output))
    parts = find_parts(elements, output.at, 0, diagnostics);
  if (!parts) return std::nullopt;

  Form form;
  form.name = graph.name;
  form.dtype = graph.dtype;
  form.arguments = graph.arguments;
  form.notes = graph.notes;
  const Form head = form;
  std::optional<Roles> roles = add_term(elements, graph, *parts, output, form, diagnostics);
  if (!roles) return std::nullopt;
  if (graph.outputs.size() > 1 &&
      !second_output(elements, graph, *parts, *roles, output.names, form, diagnostics))
    return std::nullopt;
  for (size_t t = 1; t < parts->terms; ++t) {
    const auto more = find_parts(elements, output.at, t, diagnostics);
    Form own = head;
    if (!more || !add_term(elements, graph, *more, output, own, diagnostics)) return std::nullopt;
    if (!same_sizes(form, own)) {
      diagnostics.error("spec.several_terms", graph.nodes[more->contraction].span,
                        "the terms of the output differ in heads, lengths or head dimensions");
      return std::nullopt;
    }
    form.terms.push_back(std::move(own.terms[0]));
    form.notes.insert(form.notes.end(), own.notes.begin() + head.notes.size(), own.notes.end());
  }
  form.roundings = elements.roundings();
  return form;
}

std::optional<Form> form_of(Graph graph, Diagnostics& diagnostics) {
  const Training training = graph.training;
  std::optional<Form> form = recognise(std::move(graph), diagnostics);
  if (!form || training == Training::none) return form;
  std::optional<Form> gradients = gradients_of(*form, diagnostics);
  if (!gradients || training == Training::backward) return gradients;
  form->saves = takes_saved(*form);
  return form;
}

}  // namespace kw::spec
