// Finds the contraction with v and the product of q and k, from the output inward; what stands
// between them is normaliser.cpp's.
#include "operator/recognise/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operator/recognise/rows.h"

namespace kw::spec {
namespace {

void collect_reads(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (Elements::reduced(e) >= 0) {
    for (const ExprPtr& seen : out)
      if (equal(seen, e)) return;
    out.push_back(e);
    return;
  }
  for (const ExprPtr& a : e->args) collect_reads(a, out);
}

}  // namespace

std::vector<ExprPtr> reduced_reads(const ExprPtr& e) {
  std::vector<ExprPtr> out;
  collect_reads(e, out);
  return out;
}

void factors_of(const ExprPtr& e, std::vector<ExprPtr>& out, double& constant) {
  if (e->kind == Kind::number && e->type == Type::real) {
    constant *= e->value;
  } else if (e->kind == Kind::unary && e->name == "-") {
    constant = -constant;
    factors_of(e->args[0], out, constant);
  } else if (e->kind == Kind::binary && e->name == "*") {
    factors_of(e->args[0], out, constant);
    factors_of(e->args[1], out, constant);
  } else if (e->kind == Kind::binary && e->name == "/" && !reduced_reads(e->args[0]).empty()) {
    factors_of(e->args[0], out, constant);
    out.push_back(binary("/", real(1), e->args[1]));
  } else {
    out.push_back(e);
  }
}

ExprPtr product(const std::vector<ExprPtr>& factors, double constant) {
  ExprPtr out;
  for (const ExprPtr& f : factors) out = out ? binary("*", out, f) : f;
  return out ? binary("*", out, real(constant)) : real(constant);
}

bool is_argument_read(const ExprPtr& e) {
  return e->kind == Kind::read && Elements::reduced(e) < 0;
}

namespace {

class Finder {
 public:
  Finder(Elements& elements, size_t term, Diagnostics& diagnostics)
      : elements_(elements), term_(term), diagnostics_(diagnostics) {}

  std::optional<Parts> find(const Indices& output) {
    const int out = elements_.graph().outputs[0];
    if (output_contraction(out, output) && value_rows(output) && one_softmax() &&
        find_normaliser(elements_, parts_, weighted_, diagnostics_) && epilogue() && scores())
      return parts_;
    return std::nullopt;
  }

 private:
  bool refuse(const std::string& code, Span span, const std::string& why,
              const std::string& hint = {}) {
    if (!elements_.failed() && !diagnostics_.has_errors())
      diagnostics_.error(code, std::move(span), why).hint = hint;
    return false;
  }

  // output = epilogue(sum over j of ...)
  bool output_contraction(int out, const Indices& output) {
    const ExprPtr e = elements_.element(out, output);
    if (elements_.failed()) return false;
    const Span span = elements_.node(out).span;
    std::vector<ExprPtr> sums, pointwise;
    for (const ExprPtr& r : reduced_reads(e)) {
      if (elements_.reduction(Elements::reduced(r)) != Reduction::sum) continue;
      if (weighs_values(r, &Finder::holds_softmax)) sums.push_back(r);
      if (weighs_values(r, &Finder::holds_score)) pointwise.push_back(r);
    }
    if (sums.empty()) sums = pointwise;
    if (sums.empty())
      return refuse("spec.not_attention", span,
                    "the output holds no product of a softmax over keys with v, so this is not "
                    "attention",
                    "attention is softmax(score(q @ k.T)) @ v, or f(score(q @ k.T)) @ v; a product "
                    "of matrices is f(a @ b), or the sums of its rows");
    const ExprPtr o = leaf(Kind::output, Type::real, "o");
    parts_.terms = sums.size();
    contracted_ = sums[std::min(term_, sums.size() - 1)];
    parts_.epilogue = sums.size() > 1 ? o : replace(e, contracted_, o);
    if (sums.size() > 1) {
      const auto factors = coefficients(e, sums);
      if (!factors) return refuse_terms(sums.size(), span);
      parts_.factor = (*factors)[term_];
    }
    parts_.contraction = Elements::reduced(contracted_);
    parts_.key = elements_.index("j", elements_.extent(parts_.contraction));
    weighted_ = elements_.body(parts_.contraction, contracted_->args, parts_.key);
    return !elements_.failed();
  }

  bool refuse_terms(size_t count, const Span& span) {
    return refuse("spec.several_terms", span,
                  fmt::format("the output holds {} softmax terms and is not their sum", count),
                  "supported are sums of softmax terms, each times a number of its row");
  }

  // Weights that are a sum of softmaxes, (p - x p') v: each is a term of its own.
  bool one_softmax() {
    std::vector<ExprPtr> all;
    for (const ExprPtr& r : reduced_reads(weighted_))
      if (elements_.reduction(Elements::reduced(r)) == Reduction::softmax) all.push_back(r);
    if (all.size() < 2) return true;
    const Span span = elements_.node(parts_.contraction).span;
    const auto parts = coefficients(weighted_, all);
    if (!parts || parts_.terms > 1) return refuse_terms(all.size() * parts_.terms, span);
    parts_.terms = all.size();
    std::vector<ExprPtr> factors, fixed;
    double constant = 1;
    factors_of((*parts)[term_], factors, constant);
    weighted_ = all[term_];
    for (const ExprPtr& f : factors)
      if (mentions(f, Kind::index, "j"))
        weighted_ = binary("*", weighted_, f);
      else
        fixed.push_back(f);
    parts_.factor = product(fixed, constant);
    return true;
  }

