#include "proofs/reals/expanded.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kw::proofs {
namespace {

constexpr size_t kTerms = 256, kArms = 32;

const Sum kOne = {{Product(), 1.0}};

std::string text(const Sum& sum) {
  std::string out;
  for (const auto& [product, coefficient] : sum) {
    out += fmt::format("+{:.5g}", coefficient);
    for (const auto& [letter, power] : product) out += fmt::format("*{}^{:.5g}", letter, power);
  }
  return out;
}

// A power of 2 is known to as many digits as a program writes.
Product times(const Product& a, const Product& b, double power = 1) {
  Product out = a;
  for (const auto& [letter, n] : b) {
    double& sum = out[letter];
    sum = std::round((sum + power * n) * 1e5) / 1e5;
    if (sum == 0) out.erase(letter);
  }
  return out;
}

// The power of a letter that all terms have; 0 where they have none.
double shared(const Sum& sum, const std::string& letter) {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const auto& [product, coefficient] : sum) {
    const auto at = product.find(letter);
    least = std::min(least, at == product.end() ? 0 : at->second);
    most = std::max(most, at == product.end() ? 0 : at->second);
  }
  return sum.empty() || least * most <= 0 ? 0 : std::min(least, most);
}

bool is_number(const Quotient& x) {
  return x.under == kOne && (x.over.empty() || (x.over.size() == 1 && x.over.count({})));
}

double value(const Quotient& x) { return x.over.empty() ? 0 : x.over.begin()->second; }

}  // namespace

// A factor of both, each of which has another one: of what is constant in a launch, numbers that
// are no powers of two among it, where the terms are else one element each and have opposite signs.
bool Expanded::common(const Product& p, double x, const Product& q, double y) const {
  int binades;
  bool of_launch = std::fabs(x) == std::fabs(y) && std::frexp(std::fabs(x), &binades) != 0.5;
  if (p == q) return false;
  for (const auto& [letter, power] : p)
    if (q.count(letter) && q.at(letter) * power > 0) {
      if (!constants_.count(letter)) return true;
      of_launch = true;
    }
  return of_launch && x * y < 0 && elements(p) == 1 && elements(q) == 1;
}

double Expanded::elements(const Product& p) const {
  double out = 0;
  for (const auto& [letter, power] : p) out += constants_.count(letter) ? 0 : power;
  return out;
}

void Expanded::written(const Arms& a, const Arms& b, double sign) {
  for (const Quotient& left : a)
    for (const Quotient& right : b) {
      if (left.under == right.under)
        for (const auto& [p, x] : left.under) noted_.shares |= elements(p) > 0;
      for (const auto& [p, x] : left.over)
        for (const auto& [q, y] : right.over) noted_.shares |= common(p, x, q, sign * y);
    }
  const bool cancelled = noted_.cancels;
  for (const Quotient& x : sum(a, b, sign)) {
    if (is_of_row(x.over)) continue;
    std::string text = plain_sum(x, false);
    if (text == kNumber) text = plain_sum(x, true);
    if (text != kNumber) noted_.sums.insert(text);
  }
  noted_.cancels = cancelled;
}

// ---- sums by their plain names
namespace {

// x / r is x * r^-1, where r is one term: a function divides by a root, and a kernel has rsqrt.
Quotient without_divisor(const Quotient& x) {
  if (x.under.size() != 1) return x;
  const auto& [divisor, number] = *x.under.begin();
  Quotient out{{}, kOne};
  for (const auto& [p, coefficient] : x.over)
    out.over[times(p, divisor, -1)] += coefficient / number;
  return out;
}

}  // namespace

std::set<std::string> Expanded::names(const Arms& a) const {
  std::set<std::string> out;
  for (const Quotient& x : a)
    for (const Sum* sum : {&x.over, &x.under})
      for (const auto& [p, coefficient] : *sum)
        for (const auto& [letter, power] : p) {
          const auto found = plain_.find(letter);
          out.insert(found == plain_.end() ? kUnknown : found->second);
        }
  out.erase(kNumber);
  out.erase(kOfRow);
  return out;
}

std::set<std::string> Expanded::terms(const Arms& a, bool sums) const {
  std::set<std::string> out;
  for (const Quotient& x : a)
    if (!sums || x.over.size() > 1) out.insert(plain(x));
  return out;
}

