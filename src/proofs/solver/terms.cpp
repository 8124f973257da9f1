#include "proofs/solver/terms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace kw::proofs {
namespace {

std::optional<Term> first_open(const std::vector<Term>& terms) {
  for (const Term& t : terms)
    if (t.sort == Term::open) return t;
  return std::nullopt;
}

Term boolean(std::string text) { return {Term::boolean, std::move(text)}; }

std::optional<int64_t> literal(const Term& t) {
  if (t.sort != Term::integer || t.text.empty()) return std::nullopt;
  const bool negative = t.text.rfind("(- ", 0) == 0;
  const std::string digits = negative ? t.text.substr(3, t.text.size() - 4) : t.text;
  if (digits.empty() ||
      !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return negative ? -std::stoll(digits) : std::stoll(digits);
}

// A count of bits from 0 to 31 makes a shift a product or a quotient.
Term shift(const std::string& op, const Term& a, const Term& by) {
  const auto count = literal(by);
  if (!count)
    return Term::an_int(
        fmt::format("(bits.{} {} {})", op == "<<" ? "left" : "right", a.text, by.text));
  if (*count < 0 || *count > 31) return Term::unknown("a shift by a count beyond 0 to 31");
  return operation(op == "<<" ? "*" : "//", a, Term::number(int64_t{1} << *count));
}

// a & (2^n - 1) is a remainder; other operators on bits are not decided.
Term bits(const std::string& op, const Term& a, const Term& b) {
  const auto mask = literal(b);
  if (op == "&" && mask && *mask > 0 && ((*mask + 1) & *mask) == 0)
    return operation("%", a, Term::number(*mask + 1));
  if (op == "&" && literal(a) && !mask) return bits(op, b, a);
  const auto& [first, second] = std::minmax(a.text, b.text);
  return Term::an_int(fmt::format("(bits.{} {} {})",
                                  op == "&"   ? "and"
                                  : op == "|" ? "or"
                                              : "xor",
                                  first, second));
}

}  // namespace

Term Term::number(int64_t value) {
  return {integer, value < 0 ? fmt::format("(- {})", -value) : std::to_string(value)};
}

Term both(const Term& a, const Term& b) {
  if (a.is("false") || b.is("true")) return a;
  if (b.is("false") || a.is("true")) return b;
  if (const auto open = first_open({a, b})) return *open;
  return boolean(fmt::format("(and {} {})", a.text, b.text));
}

Term either(const Term& a, const Term& b) { return negation(both(negation(a), negation(b))); }

Term negation(const Term& a) {
  if (a.sort == Term::open) return a;
  if (a.is("true") || a.is("false")) return Term::truth(a.is("false"));
  if (a.text.rfind("(not ", 0) == 0) return boolean(a.text.substr(5, a.text.size() - 6));
  return boolean(fmt::format("(not {})", a.text));
}

Term choice(const Term& condition, const Term& a, const Term& b) {
  if (condition.is("true")) return a;
  if (condition.is("false")) return b;
  // where(0.0 < s, scale, 0.0) is a real, whatever it asks.
  if (a.sort == Term::real && b.sort == Term::real) return a;
  if (const auto open = first_open({condition, a, b})) return *open;
  if (a.sort != b.sort) return Term::unknown("a choice between two sorts");
  if (a.text == b.text) return a;
  return {a.sort, fmt::format("(ite {} {} {})", condition.text, a.text, b.text)};
}

Term operation(const std::string& op, const Term& a, const Term& b) {
  if (op == "and") return both(a, b);
  if (op == "or") return either(a, b);
  if (const auto open = first_open({a, b})) return *open;
  const auto x = literal(a), y = literal(b);
  if (a.sort == Term::real || b.sort == Term::real)
    return op == "+" || op == "-" || op == "*" || op == "/" || op == "**"
               ? Term{Term::real, ""}
               : Term::unknown("a comparison of reals");
  if (op == "==" || op == "!=") {
    if (x && y) return Term::truth((*x == *y) == (op == "=="));
    const Term same = a.sort == b.sort ? boolean(fmt::format("(= {} {})", a.text, b.text))
                                       : Term::unknown("a comparison of two sorts");
    return op == "==" ? same : negation(same);
  }
  if (a.sort != Term::integer || b.sort != Term::integer)
    return Term::unknown(fmt::format("{} of truths", op));
  if (op == "<" || op == "<=" || op == ">" || op == ">=") {
    if (x && y)
      return Term::truth(op == "<"    ? *x < *y
                         : op == "<=" ? *x <= *y
                         : op == ">"  ? *x > *y
                                      : *x >= *y);
    return boolean(fmt::format("({} {} {})", op, a.text, b.text));
  }
  if (op == "<<" || op == ">>") return shift(op, a, b);
  if (op == "&" || op == "|" || op == "^") return bits(op, a, b);
  if (op == "/") return {Term::real, ""};
  if (op == "//" || op == "%") {
    // SMT-LIB's remainder is not negative: of a positive divisor that is what floors.
    if (y && *y <= 0) return Term::unknown("a division by a number below 1");
    if (x && y && *x >= 0) return Term::number(op == "//" ? *x / *y : *x % *y);
    const std::string divisor = y ? b.text : fmt::format("(ite (> {0} 0) {0} 1)", b.text);
    return Term::an_int(fmt::format("({} {} {})", op == "//" ? "div" : "mod", a.text, divisor));
  }
  if (op == "+" || op == "-" || op == "*") {
    if (x && y && std::abs(*x) < (int64_t{1} << 31) && std::abs(*y) < (int64_t{1} << 31))
      return Term::number(op == "+" ? *x + *y : op == "-" ? *x - *y : *x * *y);
    return Term::an_int(fmt::format("({} {} {})", op, a.text, b.text));
  }
  return Term::unknown(fmt::format("the operator {}", op));
}

Term shifted_left(const Term& a, const Term& count) {
  if (const auto open = first_open({a, count})) return *open;
  const auto times = [&](int n) { return fmt::format("(* {} {})", a.text, int64_t{1} << n); };
  std::string text = times(32);
  if (const auto x = literal(a); x && *x > 0) {
    const int within = 31 - std::bit_width(static_cast<uint64_t>(*x));
    text = fmt::format("(ite (<= {} {}) 0 {})", count.text, within, text);
  } else {
    for (int n = 31; n >= 0; --n)
      text = fmt::format("(ite (= {} {}) {} {})", count.text, n, times(n), text);
  }
  return Term::an_int(fmt::format("(ite (and (<= 0 {0}) (< {0} 64)) {1} 0)", count.text, text));
}

Term function(const std::string& name, const std::vector<Term>& arguments) {
  if (const auto open = first_open(arguments)) return *open;
  for (const Term& t : arguments)
    if (t.sort != Term::integer) return {Term::real, ""};
  if (name == "abs" && arguments.size() == 1)
    return choice(operation("<", arguments[0], Term::number(0)),
                  operation("-", Term::number(0), arguments[0]), arguments[0]);
  if ((name == "min" || name == "max") && arguments.size() == 2)
    return choice(operation(name == "min" ? "<" : ">", arguments[0], arguments[1]), arguments[0],
                  arguments[1]);
  if (name == "ceil_div" && arguments.size() == 2)
    return operation("//",
                     operation("+", arguments[0], operation("-", arguments[1], Term::number(1))),
                     arguments[1]);
  return Term::unknown(fmt::format("the function {}", name));
}

Vocabulary::Vocabulary() {
  for (const char* f : {"bits.and", "bits.or", "bits.xor", "bits.left", "bits.right"})
    declare(f, 2);
}

Term Vocabulary::constant(const std::string& name, Term::Sort sort) {
  if (names_.insert(name).second)
    declarations_.push_back(
        fmt::format("(declare-const {} {})", name, sort == Term::boolean ? "Bool" : "Int"));
  return {sort, name};
}

Term Vocabulary::scalar(const std::string& argument) {
  const Term t = constant(name_of_scalar(argument));
  reads_.insert(t.text);
  return t;
}

Term Vocabulary::fresh(const std::string& name, Term::Sort sort) {
  std::string own = name;
  for (int n = 2; names_.count(own); ++n) own = fmt::format("{}.{}", name, n);
  return constant(own, sort);
}

Term Vocabulary::read(const std::string& tensor, bool truth, const std::vector<Term>& indices) {
  if (const auto open = first_open(indices)) return *open;
  std::vector<std::string> at;
  for (const Term& t : indices) at.push_back(t.text);
  const std::string name = fmt::format("{}.of", tensor);
  declare(name, indices.size());
  const std::string element =
      indices.empty() ? name : fmt::format("({} {})", name, fmt::join(at, " "));
  const bool known = std::any_of(elements_.begin(), elements_.end(),
                                 [&](const Element& e) { return e.text == element; });
  if (!known) elements_.push_back({tensor, truth, at, element});
  if (truth) return boolean(fmt::format("(not (= {} 0))", element));
  reads_.insert(element);
  return Term::an_int(element);
}

void Vocabulary::declare(const std::string& function, size_t arguments) {
  if (!names_.insert(function).second) return;
  declarations_.push_back(fmt::format("(declare-fun {} ({}) Int)", function,
                                      fmt::join(std::vector<std::string>(arguments, "Int"), " ")));
}

Term Vocabulary::apply(const std::string& function, const Term& argument) {
  if (argument.sort != Term::integer) return argument;
  declare(function, 1);
  return Term::an_int(fmt::format("({} {})", function, argument.text));
}

std::vector<std::string> Vocabulary::data_within(int bits) const {
  std::vector<std::string> out;
  const int64_t end = int64_t{1} << bits;
  for (const std::string& r : reads_)
    out.push_back(fmt::format("(and (<= (- {1}) {0}) (< {0} {1}))", r, end));
  return out;
}

Term term_of(const spec::ExprPtr& e, const std::map<std::string, Term>& indices,
             Vocabulary& vocabulary) {
  using spec::Kind;
  const auto sub = [&](size_t n) { return term_of(e->args[n], indices, vocabulary); };
  switch (e->kind) {
    case Kind::number:
      if (e->type == spec::Type::real) return {Term::real, ""};
      return e->type == spec::Type::boolean ? Term::truth(e->integer != 0 || e->value != 0)
                                            : Term::number(e->integer);
    case Kind::index:
    case Kind::size: {
      const auto found = indices.find(e->name);
      return found != indices.end()
                 ? found->second
                 : Term::unknown(fmt::format("{} of the specification", e->name));
    }
    case Kind::argument:
      return e->type == spec::Type::real ? Term{Term::real, ""} : vocabulary.scalar(e->name);
    case Kind::read: {
      std::vector<Term> at;
      for (size_t n = 0; n < e->args.size(); ++n) at.push_back(sub(n));
      if (e->type == spec::Type::real) return {Term::real, ""};
      return vocabulary.read(e->name, e->type == spec::Type::boolean, at);
    }
    case Kind::binary:
      if (e->name == "min" || e->name == "max") return function(e->name, {sub(0), sub(1)});
      return operation(e->name, sub(0), sub(1));
    case Kind::unary:
      if (e->name == "not") return negation(sub(0));
      if (e->name == "-") return operation("-", Term::number(0), sub(0));
      if (e->name == "abs") return function("abs", {sub(0)});
      if (e->type == spec::Type::real) return {Term::real, ""};
      return Term::unknown(fmt::format("{}() of the specification", e->name));
    case Kind::where:
      return choice(sub(0), sub(1), sub(2));
    default:
      return {Term::real, ""};
  }
}

}  // namespace kw::proofs