  // Is a sum the product with v: does its body hold an argument read at the summed index, and
  // something that makes the rest of it weights?
  bool weighs_values(const ExprPtr& sum, bool (Finder::*makes_weights)(const ExprPtr&)) {
    const int n = Elements::reduced(sum);
    const ExprPtr probe = elements_.index("%probe", elements_.extent(n));
    const std::vector<ExprPtr> sides = elements_.factors(n, sum->args, probe);
    if (sides.size() == 2)
      for (const auto& [value, weight] : {std::pair(sides[1], sides[0]), {sides[0], sides[1]}})
        if (reads_at(value, "%probe") && !(this->*makes_weights)(value) &&
            (this->*makes_weights)(weight))
          return true;
    std::vector<ExprPtr> factors;
    double constant = 1;
    const ExprPtr body = elements_.body(n, sum->args, probe);
    factors_of(body, factors, constant);
    const bool reads_v = std::any_of(factors.begin(), factors.end(), [](const ExprPtr& f) {
      return is_argument_read(f) && mentions(f, Kind::index, "%probe");
    });
    return reads_v && (this->*makes_weights)(body);
  }

  // Whether an argument is read at the index.
  static bool reads_at(const ExprPtr& e, const std::string& index) {
    if (is_argument_read(e) && mentions(e, Kind::index, index)) return true;
    return std::any_of(e->args.begin(), e->args.end(),
                       [&](const ExprPtr& a) { return reads_at(a, index); });
  }

  // Where the rows of v are changed before the product, what is summed is put as if they were not.
  bool value_rows(const Indices& output) {
    std::vector<ExprPtr> sides =
        elements_.factors(parts_.contraction, contracted_->args, parts_.key);
    if (sides.size() != 2) return true;
    for (const bool first : {false, true}) {
      const ExprPtr &value = sides[first ? 0 : 1], &weight = sides[first ? 1 : 0];
      if (is_argument_read(value)) return true;
      if (!reads_at(value, "j") || holds_softmax(value) || holds_score(value)) continue;
      const std::string column = only_of(value, weight, output);
      std::vector<ExprPtr> factors;
      double constant = 1;
      factors_of(value, factors, constant);
      const bool alone =
          std::count_if(factors.begin(), factors.end(),
                        [](const ExprPtr& f) {
                          return is_argument_read(f) && mentions(f, Kind::index, "j");
                        }) == 1 &&
          std::all_of(factors.begin(), factors.end(), [&](const ExprPtr& f) {
            const bool of_key = mentions(f, Kind::index, "j");
            return is_argument_read(f) && of_key ? true
                                                 : !of_key && !mentions(f, Kind::index, column);
          });
      if (column.empty() || alone) return true;
      const auto row = read_operand(elements_, value, column, parts_.contraction, diagnostics_);
      if (!row) return false;
      parts_.v_row = row->map;
      weighted_ = binary("*", weight, row->read);
      return true;
    }
    return true;
  }

  // The output index that one side mentions and the other does not: the column of the values.
  static std::string only_of(const ExprPtr& value, const ExprPtr& weight, const Indices& output) {
    for (const ExprPtr& x : output)
      if (x->kind == Kind::index && mentions(value, Kind::index, x->name) &&
          !mentions(weight, Kind::index, x->name))
        return x->name;
    return "";
  }

  bool holds_softmax(const ExprPtr& body) {
    if (mentions_exponential(body)) return true;
    for (const ExprPtr& r : reduced_reads(body))
      if (elements_.reduction(Elements::reduced(r)) == Reduction::softmax) return true;
    return false;
  }

  // A sum of products of arguments, at the summed index.
  bool holds_score(const ExprPtr& body) {
    for (const ExprPtr& r : reduced_reads(body)) {
      const int n = Elements::reduced(r);
      if (elements_.reduction(n) != Reduction::sum || !mentions(r, Kind::index, "%probe")) continue;
      const std::vector<ExprPtr> sides =
          sides_of(n, r->args, elements_.index("%dim", elements_.extent(n)));
      const auto at_dim = [](const ExprPtr& side) { return reads_at(side, "%dim"); };
      std::vector<ExprPtr> read;
      std::copy_if(sides.begin(), sides.end(), std::back_inserter(read), at_dim);
      if (read.size() == 2 && !equal(read[0], read[1])) return true;
    }
    return false;
  }

  // What a sum multiplies: the two operands of a product of matrices, or the factors of its body.
  std::vector<ExprPtr> sides_of(int n, const Indices& at, const ExprPtr& r) {
    std::vector<ExprPtr> sides = elements_.factors(n, at, r);
    if (sides.size() == 2) return sides;
    std::vector<ExprPtr> factors;
    double constant = 1;
    factors_of(sides[0], factors, constant);
    if (constant != 1) factors.push_back(real(constant));
    return factors;
  }