// `launch`: with what is the same for all of a launch.
std::string Expanded::plain(const Product& p, bool launch) const {
  std::vector<std::string> of;
  for (const auto& [letter, power] : p) {
    const auto found = plain_.find(letter);
    const std::string name = found == plain_.end() ? kUnknown : found->second;
    if (name == kNumber || name == kOfRow || (!launch && name.starts_with(kOfLaunch))) continue;
    const double by = name.starts_with("2^") ? std::copysign(1, power) : power;
    of.push_back(by == 1 ? name : fmt::format("{}^{:.3g}", name, by));
  }
  std::sort(of.begin(), of.end());
  return fmt::format("{}", fmt::join(of, " "));
}

std::string Expanded::plain(const Quotient& quotient) const {
  const Quotient x = without_divisor(quotient);
  const auto of = [&](const Sum& sum) {
    std::set<std::string> terms;
    for (const auto& [p, coefficient] : sum) terms.insert(plain(p, false));
    return fmt::format("{}", fmt::join(terms, " + "));
  };
  const std::string under = of(x.under);
  return under == kNumber ? of(x.over) : fmt::format("({}) / ({})", of(x.over), under);
}

// Of what a row hands on, and of no data: the log-sum.
bool Expanded::is_of_row(const Sum& sum) const {
  bool of_row = false;
  for (const auto& [p, coefficient] : sum) {
    const std::string name = plain(p, true);
    if (name.find('@') != std::string::npos || name.find(kScore) != std::string::npos ||
        name.find(kOutput) != std::string::npos)
      return false;
    for (const auto& [letter, power] : p)
      of_row |= plain_.count(letter) && plain_.at(letter) == kOfRow;
  }
  return of_row;
}

// With its signs: exp(x) leaves the range where exp(-x) is small. "": of no data.
std::string Expanded::plain_exponent(const Quotient& x) const {
  if (is_of_row(x.over)) return kNumber;
  std::set<std::string> terms;
  for (const auto& [p, coefficient] : x.over) {
    const std::string name = plain(p, false);
    if (name == kNumber) continue;
    terms.insert((name.find(kInteger) == std::string::npos && coefficient < 0 ? "-" : "+") + name);
  }
  const std::string under = x.under == kOne || terms.empty() ? kNumber : plain({x.under, kOne});
  return fmt::format("{}{}", fmt::join(terms, " "), under == kNumber ? kNumber : " / " + under);
}

// "": it is of one term, or of what has no name here. Integers are told apart by no name, so
// several terms of them are one.
std::string Expanded::plain_sum(const Quotient& quotient, bool launch) const {
  const Quotient x = without_divisor(quotient);
  std::vector<std::string> terms, negative;
  std::set<std::string> of_integers;
  for (const auto& [p, coefficient] : x.over) {
    const std::string name = plain(p, launch);
    if (name.find(kInteger) != std::string::npos && !of_integers.insert(name).second) continue;
    const bool sign = of_integers.count(name) > 0 || coefficient > 0;
    terms.push_back((sign ? "+" : "-") + name);
    negative.push_back((of_integers.count(name) || !sign ? "+" : "-") + name);
  }
  std::sort(terms.begin(), terms.end());
  std::sort(negative.begin(), negative.end());
  const bool empty = std::all_of(terms.begin(), terms.end(), [](const std::string& t) {
    return t.substr(1) == kNumber || t.substr(1) == kInteger;
  });
  if (terms.size() < 2 || empty) return kNumber;
  const std::string under = x.under == kOne ? "" : plain({x.under, kOne});
  return fmt::format("{} / {}", fmt::join(std::min(terms, negative), " "), under);
}

void Expanded::constant(const Arms& a) {
  for (const Quotient& x : a)
    for (const Sum* sum : {&x.over, &x.under})
      for (const auto& [product, coefficient] : *sum)
        for (const auto& [letter, power] : product) constants_.insert(letter);
}

void Expanded::add(Sum& to, const Product& p, double coefficient) {
  if (coefficient == 0) return;
  double& sum = to[p];
  noted_.cancels |= sum * coefficient < 0;
  sum += coefficient;
  if (sum == 0) to.erase(p);
  noted_.cancels |= to.size() > kTerms;
}

