// What turns scores into weights of the values: a softmax, a division by the sum of the weights, or
// nothing.
//
// Of P in  o = epilogue(sum_j P(j) v[j])  these spellings are taken apart:
//   softmax(x)[j]                                       softmax
//   exp(x - max) / sum(exp(x - max)), exp(x - lse(x))   softmax; the division may stand behind v
//   softmax(cat([x, a]))[j], exp(x) / (exp(a) + sum(exp(x)))
//                                                       softmax with a sink: one more logit a
//   f(x) / sum(f(x))                                    sum
//   f(x)                                                none: x is one product of q and k
// A row's maximum, subtracted for safety, cancels, and with it whatever it is combined with (the
// larger of it and the sink), if the same is subtracted everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operator/expr/linear.h"
#include "operator/recognise/parts.h"

namespace kw::spec {
namespace {

bool is_exponential(const ExprPtr& e) {
  return e->kind == Kind::unary && (e->name == "exp" || e->name == "exp2");
}
// Of exp(x) or exp2(x), as a power of e.
ExprPtr exponent_of(const ExprPtr& e, const ExprPtr& x) {
  return e->name == "exp" ? x : binary("*", x, real(std::log(2.0)));
}

void addends_of(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (!is_binary(e, "+")) return out.push_back(e);
  addends_of(e->args[0], out);
  addends_of(e->args[1], out);
}

class NormaliserFinder {
 public:
  NormaliserFinder(Elements& elements, Parts& parts, Diagnostics& diagnostics)
      : elements_(elements), parts_(parts), diagnostics_(diagnostics) {}

  bool find(const ExprPtr& weighted) {
    std::vector<ExprPtr> factors;
    factors_of(weighted, factors, constant_);
    for (const ExprPtr& f : factors) {
      if (is_argument_read(f) && mentions(f, Kind::index, "j") && !parts_.v)
        parts_.v = f;
      else
        weights_.push_back(f);
    }
    if (!parts_.v)
      return refuse("spec.operand", contraction_span(),
                    "what the softmax is multiplied by is not an argument of the function, read at "
                    "the keys",
                    "compute v outside, and pass it");
    take_factor_of_output();
    if (weights_.size() == 1 && is(weights_[0], Reduction::softmax)) return softmax(weights_[0]);
    take_divisor();
    return exponentials() || shares() || pointwise() || not_attention();
  }

 private:
  bool refuse(const std::string& code, const Span& span, const std::string& why,
              const std::string& hint = {}) {
    refused_ = true;
    if (!elements_.failed() && !diagnostics_.has_errors())
      diagnostics_.error(code, span, why).hint = hint;
    return false;
  }
  bool not_attention() {
    if (refused_) return false;
    return refuse(
        "spec.not_attention", contraction_span(),
        "what multiplies v is neither a softmax over the keys nor computed from one score",
        "normalise the scores with torch.softmax(..., dim=-1)");
  }
  Span contraction_span() const { return elements_.node(parts_.contraction).span; }
  bool is(const ExprPtr& e, Reduction r) const {
    const int n = Elements::reduced(e);
    return n >= 0 && elements_.reduction(n) == r;
  }
  ExprPtr body_at(const ExprPtr& read, const ExprPtr& index) {
    return elements_.body(Elements::reduced(read), read->args, index);
  }
  // With what is known of the key.
  ExprPtr known(const ExprPtr& e) const {
    return simplify_bounds(e, {{"j", elements_.extents().at("j")}});
  }

  bool softmax(const ExprPtr& weight);
  bool split_sink(const ExprPtr& weight, const ExprPtr& probe, const ExprPtr& at_probe);
  void take_divisor();
  bool exponentials();
  bool minus_logsumexp(const ExprPtr& x);
  bool extra_logit(const std::vector<ExprPtr>& extras, const std::vector<ExprPtr>& dropped);
  bool shares();
  bool pointwise();
  void take_factor_of_output();

