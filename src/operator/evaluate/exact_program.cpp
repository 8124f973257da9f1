#include "operator/evaluate/exact_program.h"

#include <cmath>

#include "operator/evaluate/evaluate.h"

namespace kw::spec {

using exact::Element;

namespace {

bool mentions_real(const ExprPtr& e) {
  if (e->type == Type::real) return true;
  for (const ExprPtr& a : e->args)
    if (mentions_real(a)) return true;
  return false;
}

// Numbers, indices and sizes, of which cases have many: what is computed of them is drawn.
bool is_plain(const ExprPtr& e) { return e->args.empty() && e->kind != Kind::read; }

}  // namespace

bool ExactProgram::supports(const ExprPtr& e) {
  if (!mentions_real(e)) return true;
  if (e->type == Type::integer) return false;
  if (e->kind == Kind::read)
    for (const ExprPtr& a : e->args)
      if (mentions_real(a)) return false;
  for (const ExprPtr& a : e->args)
    if (!supports(a)) return false;
  return true;
}

ExactProgram::ExactProgram(const ExprPtr& e, const Problem& named, const exact::Algebra& algebra,
                           Of of)
    : algebra_(algebra), of_(of) {
  compile(e, named);
  items_.resize(steps_.size());
}

int ExactProgram::compile(const ExprPtr& e, const Problem& named) {
  if (mentions_real(e)) return compile_real(e, named);
  Step step;
  step.what = Step::Do::whole;
  step.type = e->type;
  step.whole = std::make_unique<Program>(e, named);
  step.plain = is_plain(e) || (of_ == Of::rows && is_of_columns(e));
  steps_.push_back(std::move(step));
  return static_cast<int>(steps_.size()) - 1;
}

int ExactProgram::compile_real(const ExprPtr& e, const Problem& named) {
  Step step;
  step.type = e->type;
  std::vector<int> args;
  for (const ExprPtr& a : e->args) args.push_back(compile(a, named));
  step.what = Step::Do::constant;
  switch (e->kind) {
    case Kind::number:
      step.value = {algebra_.constant(e->value), e->value};
      break;
    case Kind::infinity:
      step.value.real = algebra_.negate(algebra_.minus_infinity());
      break;
    case Kind::argument:
      step.value.real = algebra_.draw(static_cast<uint64_t>(named.scalars.at(e->name)));
      break;
    case Kind::score:
      step.a = static_cast<int>(score_number(*e)) - 1;
      step.what = step.a < 0 ? Step::Do::given : Step::Do::more;
      break;
    case Kind::output:
      step.what = Step::Do::given;
      break;
    case Kind::total:
      step.what = Step::Do::total;
      step.a = std::stoi(e->name);
      break;
    case Kind::read:
      step.what = Step::Do::read;
      step.tensor = &named.tensors.at(e->name);
      step.indices = args;
      break;
    case Kind::where:
      step.what = Step::Do::choose;
      step.a = args[0], step.b = args[1], step.c = args[2];
      break;
    case Kind::unary:
    case Kind::binary:
      step.what = Step::Do::apply;
      step.op = op_of(e->kind, e->name);
      step.a = args[0], step.b = args.back();
      break;
    case Kind::index:
    case Kind::size:
      break;  // integers
  }
  steps_.push_back(std::move(step));
  return static_cast<int>(steps_.size()) - 1;
}

Element ExactProgram::real(int step) const {
  if (steps_[step].type == Type::real) return items_[step].real;
  const auto value = static_cast<int64_t>(items_[step].integer);
  return steps_[step].plain ? algebra_.integer(value) : algebra_.of_integer(value);
}

Element ExactProgram::read(const Step& s) const {
  int64_t offset = 0;
  for (size_t n = 0; n < s.indices.size(); ++n) {
    const double index = items_[s.indices[n]].integer;
    const int64_t extent = s.tensor->shape[n];
    if (!(index >= 0 && index < static_cast<double>(extent)))
      return algebra_.reciprocal(algebra_.integer(0));  // undefined, as a NaN
    offset = offset * extent + static_cast<int64_t>(index);
  }
  const double number = s.tensor->values[offset];
  if (number < 0) return computed->at(static_cast<size_t>(-number) - 1);
  return algebra_.draw(static_cast<uint64_t>(number));
}

// A truth: of reals, or of truths.
ExactProgram::Item ExactProgram::compare(const Step& s) const {
  const Item &a = items_[s.a], &b = items_[s.b];
  exact::Algebra::Truth t{false, uint8_t(a.opaque | b.opaque)};
  switch (s.op) {
    case Op::equal:
    case Op::not_equal:
      t = algebra_.equal(real(s.a), real(s.b));
      if (s.op == Op::not_equal) t.holds = !t.holds;
      break;
    case Op::less:
      t = algebra_.less(real(s.a), real(s.b));
      break;
    case Op::less_equal:
      t = algebra_.less(real(s.b), real(s.a));
      t.holds = !t.holds;
      break;
    case Op::logical_and:
      t.holds = a.integer != 0 && b.integer != 0;
      break;
    case Op::logical_or:
      t.holds = a.integer != 0 || b.integer != 0;
      break;
    default:  // not
      t.holds = a.integer == 0;
  }
  return {{}, double(t.holds), t.opaque};
}

ExactProgram::Item ExactProgram::apply(const Step& s) const {
  if (s.type == Type::boolean) return compare(s);
  const exact::Algebra& A = algebra_;
  const Element a = real(s.a), b = real(s.b);
  switch (s.op) {
    case Op::add:
      return {A.add(a, b)};
    case Op::subtract:
      return {A.sub(a, b)};
    case Op::multiply:
      return {A.mul(a, b)};
    case Op::divide:
      return {A.div(a, b)};
    case Op::power: {  // of a constant base, or a square: others are opaque in both operands
      // What the formula says, not what the operands are here: 2^x at 2 is no square.
      const auto is_constant = [&](int at) { return steps_[at].what == Step::Do::constant; };
      if (is_constant(s.b) && A.equal(b, A.integer(2)).holds) return {A.mul(a, a)};
      if (is_constant(s.a) && A.equal(a, A.integer(2)).holds) return {A.exp2(b)};
      if (is_constant(s.a) && items_[s.a].integer > 0)
        return {A.exp2(A.mul(b, A.constant(std::log2(items_[s.a].integer))))};
      return {A.mul(A.opaque(uint64_t(s.op), a), A.opaque(uint64_t(s.op) + 1000, b))};
    }
    case Op::minimum:
      return {A.min(a, b)};
    case Op::maximum:
      return {A.max(a, b)};
    case Op::negate:
      return {A.negate(a)};
    case Op::exp:
      return {A.exp(a)};
    case Op::exp2:
      return {A.exp2(a)};
    case Op::log:
      return {A.log(a)};
    case Op::log2:
      return {A.log2(a)};
    case Op::sqrt:
      return {A.sqrt(a)};
    case Op::rsqrt:
      return {A.rsqrt(a)};
    case Op::reciprocal:
      return {A.reciprocal(a)};
    case Op::tanh:
      return {A.tanh(a)};
    case Op::sigmoid:
      return {A.sigmoid(a)};
    case Op::relu:
      return {A.max(a, A.integer(0))};
    case Op::abs:
      return {A.max(a, A.negate(a))};
    case Op::to_float:
      return {a};
    default:
      return {A.opaque(uint64_t(s.op), a)};
  }
}

const ExactProgram::Item& ExactProgram::evaluate(const Program::Inputs& inputs,
                                                 const Element& given) {
  for (size_t n = 0; n < steps_.size(); ++n) {
    const Step& s = steps_[n];
    switch (s.what) {
      case Step::Do::constant:
        items_[n] = s.value;
        break;
      case Step::Do::given:
        items_[n].real = given;
        break;
      case Step::Do::more:
        items_[n].real = more.at(s.a);
        break;
      case Step::Do::total:
        items_[n].real = totals.at(s.a);
        break;
      case Step::Do::whole:
        items_[n].integer = s.whole->run(inputs);
        break;
      case Step::Do::read:
        items_[n].real = read(s);
        break;
      case Step::Do::choose: {
        const Item& c = items_[s.a];
        Element e = real(c.integer != 0 ? s.b : s.c);
        for (uint8_t& bits : e.opaque) bits |= c.opaque;
        items_[n].real = e;
        break;
      }
      case Step::Do::apply:
        items_[n] = apply(s);
        break;
    }
  }
  return items_.back();
}

Element ExactProgram::run(const Program::Inputs& inputs, const Element& given) {
  evaluate(inputs, given);
  return real(static_cast<int>(steps_.size()) - 1);
}

exact::Algebra::Truth ExactProgram::holds(const Program::Inputs& inputs) {
  const Item& item = evaluate(inputs, {});
  return {item.integer != 0, item.opaque};
}

}  // namespace kw::spec
