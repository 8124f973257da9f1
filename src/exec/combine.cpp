// Results of parts: what warpgroups know of a row, each from some of its keys, and the pass behind
// the kernel, which makes one result of them.
//
//   store_rows lse_r -> part_lse[c.b, c.h * splits + c.s, i0]            a warpgroup, for its part
//   store_accumulator acc -> part_o[c.b, c.h * splits + c.s, i0]
//   combine_parts part_o, part_lse of splits by w -> o, lse              the pass
//
// With log-sums a of base 2 and outputs x, a row is sum 2^a x / sum 2^a, and its log-sum the
// natural logarithm of that sum. A part without keys has -inf, and counts as nothing: what it has
// left as its output is not even read, for a product with 0 need not be 0. A row without keys is 0,
// its log-sum -inf.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exec/alignment.h"
#include "exec/arithmetic.h"
#include "exec/machine.h"
#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Op;
using tl::Stmt;

namespace {

struct Combined {
  const Global *o = nullptr, *sums = nullptr;  // of the parts
  Global *to = nullptr, *to_sums = nullptr;
  int64_t count = 0;
};

Global* tensor_at(Machine& m, const tl::ExprPtr& e) {
  const auto found = m.tensors.find(tl::base_name(e));
  return found == m.tensors.end() ? nullptr : &found->second;
}

// Nothing after a fault.
std::optional<Combined> combined(Machine& m, const Stmt& s, const Context& c) {
  const auto refuse = [&](const std::string& why) {
    m.faults.raise("exec.shape", &s, fmt::format("{}: {}", cite(s), why));
    return std::nullopt;
  };
  const Combined k{tensor_at(m, s.src()), tensor_at(m, s.src_sums()), tensor_at(m, s.tensor()),
                   tensor_at(m, s.sums()), integer_of(c, s.count())};
  if (m.faults.any()) return std::nullopt;
  const auto is = [](const Global* g, bool scratch, int rank) {
    return g && (scratch ? g->scratch : g->writes) && g->data.rank() == rank;
  };
  if (!is(k.o, true, 4) || !is(k.sums, true, 3) || !is(k.to, false, 4) || !is(k.to_sums, false, 3))
    return refuse("outputs and log-sums in scratches are needed, and tensors to write");
  std::vector<int64_t> due = k.to->data.shape;
  due[1] *= k.count;
  const auto three = [](const std::vector<int64_t>& n) {
    return std::vector<int64_t>(n.begin(), n.begin() + 3);
  };
  if (k.count < 1 || k.o->data.shape != due || k.sums->data.shape != three(due) ||
      k.to_sums->data.shape != three(k.to->data.shape))
    return refuse(fmt::format("{} parts for each of [{}] are not [{}]", k.count,
                              fmt::join(k.to->data.shape, ", "), fmt::join(k.o->data.shape, ", ")));
  if (!rows_are_chunks(m, s, *k.to)) return std::nullopt;
  return k;
}

// Of one row, its parts that have keys: where their log-sums and outputs are.
struct Part {
  int64_t sum, first;
};

class Combining {
 public:
  Combining(Machine& m, const Stmt& s, const Combined& k) : m_(m), s_(s), k_(k) {}

  // Row `row` of head `head` of all batch entries; false after a fault.
  bool row(int64_t head, int64_t row) {
    const int64_t rows = k_.to->data.shape[2], columns = k_.to->data.shape[3],
                  at = head * rows + row;
    std::vector<Part> parts;
    for (int64_t n = 0; n < k_.count; ++n) {
      const int64_t part = (head * k_.count + n) * rows + row;
      if (!was_written(m_, s_, *k_.sums, part)) return false;
      if (!is_empty(part)) parts.push_back({part, part * columns});
    }
    for (const Part& p : parts)
      for (int64_t c = 0; c < columns; ++c)
        if (!was_written(m_, s_, *k_.o, p.first + c)) return false;
    note_written(m_, s_, k_.to_sums->written[at]);
    for (int64_t c = 0; c < columns; ++c) note_written(m_, s_, k_.to->written[at * columns + c]);
    m_.algebra ? exact(parts, at, columns) : values(parts, at, columns);
    return !m_.faults.any();
  }

 private:
  Machine& m_;
  const Stmt& s_;
  const Combined& k_;

  bool is_empty(int64_t at) const {
    return m_.algebra ? k_.sums->exact[at].kind == exact::Kind::minus_infinity
                      : k_.sums->data.values[at] == -INFINITY;
  }

  static float of(Fn fn, double x) {
    double y = 0;
    apply(fn, Type::real, 1, &x, &x, &x, &y);
    return static_cast<float>(y);
  }

  // As the device does: relative to the largest log-sum.
  void values(const std::vector<Part>& parts, int64_t at, int64_t columns) {
    double most = -INFINITY;
    for (const Part& p : parts) {
      const double x = k_.sums->data.values[p.sum];
      if (!(x <= most)) most = x;  // what is no number is the largest: then nothing of the row is
    }
    float sum = 0;
    std::vector<float> weights, o(columns, 0);
    for (const Part& p : parts) {
      weights.push_back(
          of(Fn::exp2, static_cast<float>(k_.sums->data.values[p.sum]) - static_cast<float>(most)));
      sum += weights.back();
      for (int64_t c = 0; c < columns; ++c)
        o[c] = std::fma(weights.back(), static_cast<float>(k_.o->data.values[p.first + c]), o[c]);
    }
    const float inverse = parts.empty() ? 0 : of(Fn::reciprocal, sum);
    k_.to_sums->data.values[at] =
        parts.empty() ? -INFINITY
                      : (static_cast<float>(most) + of(Fn::log2, sum)) * 0.6931471805599453f;
    for (int64_t c = 0; c < columns; ++c)
      k_.to->data.values[at * columns + c] = round_to(k_.to->data.dtype, o[c] * inverse);
  }

  // Relative to nothing: the formula is the same.
  void exact(const std::vector<Part>& parts, int64_t at, int64_t columns) {
    const exact::Algebra& a = *m_.algebra;
    exact::Element sum = a.integer(0);
    std::vector<exact::Element> o(columns, a.integer(0));
    for (const Part& p : parts) {
      const exact::Element weight = a.exp2(k_.sums->exact[p.sum]);
      sum = a.add(sum, weight);
      for (int64_t c = 0; c < columns; ++c)
        o[c] = a.add(o[c], a.mul(weight, k_.o->exact[p.first + c]));
    }
    const exact::Element inverse = parts.empty() ? a.integer(0) : a.reciprocal(sum);
    k_.to_sums->exact[at] = parts.empty() ? a.minus_infinity() : a.mul(a.log2(sum), a.ln2());
    for (int64_t c = 0; c < columns; ++c) k_.to->exact[at * columns + c] = a.mul(o[c], inverse);
  }
};

}  // namespace

void combine_parts(Machine& m, const Stmt& s, const Context& c) {
  const std::optional<Combined> k = combined(m, s, c);
  if (!k) return;
  const std::vector<int64_t>& n = k->to->data.shape;
  Combining combining(m, s, *k);
  for (int64_t head = 0; head < n[0] * n[1]; ++head)
    for (int64_t row = 0; row < n[2]; ++row)
      if (!combining.row(head, row)) return;
}

Next exec_combine_parts(Machine& m, Agent&, const Stmt& s) {
  return outside(m, s, "the pass behind the kernel");
}

}  // namespace kw::exec
