#include "operator/evaluate/program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "operator/evaluate/evaluate.h"

namespace kw::spec {
namespace {

static_assert(Program::score + kMostProducts == Program::output &&
              Program::totals + kMostSums == Program::kSlots);

constexpr int64_t kPiece = 128;  // elements of a line at once

int slot_of(const std::string& index) {
  constexpr std::string_view kSlotNames = "bhijd";
  return static_cast<int>(kSlotNames.find(index));
}

// Two reals of which PyTorch has the rounded values where it compares them: data, and what is
// computed of them in fp32. Products and sums of rows are no such numbers: nobody rounds them
// alike.
bool compares_data(const ExprPtr& e) {
  if (!is_comparison(e) || (e->args[0]->type != Type::real && e->args[1]->type != Type::real))
    return false;
  return mentions(e, Kind::read) && !mentions(e, Kind::score) && !mentions(e, Kind::output) &&
         !mentions(e, Kind::total);
}

}  // namespace

Program::Program(const ExprPtr& e, const Problem& problem) {
  compile(e, problem);
  values_.resize(steps_.size());
}

int Program::compile(const ExprPtr& e, const Problem& problem, bool in_fp32) {
  Step step{Step::Do::constant};
  std::vector<int> args;
  const bool compared = in_fp32 || compares_data(e);
  for (const ExprPtr& a : e->args) args.push_back(compile(a, problem, compared));
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
  step.rounds = in_fp32 && e->type == Type::real &&
                (step.what == Step::Do::apply || step.what == Step::Do::constant);
  if (step.rounds) step.value = static_cast<float>(step.value);
  steps_.push_back(std::move(step));
  return static_cast<int>(steps_.size()) - 1;
}

// `index_of` says what a step before has given.
template <class IndexOf>
double Program::read(const Step& step, const IndexOf& index_of) {
  int64_t offset = 0;
  for (size_t n = 0; n < step.indices.size(); ++n) {
    const double index = index_of(step.indices[n]);
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

void Program::step(size_t n, const Inputs& inputs) {
  const Step& s = steps_[n];
  switch (s.what) {
    case Step::Do::constant:
      values_[n] = s.value;
      break;
    case Step::Do::input:
      values_[n] = inputs[s.a];
      break;
    case Step::Do::read:
      values_[n] = read(s, [&](int k) { return values_[k]; });
      break;
    case Step::Do::choose:
      values_[n] = values_[s.a] != 0 ? values_[s.b] : values_[s.c];
      break;
    case Step::Do::apply:
      values_[n] = apply(s.op, values_[s.a], values_[s.b]);
      if (s.rounds) values_[n] = static_cast<float>(values_[n]);
      break;
  }
}

double Program::run(const Inputs& inputs) {
  for (size_t n = 0; n < steps_.size(); ++n) step(n, inputs);
  return values_.back();
}

// Piece by piece, which stay in the first cache. What is the same all along is computed once.
void Program::run(const Inputs& inputs, const Line& line, double* out) {
  lines_.resize(steps_.size() * kPiece);
  std::vector<bool> varies(steps_.size());
  for (size_t n = 0; n < steps_.size(); ++n) {
    const Step& s = steps_[n];
    const auto any = [&](std::initializer_list<int> from) {
      return std::any_of(from.begin(), from.end(), [&](int k) { return k >= 0 && varies[k]; });
    };
    varies[n] = s.what == Step::Do::input  ? s.a == line.along || line.of[s.a]
                : s.what == Step::Do::read ? std::any_of(s.indices.begin(), s.indices.end(),
                                                         [&](int k) { return varies[k]; })
                                           : any({s.a, s.b, s.c});
    if (varies[n]) continue;
    step(n, inputs);
    std::fill_n(&lines_[n * kPiece], std::min(kPiece, line.count), values_[n]);
  }
  for (int64_t first = 0; first < line.count; first += kPiece) {
    const int64_t count = std::min(kPiece, line.count - first);
    for (size_t n = 0; n < steps_.size(); ++n) {
      const Step& s = steps_[n];
      if (!varies[n]) continue;
      const auto of = [&](int k) { return &lines_[k * kPiece]; };
      double* const to = of(int(n));
      if (s.what == Step::Do::input && s.a == line.along)
        std::iota(to, to + count, static_cast<double>(line.first + first));
      else if (s.what == Step::Do::input)
        std::copy_n(line.of[s.a] + first, count, to);
      if (s.what == Step::Do::read)
        for (int64_t k = 0; k < count; ++k) to[k] = read(s, [&](int n) { return of(n)[k]; });
      if (s.what == Step::Do::choose)
        for (int64_t k = 0; k < count; ++k) to[k] = of(s.a)[k] != 0 ? of(s.b)[k] : of(s.c)[k];
      if (s.what == Step::Do::apply) apply(s.op, of(s.a), of(s.b), count, to);
      if (s.what == Step::Do::apply && s.rounds)
        std::transform(to, to + count, to, [](double x) { return double(float(x)); });
    }
    std::copy_n(&lines_[(steps_.size() - 1) * kPiece], count, out + first);
  }
}

}  // namespace kw::spec