  static bool mentions_exponential(const ExprPtr& e) {
    return mentions(e, Kind::unary, "exp") || mentions(e, Kind::unary, "exp2");
  }

  bool epilogue() {
    const std::vector<ExprPtr> rest = reduced_reads(parts_.epilogue);
    return rest.empty() ||
           refuse("spec.operator", elements_.node(Elements::reduced(rest[0])).span,
                  "the output holds a reduction that is not part of one attention term",
                  "apply it outside");
  }

  // normalised = scores over products of q and k
  bool scores() {
    const std::vector<ExprPtr> sums = reduced_reads(parts_.normalised);
    const Span span = elements_.node(parts_.softmax).span;
    const bool all_sums = std::all_of(sums.begin(), sums.end(), [&](const ExprPtr& s) {
      return elements_.reduction(Elements::reduced(s)) == Reduction::sum;
    });
    if (sums.empty() || !all_sums)
      return refuse("spec.not_attention", span,
                    "the softmax's argument holds something else than products of q and k");
    if (sums.size() > kMostProducts)
      return refuse("spec.several_products", span,
                    fmt::format("the scores hold {} products of q and k; {} are supported",
                                sums.size(), kMostProducts),
                    "join q's along the head dimension, and k's: torch.cat outside");
    std::vector<ProductParts> found;
    std::vector<ExprPtr> values;  // what each product is, over its leaf
    for (const ExprPtr& sum : sums)
      if (!score_product(sum, found, values)) return false;
    // The first whose keys have the heads of v is the term's own.
    size_t own = 0;
    while (own < found.size() && !has_heads_of_values(found[own])) ++own;
    if (own == found.size()) own = 0;
    parts_.scores = parts_.normalised;
    size_t number = 1;
    for (size_t n = 0; n < found.size(); ++n) {
      const ExprPtr leaf = score_leaf(n == own ? 0 : number++);
      const ExprPtr value = replace(values[n], score_leaf(0), leaf);
      parts_.scores = replace(parts_.scores, sums[n], value);
      if (n != own) parts_.more.push_back(found[n]);
    }
    static_cast<ProductParts&>(parts_) = found[own];
    elements_.index("d", parts_.dim);
    return true;
  }

  // The operands of one product, and its value: the product times what does not depend on a column.
  bool score_product(const ExprPtr& sum, std::vector<ProductParts>& found,
                     std::vector<ExprPtr>& values) {
    ProductParts p;
    p.product = Elements::reduced(sum);
    p.dim = elements_.extent(p.product);
    const std::vector<ExprPtr> sides = sides_of(p.product, sum->args, elements_.index("d", p.dim));
    if (elements_.failed()) return false;
    std::vector<ExprPtr> outside = {score_leaf(0)};
    double constant = 1;
    for (const ExprPtr& side : sides)
      if (!operand(p, side, outside, constant)) return false;
    if (!p.q || !p.k)
      return refuse("spec.operand", elements_.node(p.product).span,
                    "the scores are not a product of one argument read at the queries and one read "
                    "at the keys");
    found.push_back(p);
    values.push_back(product(outside, constant));
    return true;
  }

  // Whether k is read at the same dimensions of the output as v is, of those that q has.
  bool has_heads_of_values(const ProductParts& p) const {
    for (const auto& [name, extent] : elements_.extents())
      if (name != "j" && name != "d" && mentions(p.q, Kind::index, name) &&
          mentions(p.k, Kind::index, name) != mentions(parts_.v, Kind::index, name))
        return false;
    return true;
  }

  // A side of the product: what does not depend on the column is a factor of the score.
  bool operand(ProductParts& p, const ExprPtr& side, std::vector<ExprPtr>& outside,
               double& constant) {
    std::vector<ExprPtr> factors, own;
    factors_of(side, factors, constant);
    for (const ExprPtr& f : factors) {
      const bool fixed = !mentions(f, Kind::index, "d") && reduced_reads(f).empty();
      (fixed ? outside : own).push_back(f);
    }
    if (own.empty()) return true;
    const ExprPtr rows = product(own, 1);
    const bool is_key = mentions(rows, Kind::index, "j");
    ExprPtr& read = is_key ? p.k : p.q;
    if (read)
      return refuse("spec.operand", elements_.node(p.product).span,
                    fmt::format("two factors of the score are read at the {}: {} and {}",
                                is_key ? "keys" : "queries", print(read), print(rows)),
                    "compute q and k outside, and pass them");
    const auto row = read_operand(elements_, rows, "d", p.product, diagnostics_);
    if (!row) return false;
    read = row->read;
    (is_key ? p.k_row : p.q_row) = row->map;
    return true;
  }

  Elements& elements_;
  const size_t term_;
  Diagnostics& diagnostics_;
  Parts parts_;
  ExprPtr weighted_, contracted_;
};

}  // namespace

std::optional<Parts> find_parts(Elements& elements, const Indices& output, size_t term,
                                Diagnostics& diagnostics) {
  return Finder(elements, term, diagnostics).find(output);
}

}  // namespace kw::spec