  std::string described(const ExprPtr& size) const;
  bool is_shift(const ExprPtr& e) const;
  ExprPtr without_shift(const ExprPtr& e, const ExprPtr& factor,
                        std::vector<ExprPtr>& dropped) const;
  ExprPtr without_maximum(const ExprPtr& x) const;

  Elements& elements_;
  Parts& parts_;
  Diagnostics& diagnostics_;
  std::vector<ExprPtr> weights_;  // the factors of P, without what divides it
  double constant_ = 1;
  ExprPtr divisor_;  // or null
  bool refused_ = false;
};

// softmax(x)[j] c v[j]: a factor that is the same for all keys, as FP8 values have one, is one of
// the output.
void NormaliserFinder::take_factor_of_output() {
  std::vector<ExprPtr> softmaxes, others;
  for (const ExprPtr& f : weights_) {
    const bool weight = is(f, Reduction::softmax);
    if (!weight && (mentions(f, Kind::index, "j") || !reduced_reads(f).empty())) return;
    (weight ? softmaxes : others).push_back(f);
  }
  if (softmaxes.size() != 1 || others.empty()) return;
  const ExprPtr o = leaf(Kind::output, Type::real, "o");
  parts_.epilogue = replace(parts_.epilogue, o, binary("*", o, product(others, 1)));
  weights_ = softmaxes;
}

bool NormaliserFinder::softmax(const ExprPtr& weight) {
  parts_.softmax = Elements::reduced(weight);
  const ExprPtr o = leaf(Kind::output, Type::real, "o");
  parts_.epilogue = replace(parts_.epilogue, o, binary("*", o, real(constant_)));
  // The softmax runs over the keys if a change of its own index leaves the same body.
  const ExprPtr probe = elements_.index("%probe", elements_.extent(parts_.softmax));
  const ExprPtr at_probe = body_at(weight, probe);
  if (elements_.failed()) return false;
  if (mentions(at_probe, Kind::index, "j"))
    return refuse("spec.softmax_axis", elements_.node(parts_.softmax).span,
                  fmt::format("softmax runs over {}, but the product with v sums over {}",
                              described(elements_.extent(parts_.softmax)),
                              described(elements_.extent(parts_.contraction))),
                  "take the softmax over the dimension of the keys, dim=-1 in q @ k.T");
  return split_sink(weight, probe, at_probe);
}

// The softmax may run over one logit more than there are keys, before or behind them.
bool NormaliserFinder::split_sink(const ExprPtr& weight, const ExprPtr& probe,
                                  const ExprPtr& at_probe) {
  const ExprPtr keys = elements_.extents().at("j");
  const Linear more =
      add(linear(elements_.extent(parts_.softmax)), linear(keys), -1);  // logits beside the keys
  ExprPtr place = parts_.key;                                           // of key j among the logits
  for (const ExprPtr& a : weight->args)
    if (mentions(a, Kind::index, "j")) place = a;
  const Linear shift = add(linear(place), linear(parts_.key), -1);
  const bool readable = more.is_constant() && shift.is_constant() && shift.constant >= 0 &&
                        shift.constant <= more.constant && more.constant <= 1;
  if (!readable)
    return refuse(
        "spec.softmax_axis", elements_.node(parts_.softmax).span,
        fmt::format("softmax runs over {} logits, and the product with v takes {} of them",
                    print(elements_.extent(parts_.softmax)), print(keys)),
        "supported are the keys and at most one logit more, the sink");
  std::vector<ExprPtr> dropped;
  parts_.normalised = without_shift(known(replace(at_probe, probe, place)), real(1), dropped);
  if (more.constant == 0) return true;
  std::vector<ExprPtr> from_sink;
  const ExprPtr at = shift.constant == 0 ? keys : integer(0);
  parts_.sink = without_shift(known(replace(at_probe, probe, at)), real(1), from_sink);
  const bool same = dropped.size() == from_sink.size() &&
                    std::equal(dropped.begin(), dropped.end(), from_sink.begin(), equal);
  return (same && reduced_reads(parts_.sink).empty()) ||
         refuse("spec.softmax_axis", elements_.node(parts_.softmax).span,
                "the logit beside the keys depends on scores", "pass it as an argument");
}

// A size in the user's words: "the size of dimension 2 of q".
std::string NormaliserFinder::described(const ExprPtr& size) const {
  const std::vector<Argument>& arguments = elements_.graph().arguments;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const std::vector<ExprPtr>& shape = elements_.node(static_cast<int>(a)).shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (size->kind == Kind::size && equal(shape[d], size))
        return fmt::format("an index as long as dimension {} of {}", d, arguments[a].name);
  }
  return fmt::format("an index of length {}", print(size));
}

// What divides the weights, before the product with v or behind it: an expression with a sum that
// is not a product of q and k.
void NormaliserFinder::take_divisor() {
  const auto holds_sum = [&](const ExprPtr& e) {
    for (const ExprPtr& r : reduced_reads(e))
      if (is(r, Reduction::sum) && !reduced_reads(body_at(r, parts_.key)).empty()) return true;
    return false;
  };
  for (ExprPtr& w : weights_) {
    if (divisor_ || !is_binary(w, "/") || !holds_sum(w->args[1])) continue;
    divisor_ = w->args[1];
    w = w->args[0];
  }
  if (divisor_) return;
  const ExprPtr o = leaf(Kind::output, Type::real, "o");
  const ExprPtr rest = rewrite(parts_.epilogue, [&](const ExprPtr& e) -> ExprPtr {
    if (divisor_ || !is_binary(e, "/") || !equal(e->args[0], o) || !holds_sum(e->args[1]))
      return nullptr;
    divisor_ = e->args[1];
    return o;
  });
  if (divisor_) parts_.epilogue = rest;
}

// exp(x) / (extras + sum(exp(x))), or exp(x - logsumexp(x)).
bool NormaliserFinder::exponentials() {
  ExprPtr exponential;
  for (const ExprPtr& w : weights_) {
    if (w->kind == Kind::number && w->value == 1) continue;
    if (exponential || !is_exponential(w)) return false;
    exponential = w;
  }
  if (!exponential || constant_ != 1) return false;
  if (!divisor_) return minus_logsumexp(exponential->args[0]);
  std::vector<ExprPtr> addends, extras;
  addends_of(divisor_, addends);
  ExprPtr sum;
  for (const ExprPtr& a : addends)
    is(a, Reduction::sum) && !sum ? void(sum = a) : extras.push_back(a);
  if (!sum) return false;
  const ExprPtr probe = elements_.index("%probe", elements_.extent(Elements::reduced(sum)));
  const ExprPtr summed = body_at(sum, probe);
  if (!equal(replace(summed, probe, parts_.key), exponential)) return false;
  parts_.softmax = Elements::reduced(sum);
  if (mentions(summed, Kind::index, "j"))
    return refuse("spec.softmax_axis", elements_.node(parts_.softmax).span,
                  "the exponentials are not summed over the keys");
  std::vector<ExprPtr> dropped;
  const ExprPtr x = without_shift(exponential->args[0], real(1), dropped);
  parts_.normalised = exponent_of(exponential, without_maximum(x));
  return extras.empty() || extra_logit(extras, dropped);
}

// What is added to the sum of the exponentials is the exponential of one logit more.
bool NormaliserFinder::extra_logit(const std::vector<ExprPtr>& extras,
                                   const std::vector<ExprPtr>& dropped) {
  std::vector<ExprPtr> from_extra;
  const ExprPtr& e = extras[0];
  if (is_exponential(e))
    parts_.sink = exponent_of(e, without_shift(e->args[0], real(1), from_extra));
  else
    parts_.sink = unary("log", e);
  const bool same = dropped.size() == from_extra.size() &&
                    std::equal(dropped.begin(), dropped.end(), from_extra.begin(), equal);
  return (extras.size() == 1 && same && reduced_reads(parts_.sink).empty()) ||
         refuse(
             "spec.not_attention", contraction_span(),
             "what is added to the sum of the exponentials is not one exponential, shifted by the "
             "same maximum as the scores are",
             "supported is exp(x - m) / (exp(sink - m) + exp(x - m).sum(-1, keepdim=True))");
}

// exp(x - logsumexp(x))
bool NormaliserFinder::minus_logsumexp(const ExprPtr& x) {
  if (!is_binary(x, "-") || !is(x->args[1], Reduction::logsumexp)) return false;
  if (!equal(body_at(x->args[1], parts_.key), x->args[0])) return false;
  parts_.softmax = Elements::reduced(x->args[1]);
  parts_.normalised = x->args[0];
  return true;
}

// w / sum(w)
bool NormaliserFinder::shares() {
  if (!divisor_ || !is(divisor_, Reduction::sum) || refused_) return false;
  std::vector<ExprPtr> factors;
  double constant = 1;
  factors_of(body_at(divisor_, parts_.key), factors, constant);
  if (!equal(product(factors, constant), product(weights_, constant_))) return false;
  const ExprPtr probe = elements_.index("%probe", elements_.extent(Elements::reduced(divisor_)));
  if (mentions(body_at(divisor_, probe), Kind::index, "j")) return false;
  parts_.softmax = Elements::reduced(divisor_);
  parts_.normaliser = Normaliser::sum;
  parts_.normalised = product(weights_, constant_);
  return true;
}

// Any function of one product of q and k.
bool NormaliserFinder::pointwise() {
  if (divisor_ || refused_) return false;
  const ExprPtr weight = product(weights_, constant_);
  const std::vector<ExprPtr> reads = reduced_reads(weight);
  if (reads.size() != 1 || !is(reads[0], Reduction::sum)) return false;
  parts_.softmax = parts_.contraction;
  parts_.normaliser = Normaliser::none;
  parts_.normalised = weight;
  return true;
}

// Computed from maxima of the row and what is the same for all its keys.
bool NormaliserFinder::is_shift(const ExprPtr& e) const {
  const std::vector<ExprPtr> reads = reduced_reads(e);
  return !reads.empty() && !mentions(e, Kind::index, "j") &&
         std::all_of(reads.begin(), reads.end(),
                     [&](const ExprPtr& r) { return is(r, Reduction::max); });
}

// e without the addends that are shifts, which are told, times the factors they stand under.
ExprPtr NormaliserFinder::without_shift(const ExprPtr& e, const ExprPtr& factor,
                                        std::vector<ExprPtr>& dropped) const {
  if (e->kind == Kind::unary && e->name == "-")
    return unary("-", without_shift(e->args[0], unary("-", factor), dropped));
  if (is_binary(e, "+") || is_binary(e, "-")) {
    const ExprPtr a = without_shift(e->args[0], factor, dropped);
    const ExprPtr b =
        without_shift(e->args[1], e->name == "-" ? unary("-", factor) : factor, dropped);
    return binary(e->name, a, b);
  }
  if (is_shift(e)) {
    dropped.push_back(binary("*", factor, e));
    return real(0);
  }
  if (is_binary(e, "*") && reduced_reads(e->args[1]).empty())
    return binary("*", without_shift(e->args[0], binary("*", factor, e->args[1]), dropped),
                  e->args[1]);
  return e;
}

// And where it stands under a choice, where(keep, x - max, -inf).
ExprPtr NormaliserFinder::without_maximum(const ExprPtr& x) const {
  return rewrite(
      x, [&](const ExprPtr& e) -> ExprPtr { return is(e, Reduction::max) ? real(0) : nullptr; });
}

}  // namespace

bool find_normaliser(Elements& elements, Parts& parts, const ExprPtr& weighted,
                     Diagnostics& diagnostics) {
  return NormaliserFinder(elements, parts, diagnostics).find(weighted);
}

}  // namespace kw::spec
