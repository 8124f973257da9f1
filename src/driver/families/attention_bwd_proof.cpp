// Of gradients the golden cases are proved: at their shapes, which are ragged, PyTorch's autograd
// of the captured graph gave the truth in fp64 (the form is held against it), and the errors of the
// function's own gradients, row by row. What is accepted of a row is what the check accepts.
//
// A backward kernel reads what a forward one saves. That follows from the other inputs and is no
// draw: it is stored, as fp64 gives it rounded to fp32, so a backward kernel is judged by itself.
// Whole tensors of it are larger than all rows of the truth together, so cases are few and small.
//
// Where CTAs take no turns sums are taken in any order, and a second launch may give other bits:
// such a kernel is launched once a case.
#include "driver/families/attention_bwd_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/proof/user_order.h"
#include "num/compare.h"
#include "operator/sums.h"
#include "transfer/editing/declarations.h"

namespace kw::driver::families {
namespace {

using spec::Gradients;
using spec::Held;
using spec::Output;

constexpr size_t kCases = 4;
constexpr int64_t kMostScores = 4'000'000;  // of a case: batch entries, heads, queries, keys
constexpr int64_t kElements = 4096;         // of what has a rule for each element
constexpr int kSameBits = 20;               // launches that must give the same bits

class GradientCases {
 public:
  GradientCases(const std::filesystem::path& folder, const spec::Capture& capture,
                const transfer::Result& transferred, Diagnostics& diagnostics)
      : capture_(capture),
        form_(capture.form),
        transferred_(transferred),
        diagnostics_(diagnostics),
        writer_(folder, capture, transferred, diagnostics) {}

  bool run() {
    std::vector<const spec::GoldenCase*> small;
    for (const spec::GoldenCase& c : capture_.cases)
      if (scores(c) <= kMostScores) small.push_back(&c);
    const size_t step = std::max<size_t>(1, small.size() / kCases);
    for (size_t n = step / 2; n < small.size() && writer_.count() < kCases; n += step)
      if (!add(*small[n])) return false;
    return writer_.write();
  }

 private:
  // The goldens of one output, as they are gathered.
  struct Golden {
    int64_t indices = 0;  // 0: none are kept
    int64_t step = 1;     // every how many-th
    int64_t seen = 0;
    std::vector<double> index, values, accepted;
  };

  int64_t scores(const spec::GoldenCase& c) const {
    return spec::value_of(form_.B, c.sizes) * form_.H.constant * spec::value_of(form_.M, c.sizes) *
           spec::value_of(form_.N, c.sizes);
  }

  static bool among(const std::vector<int64_t>& heads, int64_t h) {
    return heads.empty() || std::find(heads.begin(), heads.end(), h) != heads.end();
  }

  bool add(const spec::GoldenCase& golden) {
    std::optional<spec::Problem> p =
        spec::make_problem(form_, golden.sizes, golden.draws, diagnostics_);
    if (!p) return false;
    bool same = true;  // whether the GPU draws what PyTorch drew
    for (auto& [name, tensor] : p->tensors)
      if (name != Gradients::kOutput && name != Gradients::kLogSum &&
          to_user_order(tensor, name, transferred_))
        same = false;
    if (!same) spec::Family::of(form_).complete(form_, *p);
    writer_.add_case(
        *p, golden.draws,
        fmt::format("golden B{} {}x{}", spec::value_of(form_.B, p->sizes),
                    spec::value_of(form_.M, p->sizes), spec::value_of(form_.N, p->sizes)),
        writer_.count() % 2 ? "BSHD" : "BHSD");
    writer_.last()["launches"] = tl::takes_turns(transferred_.program) ? kSameBits : 1;
    walk(golden, *p, same);
    for (size_t n = 0; n < goldens_.size(); ++n) {
      Golden& g = goldens_[n];
      if (!g.accepted.empty() &&
          !writer_.add_golden(form_.outputs[n].name, g.indices, std::move(g.index),
                              std::move(g.values), std::move(g.accepted)))
        return false;
    }
    for (const transfer::Binding& b : transferred_.bindings)
      if ((b.user == Gradients::kOutput || b.user == Gradients::kLogSum) &&
          !writer_.add_given(b.argument, p->tensors.at(b.user)))
        return false;
    return true;
  }

  // As many numbers as name a row, or of Rule::sum an element, of the kernel's output.
  int64_t indices_of(const Output& o) const {
    const tl::Stmt* declared = transfer::declaration_of_argument(transferred_.program, o.name);
    const int64_t rank = declared ? static_cast<int64_t>(declared->dims().size()) : 0;
    const auto axes = static_cast<int64_t>(o.axes.size());
    if (o.rule != spec::Rule::sum) return rank == axes ? axes - 1 : 0;
    return rank == std::max<int64_t>(axes, 1) ? rank : 0;
  }