Sum Expanded::multiplied(const Sum& a, const Sum& b) {
  Sum out;
  if (a.size() * b.size() > kTerms)
    noted_.cancels = true;
  else
    for (const auto& [p, x] : a)
      for (const auto& [q, y] : b) {
        for (const auto& [letter, power] : q)
          noted_.cancels |= p.count(letter) && p.at(letter) * power < 0;
        add(out, times(p, q), x * y);
      }
  return out;
}

template <typename Of>
Arms Expanded::each(const Arms& a, const Arms& b, const Of& of) {
  Arms out;
  for (const Quotient& x : a)
    for (const Quotient& y : b) out.insert(of(x, y));
  noted_.cancels |= out.size() > kArms;
  if (out.size() > kArms) out.erase(std::next(out.begin(), kArms), out.end());
  return out;
}

Arms Expanded::number(double x) const {
  if (std::isinf(x)) return {};
  return {{x == 0 ? Sum() : Sum{{Product(), x}}, kOne}};
}

Arms Expanded::letter(const std::string& name, const std::string& plain) {
  plain_[name] = plain;
  return {{{{{{name, 1}}, 1}}, kOne}};
}

Arms Expanded::sum(const Arms& a, const Arms& b, double sign) {
  return each(a, b, [&](const Quotient& x, const Quotient& y) {
    if (is_number(x) && is_number(y))  // exact, or rounded once
      return Quotient{number(value(x) + sign * value(y)).begin()->over, kOne};
    const bool same = x.under == y.under;
    Quotient out = {same ? x.over : multiplied(x.over, y.under),
                    same ? x.under : multiplied(x.under, y.under)};
    for (const auto& [p, c] : same ? y.over : multiplied(y.over, x.under))
      add(out.over, p, sign * c);
    return out;
  });
}

Arms Expanded::product(const Arms& a, const Arms& b) {
  return each(a, b, [&](const Quotient& x, const Quotient& y) {
    Quotient out = {multiplied(x.over, y.over), multiplied(x.under, y.under)};
    if (out.under.empty()) return out;
    for (const auto& [letter, power] : out.under.begin()->first)
      noted_.cancels |= shared(out.under, letter) * shared(out.over, letter) > 0;
    return out;
  });
}

Arms Expanded::inverse(const Arms& a) const {
  Arms out;
  for (const Quotient& x : a)
    if (!x.over.empty()) out.insert({x.under, x.over});
  return out;
}

Arms Expanded::power(const Arms& a, double exponent) {
  if (exponent < 0) return inverse(power(a, -exponent));
  if (exponent == std::floor(exponent) && exponent <= 8) {
    Arms out = number(1);
    for (int n = 0; n < int(exponent); ++n) out = product(out, a);
    return out;
  }
  Arms out;
  for (const Quotient& x : a) {  // a root of a sum is a letter
    const std::string root = fmt::format("({})/({})", text(x.over), text(x.under)), of = plain(x);
    plain_[root] = of == kNumber ? kNumber : fmt::format("({})", of);
    out.insert({{{{{root, exponent}}, 1}}, kOne});
  }
  return out;
}

Arms Expanded::exp2(const Arms& a) {
  Arms out;
  for (const Quotient& x : a) {
    Product p;
    if (const std::string exponent = plain_exponent(x); exponent != kNumber)
      noted_.sums.insert(fmt::format("2^({})", exponent));
    double coefficient = 1;
    for (const auto& [product, c] : x.over) {
      const std::string of = fmt::format("2^({})/({})", text({{product, 1}}), text(x.under));
      const std::string exponent = plain({{{product, 1}}, x.under});
      plain_[of] = exponent == kNumber ? kNumber : fmt::format("2^({})", exponent);
      if (product.empty() && x.under == kOne)
        coefficient = std::exp2(c);
      else
        p = times(p, {{of, c}});
    }
    out.insert({{{p, coefficient}}, kOne});
  }
  return out;
}

// (e - 1) / (e + 1) with e = exp(2 x)
Arms Expanded::tanh(const Arms& a) {
  const Arms e = exp2(product(number(2 * std::numbers::log2e), a));
  return product(sum(e, number(1), -1), inverse(sum(e, number(1), 1)));
}

Arms Expanded::either(Arms a, const Arms& b) {
  a.insert(b.begin(), b.end());
  noted_.cancels |= a.size() > kArms;
  return a;
}

}  // namespace kw::proofs
