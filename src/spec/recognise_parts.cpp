// Finds the contraction with v, the softmax and the product of q and k, from the output inward.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "spec/recognise.h"

namespace kw::spec {
namespace {

// The distinct reads of reduced nodes in e; two reads of one node at other indices are two.
void reduced_reads(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (Elements::reduced(e) >= 0) {
    for (const ExprPtr& seen : out)
      if (equal(seen, e)) return;
    out.push_back(e);
    return;
  }
  for (const ExprPtr& a : e->args) reduced_reads(a, out);
}

std::vector<ExprPtr> reduced_reads(const ExprPtr& e) {
  std::vector<ExprPtr> out;
  reduced_reads(e, out);
  return out;
}

// e as a product of factors and a constant; -x is x times -1, x / y has the factor 1 / y.
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

ExprPtr replace(const ExprPtr& e, const ExprPtr& what, const ExprPtr& by) {
  return rewrite(e, [&](const ExprPtr& x) { return equal(x, what) ? by : nullptr; });
}

bool is_argument_read(const ExprPtr& e) {
  return e->kind == Kind::read && Elements::reduced(e) < 0;
}

class Finder {
 public:
  Finder(Elements& elements, Diagnostics& diagnostics)
      : elements_(elements), diagnostics_(diagnostics) {}

  std::optional<Parts> find(const Indices& output) {
    const int out = elements_.graph().outputs[0];
    if (output_contraction(out, output) && normaliser() && scores()) return parts_;
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
    std::vector<ExprPtr> sums;
    for (const ExprPtr& r : reduced_reads(e)) {
      if (elements_.reduction(Elements::reduced(r)) == Reduction::sum && holds_softmax(r))
        sums.push_back(r);
      else
        others_.push_back(r);
    }
    if (sums.empty())
      return refuse("spec.not_attention", span,
                    "the output holds no product of a softmax over keys with v, so this is not "
                    "attention",
                    "attention is softmax(score(q @ k.T)) @ v");
    if (sums.size() > 1)
      return refuse(
          "spec.several_terms", span,
          fmt::format("the output holds {} softmax terms; one is supported", sums.size()));
    parts_.contraction = Elements::reduced(sums[0]);
    parts_.epilogue = replace(e, sums[0], leaf(Kind::output, Type::real, "o"));
    parts_.key = elements_.index("j", elements_.extent(parts_.contraction));
    weighted_ = elements_.body(parts_.contraction, sums[0]->args, parts_.key);
    return !elements_.failed();
  }

  // Is a sum the product with v: does its body hold an argument read at the summed index, and a
  // softmax or an exponential?
  bool holds_softmax(const ExprPtr& sum) {
    const int n = Elements::reduced(sum);
    const ExprPtr probe = elements_.index("%probe", elements_.extent(n));
    const ExprPtr body = elements_.body(n, sum->args, probe);
    std::vector<ExprPtr> factors;
    double constant = 1;
    factors_of(body, factors, constant);
    const bool reads_v = std::any_of(factors.begin(), factors.end(), [](const ExprPtr& f) {
      return is_argument_read(f) && mentions(f, Kind::index, "%probe");
    });
    if (!reads_v) return false;
    if (mentions_exponential(body)) return true;
    for (const ExprPtr& r : reduced_reads(body))
      if (elements_.reduction(Elements::reduced(r)) == Reduction::softmax) return true;
    return false;
  }

  static bool mentions_exponential(const ExprPtr& e) {
    return mentions(e, Kind::unary, "exp") || mentions(e, Kind::unary, "exp2");
  }

  // weighted = P * v[...]; P is a softmax over the same keys.
  bool normaliser() {
    std::vector<ExprPtr> factors, weights;
    double constant = 1;
    factors_of(weighted_, factors, constant);
    const Span span = elements_.node(parts_.contraction).span;
    for (const ExprPtr& f : factors) {
      if (is_argument_read(f) && mentions(f, Kind::index, "j") && !parts_.v)
        parts_.v = f;
      else
        weights.push_back(f);
    }
    if (!parts_.v)
      return refuse("spec.operand", span,
                    "what the softmax is multiplied by is not an argument of the function, read at "
                    "the keys",
                    "compute v outside, and pass it");
    if (weights.size() == 1 && is_softmax(weights[0])) {
      parts_.epilogue = replace(parts_.epilogue, leaf(Kind::output, Type::real, "o"),
                                binary("*", leaf(Kind::output, Type::real, "o"), real(constant)));
      return softmax(weights[0]);
    }
    return written_out(weights, constant);
  }

  bool is_softmax(const ExprPtr& e) const {
    const int n = Elements::reduced(e);
    return n >= 0 && elements_.reduction(n) == Reduction::softmax;
  }

  bool softmax(const ExprPtr& weight) {
    parts_.softmax = Elements::reduced(weight);
    // The softmax runs over the keys if a change of its own index leaves the same body.
    const ExprPtr probe = elements_.index("%probe", elements_.extent(parts_.softmax));
    const ExprPtr at_probe = elements_.body(parts_.softmax, weight->args, probe);
    if (elements_.failed()) return false;
    if (mentions(at_probe, Kind::index, "j"))
      return refuse("spec.softmax_axis", elements_.node(parts_.softmax).span,
                    fmt::format("softmax runs over {}, but the product with v sums over {}",
                                described(elements_.extent(parts_.softmax)),
                                described(elements_.extent(parts_.contraction))),
                    "take the softmax over the dimension of the keys, dim=-1 in q @ k.T");
    parts_.normalised = replace(at_probe, probe, parts_.key);
    return true;
  }