  // Every head that a golden needs, as the capture's own check walks them.
  void walk(const spec::GoldenCase& golden, const spec::Problem& p, bool same) {
    const auto truth = spec::truth(form_, p);
    const int64_t M = truth->rows(), N = spec::value_of(form_.N, p.sizes),
                  group = truth->heads() / form_.G.constant;
    goldens_.assign(form_.outputs.size(), {});
    for (size_t n = 0; n < form_.outputs.size(); ++n) {
      const Output& o = form_.outputs[n];
      goldens_[n].indices = indices_of(o);
      if (o.rule == spec::Rule::sum && o.has('i'))
        goldens_[n].step = std::max<int64_t>(1, scores(golden) / kElements);
    }
    const bool learned = form_.outputs.size() > Gradients::kOperands;
    const std::vector<int64_t> none,
        &key_heads = golden.others.empty() ? none : golden.others[0].heads;
    spec::Sums<Held> sums;
    for (const spec::HeadAt& at : spec::heads_of(truth->batches(), truth->heads(), form_.G.constant,
                                                 [&](int64_t h) { return (h + 1) % group == 0; })) {
      const bool of_rows = among(golden.heads, at.h), of_keys = among(key_heads, at.g);
      if (!of_rows && !of_keys && !learned) continue;
      truth->begin_head();
      for (int64_t i = 0; i < M; ++i) {
        truth->row(at.b, at.h, i);
        if (of_rows) add_row(0, truth->of(0), {at.b, at.h, i}, own_error(golden, 0, at, i, same));
      }
      for (size_t n = 1; n < form_.outputs.size(); ++n) {
        const Output& o = form_.outputs[n];
        const bool wanted = o.rule == spec::Rule::sum || of_keys;
        if (!wanted) continue;
        const auto sum = sums.add(n, spec::block_of(o, at), truth->of(n), spec::add_share);
        for (int64_t r = 0; sum && r < spec::rows_of(*sum); ++r)
          if (o.rule == spec::Rule::sum)
            add_element(n, spec::row_of(*sum, r), at, r, N);
          else
            add_row(n, spec::row_of(*sum, r), {at.b, at.g, r}, own_error(golden, n, at, r, same));
      }
    }
  }

  double own_error(const spec::GoldenCase& golden, size_t output, const spec::HeadAt& at, int64_t r,
                   bool same) const {
    if (!same) return writer_.typical_error();
    if (output == 0) return golden.own_error.at({at.b, at.h, r});
    const auto& errors = golden.others[output - 1].own_error;
    return errors ? errors->at({at.b, at.g, r}) : 0;
  }

  // The judge divides by the row's norm, and the check by no less than what is due (accept()).
  void add_row(size_t n, const Held& held, const std::vector<int64_t>& at, double own) {
    Golden& g = goldens_[n];
    if (!g.indices) return;
    const double allowed = accepted_error(own, form_.dtype) + spec::kDeviations * held.rounding;
    double squares = 0;
    for (const double x : held.want) squares += x * x;
    const double norm = std::sqrt(squares),
                 due = std::max(norm + held.noise / allowed,
                                least_norm(form_.dtype, static_cast<int64_t>(held.want.size())));
    if (norm == 0 && held.noise > 0) return;  // of nothing no relative error can be accepted
    for (const int64_t x : at) g.index.push_back(static_cast<double>(x));
    g.values.insert(g.values.end(), held.want.begin(), held.want.end());
    g.accepted.push_back(norm > 0 ? allowed * due / norm : 0);
  }

  // One element of a gradient whose elements have a rule each; `r` counts the elements of a block.
  void add_element(size_t n, const Held& held, const spec::HeadAt& at, int64_t r, int64_t N) {
    Golden& g = goldens_[n];
    if (!g.indices || g.seen++ % g.step != 0) return;
    const Output& o = form_.outputs[n];
    std::vector<double> index;
    for (const char axis : o.axes)
      index.push_back(static_cast<double>(axis == 'b'   ? at.b
                                          : axis == 'h' ? at.h
                                          : axis == 'g' ? at.g
                                          : axis == 'i' ? r / N
                                          : o.has('i')  ? r % N
                                                        : r));
    if (o.axes.empty()) index.push_back(0);
    g.index.insert(g.index.end(), index.begin(), index.end());
    g.values.push_back(held.want[0]);
    g.accepted.push_back(held.allowed[0] + held.rounding * std::fabs(held.want[0]));
  }

  const spec::Capture& capture_;
  const spec::Form& form_;
  const transfer::Result& transferred_;
  Diagnostics& diagnostics_;
  ProofWriter writer_;
  std::vector<Golden> goldens_;  // of the form's outputs
};

}  // namespace

bool write_gradient_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                          const transfer::Result& transferred, Diagnostics& diagnostics) {
  return GradientCases(folder, capture, transferred, diagnostics).run();
}

}  // namespace kw::driver::families
