#include "operator/evaluate/program.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "operator/evaluate/evaluate.h"

namespace kw::spec {
namespace {

static_assert(Program::score + kMostProducts == Program::output &&
              Program::totals + kMostSums == Program::kSlots);

int slot_of(const std::string& index) {
  constexpr std::string_view kSlotNames = "bhijd";
  return static_cast<int>(kSlotNames.find(index));
}

}  // namespace

Program::Program(const ExprPtr& e, const Problem& problem) {
  compile(e, problem);
  values_.resize(steps_.size());
}

int Program::compile(const ExprPtr& e, const Problem& problem) {
  Step step{Step::Do::constant};
  std::vector<int> args;
  for (const ExprPtr& a : e->args) args.push_back(compile(a, problem));
  switch (e->kind) {
    case Kind::number:
      step.value = e->value;
      break;
    case Kind::infinity:
      step.value = HUGE_VAL;
      break;
    case Kind::size:
      step.value = static_cast<double>(problem.sizes.at(e->name));
      break;
    case Kind::argument:
      step.value = problem.scalars.at(e->name);
      break;
    case Kind::index:
      step = {Step::Do::input, Op::invalid, slot_of(e->name)};
      break;
    case Kind::score:
      step = {Step::Do::input, Op::invalid, score + static_cast<int>(score_number(*e))};
      break;
    case Kind::output:
      step = {Step::Do::input, Op::invalid, output};
      break;
    case Kind::total:
      step = {Step::Do::input, Op::invalid, totals + std::stoi(e->name)};
      break;
    case Kind::read:
      step.what = Step::Do::read;
      step.tensor = &problem.tensors.at(e->name);
      step.indices = args;
      break;
    case Kind::where:
      step = {Step::Do::choose, Op::invalid, args[0], args[1], args[2]};
      break;
    case Kind::unary:
      step = {Step::Do::apply, op_of(e->kind, e->name), args[0], args[0]};
      break;
    case Kind::binary:
      step = {Step::Do::apply, op_of(e->kind, e->name), args[0], args[1]};
      break;
  }
  steps_.push_back(std::move(step));
  return static_cast<int>(steps_.size()) - 1;
}

double Program::read(const Step& step) const {
  int64_t offset = 0;
  for (size_t n = 0; n < step.indices.size(); ++n) {
    const double index = values_[step.indices[n]];
    const int64_t extent = step.tensor->shape[n];
    if (!(index >= 0 && index < static_cast<double>(extent)))
      return std::numeric_limits<double>::quiet_NaN();
    offset = offset * extent + static_cast<int64_t>(index);
  }
  return step.tensor->values[offset];
}

Program::Inputs Program::at(int64_t b, int64_t h, int64_t i, int64_t j) {
  Inputs in{};
  in[Program::b] = static_cast<double>(b);
  in[Program::h] = static_cast<double>(h);
  in[Program::i] = static_cast<double>(i);
  in[Program::j] = static_cast<double>(j);
  return in;
}

double Program::run(const Inputs& inputs) {
  for (size_t n = 0; n < steps_.size(); ++n) {
    const Step& s = steps_[n];
    switch (s.what) {
      case Step::Do::constant:
        values_[n] = s.value;
        break;
      case Step::Do::input:
        values_[n] = inputs[s.a];
        break;
      case Step::Do::read:
        values_[n] = read(s);
        break;
      case Step::Do::choose:
        values_[n] = values_[s.a] != 0 ? values_[s.b] : values_[s.c];
        break;
      case Step::Do::apply:
        values_[n] = apply(s.op, values_[s.a], values_[s.b]);
        break;
    }
  }
  return values_.back();
}

}  // namespace kw::spec