  // A size in the user's words: "the size of dimension 2 of q".
  std::string described(const ExprPtr& size) const {
    const std::vector<Argument>& arguments = elements_.graph().arguments;
    for (size_t a = 0; a < arguments.size(); ++a) {
      const std::vector<ExprPtr>& shape = elements_.node(static_cast<int>(a)).shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (size->kind == Kind::size && equal(shape[d], size))
          return fmt::format("an index as long as dimension {} of {}", d, arguments[a].name);
    }
    return fmt::format("an index of length {}", print(size));
  }

  // exp(x - max) / sum(exp(x - max)), or the division after the product with v.
  bool written_out(const std::vector<ExprPtr>& weights, double constant) {
    const Span span = elements_.node(parts_.contraction).span;
    const auto not_softmax = [&] {
      return refuse("spec.not_attention", span, "what multiplies v is not a softmax over the keys",
                    "normalise the scores with torch.softmax(..., dim=-1)");
    };
    ExprPtr exponential, divisor;
    for (const ExprPtr& w : weights) {
      const bool inverse = w->kind == Kind::binary && w->name == "/";
      if (w->kind == Kind::unary && (w->name == "exp" || w->name == "exp2") && !exponential)
        exponential = w;
      else if (inverse && w->args[0]->kind == Kind::unary && !exponential && !divisor) {
        exponential = w->args[0];
        divisor = w->args[1];
      } else if (inverse && !divisor)
        divisor = w->args[1];
      else
        return not_softmax();
    }
    if (!exponential || constant != 1) return not_softmax();
    if (!divisor && minus_logsumexp(exponential->args[0])) return true;
    if (!divisor && !take_divisor_from_epilogue(divisor)) return not_softmax();
    const int n = Elements::reduced(divisor);
    if (n < 0 || elements_.reduction(n) != Reduction::sum) return not_softmax();
    const ExprPtr probe = elements_.index("%probe", elements_.extent(n));
    const ExprPtr summed = elements_.body(n, divisor->args, probe);
    if (!equal(replace(summed, probe, parts_.key), exponential)) return not_softmax();
    if (mentions(summed, Kind::index, "j"))
      return refuse("spec.softmax_axis", elements_.node(n).span,
                    "the exponentials are not summed over the keys");
    parts_.softmax = n;
    parts_.normalised = without_maximum(exponential->args[0]);
    if (exponential->name == "exp2")
      parts_.normalised = binary("*", parts_.normalised, real(std::log(2.0)));
    return true;
  }

  // exp(x - logsumexp(x))
  bool minus_logsumexp(const ExprPtr& x) {
    if (x->kind != Kind::binary || x->name != "-") return false;
    const int n = Elements::reduced(x->args[1]);
    if (n < 0 || elements_.reduction(n) != Reduction::logsumexp) return false;
    if (!equal(elements_.body(n, x->args[1]->args, parts_.key), x->args[0])) return false;
    parts_.softmax = n;
    parts_.normalised = x->args[0];
    return true;
  }

  // epilogue = ... o / sum
  bool take_divisor_from_epilogue(ExprPtr& divisor) {
    for (const ExprPtr& r : others_) {
      const ExprPtr o = leaf(Kind::output, Type::real, "o");
      const ExprPtr without = replace(parts_.epilogue, binary("/", o, r), o);
      if (mentions(without, Kind::read, r->name)) continue;
      parts_.epilogue = without;
      divisor = r;
      return true;
    }
    return false;
  }

  // A row's maximum, subtracted for safety, cancels.
  ExprPtr without_maximum(const ExprPtr& x) const {
    return rewrite(x, [&](const ExprPtr& e) -> ExprPtr {
      const int n = Elements::reduced(e);
      return n >= 0 && elements_.reduction(n) == Reduction::max ? real(0) : nullptr;
    });
  }

  // normalised = scores over one product of q and k
  bool scores() {
    const std::vector<ExprPtr> sums = reduced_reads(parts_.normalised);
    const Span span = elements_.node(parts_.softmax).span;
    if (sums.size() != 1 || elements_.reduction(Elements::reduced(sums[0])) != Reduction::sum)
      return refuse("spec.not_attention", span,
                    fmt::format("the softmax's argument holds {} products of q and k; one is "
                                "supported",
                                sums.size()));
    parts_.product = Elements::reduced(sums[0]);
    parts_.dim = elements_.index("d", elements_.extent(parts_.product));
    const ExprPtr body = elements_.body(parts_.product, sums[0]->args, parts_.dim);
    if (elements_.failed()) return false;
    std::vector<ExprPtr> factors, outside;
    double constant = 1;
    factors_of(body, factors, constant);
    for (const ExprPtr& f : factors) {
      if (!mentions(f, Kind::index, "d")) {
        outside.push_back(f);
        continue;
      }
      ExprPtr& operand = mentions(f, Kind::index, "j") ? parts_.k : parts_.q;
      if (!is_argument_read(f) || operand)
        return refuse("spec.operand", elements_.node(parts_.product).span,
                      fmt::format("a factor of the score is not an argument of the function but {}",
                                  print(f)),
                      "compute q and k outside, and pass them");
      operand = f;
    }
    if (!parts_.q || !parts_.k)
      return refuse("spec.operand", elements_.node(parts_.product).span,
                    "the scores are not a product of one argument read at the queries and one read "
                    "at the keys");
    outside.insert(outside.begin(), leaf(Kind::score, Type::real, "s"));
    parts_.scores = replace(parts_.normalised, sums[0], product(outside, constant));
    return true;
  }

  Elements& elements_;
  Diagnostics& diagnostics_;
  Parts parts_;
  std::vector<ExprPtr> others_;
  ExprPtr weighted_;
};

}  // namespace

std::optional<Parts> find_parts(Elements& elements, const Indices& output,
                                Diagnostics& diagnostics) {
  return Finder(elements, diagnostics).find(output);
}

}  // namespace kw::spec
