// The first statement whose value already differs from what the form says at that point.
//
// An online softmax has a known value at every statement, relative to the reference m at hand:
//   a product's scores        q[i] . k[j], for the rows and keys the tile stands for
//   scores before `online_max`     score(i, j) log2(e) / scale where kept, -inf elsewhere
//   weights before `row_sum`  p(i, j) = exp2(score log2(e) - m scale)
//   l after `row_sum`         sum of p over the keys seen
//   acc, before and after     sum of p v over the keys multiplied, relative to the m that the
//   `wgmma_add`          operand's weights were made with
//   outputs before a store    the row's output, its log-sum
// The observer compares at these statements. The tolerances are wide (1e-3, or 2e-2 where rounded
// weights were multiplied): this explains a refutation and decides nothing.
#include "check/locator.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "check/packing.h"
#include "tl/traits.h"

namespace kw::check {

using exec::Row;
using exec::Tile;
using exec::View;
using tl::Family;
using tl::Op;
using tl::Stmt;

namespace {

constexpr double kLog2e = 1.4426950408889634;

// What the observer remembers of one warpgroup.
struct Warpgroup {
  exec::Place rows;                             // of the block of queries at hand
  std::map<std::string, const Stmt*> last_map;  // by tile or vector: the last map or fill
  std::map<std::string, const Stmt*> product;   // by accumulator
  std::string score_tile;                       // by name
  // The scores as their product left them (no statement) and after each map since.
  std::vector<std::pair<const Stmt*, std::vector<float>>> scores;
  std::string reference;      // m, by name
  double scale = 0;           // of the exponents: the program's argument
  std::vector<float> m_of_p;  // m when the operand was made
  using Keys = std::vector<std::pair<int64_t, int64_t>>;  // first, count
  std::map<std::string, Keys> summed;                     // by lane_sum
  Keys multiplied;
};

class SoftmaxLocator : public Locator {
 public:
  SoftmaxLocator(const Case& c, spec::Evaluator& evaluator, const Counterexample& wrong)
      : case_(c),
        truth_(evaluator),
        wrong_(wrong),
        one_row_(wrong.i >= 0 &&
                 evaluator.queries() * evaluator.keys() * evaluator.keys() > kLarge),
        scale_name_(tl::name("scale")) {}

  Difference found() const override {
    if (found_.statement || !last_store_) return found_;
    return {last_store_,
            "no value is off by more than rounding could be up to here: the error is smaller, or "
            "something goes to the wrong place"};
  }

  void before(const Stmt& s, const View& v) override {
    if (found_.statement) return;
    if (s.op == Op::online_max) check_scores(s, v);
    if (s.op == Op::row_sum) check_weights(s, v);
    if (s.op == Op::row_sum) check_sum(s, text_of(s, tl::Hole::sum), v);
    if (s.op == Op::row) check_total(s, v);
    if (is_of_values(s) && v.tile(text_of(s, tl::Hole::a))) check_accumulator_before(s, v);
    if ((s.op == Op::store && text_of(s, tl::Hole::src) != warpgroup(v).score_tile) ||
        s.op == Op::store_columns)
      check_output(s, v);
    if (s.op == Op::store_rows) check_lse(s, v);
  }

  void after(const Stmt& s, const View& v) override {
    if (tl::is(s.op, Family::copy_out) && !last_store_) last_store_ = &s;
    if (found_.statement) return;
    Warpgroup& w = warpgroup(v);
    if (tl::has_element(s.op) || s.op == Op::fill) on_map(s, v, w);
    if (tl::is(s.op, Family::contract)) on_product(s, v, w);
    if (s.op == Op::wgmma_wait) check_product(text_of(s, tl::Hole::acc), v);
    if (s.op == Op::online_max) w.reference = text_of(s, tl::Hole::max);
    if (s.op == Op::row_sum) {
      if (const Tile* t = v.tile(text_of(s, tl::Hole::src)))
        w.summed[text_of(s, tl::Hole::sum)].push_back({t->of_columns.first, t->columns});
      check_sum(s, text_of(s, tl::Hole::sum), v);
    }
    if (s.op == Op::add) {
      const Warpgroup::Keys& more = w.summed[text_of(s, tl::Hole::part)];
      Warpgroup::Keys& all = w.summed[text_of(s, tl::Hole::sum)];
      all.insert(all.end(), more.begin(), more.end());
      check_sum(s, text_of(s, tl::Hole::sum), v);
    }
    if (s.op == Op::to_operand)
      if (const Row* m = v.row(w.reference)) w.m_of_p = m->x;
  }

 private:
  static std::string text_of(const Stmt& s, tl::Hole hole) {
    const tl::Item& item = s.items(hole)[0];
    return item.name.empty() && item.expr ? item.expr->text : item.name;
  }
  // acc += p @ v, in contrast to the products of scores, whose right side is transposed.
  static bool is_of_values(const Stmt& s) {
    return tl::is(s.op, Family::contract) && !tl::traits(s.op).transposed;
  }
  Warpgroup& warpgroup(const View& v) { return warpgroups_[v.agent()]; }

  void differ(const Stmt* s, std::string text) { found_ = {s, std::move(text)}; }
  const Stmt* map_or(Warpgroup& w, const std::string& name, const Stmt& otherwise) {
    const auto it = w.last_map.find(name);
    return it == w.last_map.end() ? &otherwise : it->second;
  }

  // Exponentials that a reference cannot hold, which `any_exceeds` is there to tell.
  static bool overflows(double got, double want) { return std::isinf(got) && want > 3e38; }

  // The scores of a block have come; with those of other queries than before, sums start empty.
  void on_scores(const Tile& t, Warpgroup& w) {
    const exec::Place &a = t.of_rows, &b = w.rows;
    if (a.outer != b.outer || a.first != b.first) {
      w.summed.clear();
      w.multiplied.clear();
    }
    w.rows = a;
    w.scores.clear();
    w.scores.emplace_back(nullptr, t.x);
  }
  void on_map(const Stmt& s, const View& v, Warpgroup& w) {
    const std::string name = text_of(s, tl::Hole::target);
    w.last_map[name] = &s;
    if (s.op == Op::fill) w.summed.erase(name);
    if (const Tile* tile = v.tile(name); tile && name == w.score_tile)
      w.scores.emplace_back(&s, tile->x);
  }
  // What it has computed is looked at once the product is done.
  void on_product(const Stmt& s, const View& v, Warpgroup& w) {
    w.last_map.erase(text_of(s, tl::Hole::acc));
    if (is_of_values(s)) {
      const Tile* p = v.tile(text_of(s, tl::Hole::a));
      if (!p) return;  // weights in shared memory, which another warpgroup made
      w.multiplied.push_back({p->of_columns.first, p->columns});
    }
    w.product[text_of(s, tl::Hole::acc)] = &s;
    if (tl::traits(s.op).async == tl::Async::none) check_product(text_of(s, tl::Hole::acc), v);
  }

  // f(r, b, user's head, i) for the rows of a tile that exist.
  template <class F>
  void each_row(const Tile& t, F f) {
    const exec::Place& at = t.of_rows;
    if (!at.known) return;
    for (int r = 0; r < t.rows && !found_.statement; ++r) {
      const UserRow row = user_row(case_, truth_.queries(), head_of(at), at.first + r);
      if (row.head >= int64_t(case_.heads.size()) || row.query >= truth_.queries()) continue;
      const int64_t b = batch_of(at), h = case_.heads[row.head];
      if (one_row_ && (b != wrong_.b || h != wrong_.h || row.query != wrong_.i)) continue;
      f(r, b, h, row.query);
    }
  }
  double weight(int64_t b, int64_t h, int64_t i, int64_t j, double m, double scale) {
    if (j >= truth_.keys() || !truth_.keep(0, b, h, i, j) || m == -INFINITY) return 0;
    return std::exp2(truth_.score(0, b, h, i, j) * kLog2e - m * scale);
  }

  // After the wait for a product: scores, or the accumulator.
  void check_product(const std::string& name, const View& v) {
    Warpgroup& w = warpgroup(v);
    const Tile* t = v.tile(name);
    const auto product = w.product.find(name);
    if (!t || product == w.product.end()) return;
    if (is_of_values(*product->second)) return check_accumulator(*product->second, *t, w, "after");
    w.score_tile = name;
    on_scores(*t, w);
    if (truth_.products(0) > 1) return;  // a tile may hold any of them, or a sum
    const int64_t group = case_.packed ? 1 : int64_t(case_.heads.size()) / case_.key_heads;
    const int64_t h = head_of(t->of_rows);
    each_row(*t, [&](int r, int64_t b, int64_t user, int64_t i) {
      for (int c = 0; c < t->columns && t->of_columns.first + c < truth_.keys(); ++c) {
        const int64_t j = t->of_columns.first + c;
        const double want = truth_.product(0, b, user, i, j), got = t->row(r)[c];
        const double off = 1e-3 * (1 + std::fabs(want)) +
                           spec::kDeviations * truth_.product_deviation(0, b, user, i, j);
        if (std::fabs(got - want) <= off) continue;
        return differ(product->second,
                      fmt::format("{}[{}, {}] is {:.5g} and q[{}] . k[{}] is {:.5g}; its columns "
                                  "are rows of {}, head {} of batch {}, and head {} of batch {} "
                                  "of k is wanted",
                                  name, r, c, got, i, j, want, t->of_columns.tensor,
                                  head_of(t->of_columns), batch_of(t->of_columns), h / group, b));
      }
    });
  }

  // The last map that changed an element of the scores; of one that should have been dropped, the
  // last that drops any.
  static const Stmt* last_change(const Warpgroup& w, size_t element, bool kept) {
    const Stmt* last = nullptr;
    for (size_t k = 1; k < w.scores.size(); ++k) {
      const bool changed = w.scores[k].second[element] != w.scores[k - 1].second[element];
      const bool drops = tl::mentions(w.scores[k].first->value(), "-inf");
      if (kept ? changed : changed || drops) last = w.scores[k].first;
    }
    return last;
  }

  void check_scores(const Stmt& s, const View& v) {
    Warpgroup& w = warpgroup(v);
    const Tile* t = v.tile(text_of(s, tl::Hole::src));
    if (!t) return;
    // The argument, not what this statement says: that may be what is wrong.
    const double argument = v.value(scale_name_);
    const double scale = w.scale = std::isnan(argument) ? v.value(s.scale()) : argument;
    each_row(*t, [&](int r, int64_t b, int64_t h, int64_t i) {
      for (int c = 0; c < t->columns; ++c) {
        const int64_t j = t->of_columns.first + c;
        const double got = t->row(r)[c] * scale;
        const bool kept = j < truth_.keys() && truth_.keep(0, b, h, i, j);
        const double want = kept ? truth_.score(0, b, h, i, j) * kLog2e : -INFINITY;
        if (kept ? std::fabs(got - want) <= 1e-3 * (1 + std::fabs(want)) : got < -1e4) continue;
        const Stmt* changed = last_change(w, size_t(r) * t->columns + c, kept);
        return differ(
            changed ? changed : &s,
            fmt::format("for row {} and key {} the score is {:.5g} and should be {:.5g} (times "
                        "log2(e)){}{}",
                        i, j, got, want, kept ? "" : ": the key is dropped",
                        changed ? "" : "; no map has changed it since its product"));
      }
    });
  }

  void check_weights(const Stmt& s, const View& v) {
    Warpgroup& w = warpgroup(v);
    const Tile* t = v.tile(text_of(s, tl::Hole::src));
    const Row* m = v.row(w.reference);
    if (!t || !m) return;
    const Stmt* blamed = map_or(w, text_of(s, tl::Hole::src), s);
    each_row(*t, [&](int r, int64_t b, int64_t h, int64_t i) {
      for (int c = 0; c < t->columns; ++c) {
        const double want = weight(b, h, i, t->of_columns.first + c, m->x[r], w.scale);
        const double got = t->row(r)[c];
        if (std::fabs(got - want) <= 1e-3 * want + 1e-5 || overflows(got, want)) continue;
        return differ(blamed,
                      fmt::format("for row {} and key {} the weight is {:.5g} and should be "
                                  "{:.5g}, relative to m = {:.5g}",
                                  i, t->of_columns.first + c, got, want, m->x[r]));
      }
    });
  }

  // The partial sum l against the weights of all keys summed so far.
  void check_sum(const Stmt& s, const std::string& name, const View& v) {
    Warpgroup& w = warpgroup(v);
    const Row *l = v.row(name), *m = v.row(w.reference);
    if (!l || !m || !w.rows.known) return;
    const Stmt* blamed = map_or(w, name, s);
    Tile rows;  // of the scores: only where they lie
    rows.rows = l->rows;
    rows.of_rows = w.rows;
    each_row(rows, [&](int r, int64_t b, int64_t h, int64_t i) {
      double want = 0, got = 0;
      for (const auto& [first, keys] : w.summed[name])
        for (int64_t j = first; j < first + keys; ++j) want += weight(b, h, i, j, m->x[r], w.scale);
      for (int lane = 0; lane < l->lanes; ++lane) got += l->x[size_t(r) * l->lanes + lane];
      if (std::fabs(got - want) <= 2e-3 * want + 1e-5 || overflows(got, want)) return;
      differ(blamed, fmt::format("for row {} the sum of weights is {:.5g} and should be {:.5g}, "
                                 "relative to m = {:.5g}",
                                 i, got, want, m->x[r]));
    });
    if (s.op == Op::row_sum) w.last_map.erase(name);
  }

  void check_total(const Stmt& s, const View& v) {
    for (const tl::Item& d : s.names())
      if (d.expr && d.expr->kind == tl::ExprKind::call && d.expr->text == "total")
        check_sum(s, d.expr->args[0]->text, v);
  }

  void check_accumulator_before(const Stmt& s, const View& v) {
    Warpgroup& w = warpgroup(v);
    const Tile* t = v.tile(text_of(s, tl::Hole::acc));
    if (t && t->of_rows.known)
      check_accumulator(*map_or(w, text_of(s, tl::Hole::acc), s), *t, w, "before");
  }

  void check_accumulator(const Stmt& blamed, const Tile& t, const Warpgroup& w, const char* when) {
    if (w.m_of_p.empty()) return;
    each_row(t, [&](int r, int64_t b, int64_t h, int64_t i) {
      std::vector<double> want(t.columns);
      for (const auto& [first, keys] : w.multiplied)
        for (int64_t j = first; j < std::min(first + keys, truth_.keys()); ++j) {
          const double p = weight(b, h, i, j, w.m_of_p[r], w.scale);
          for (int d = 0; d < t.columns; ++d)
            want[d] += p * truth_.value(0, b, h, j, t.of_columns.first + d);
        }
      double off = 0, norm = 0;
      for (int d = 0; d < t.columns; ++d) {
        off += (t.row(r)[d] - want[d]) * (t.row(r)[d] - want[d]);
        norm += want[d] * want[d];
      }
      if (std::sqrt(off) <= 2e-2 * std::sqrt(norm) + 1e-5) return;
      differ(&blamed, fmt::format("{} the product, row {} of the accumulator is {:.5g}, ... and "
                                  "should be {:.5g}, ..., relative to m = {:.5g}",
                                  when, i, t.row(r)[0], want[0], w.m_of_p[r]));
    });
  }

  void check_output(const Stmt& s, const View& v) {
    const Tile* t = v.tile(text_of(s, tl::Hole::src));
    if (!t) return;
    const Stmt* blamed = map_or(warpgroup(v), text_of(s, tl::Hole::src), s);
    std::vector<double> want(truth_.value_dim());
    each_row(*t, [&](int r, int64_t b, int64_t h, int64_t i) {
      truth_.row(b, h, i, want.data());
      for (int d = 0; d < t->columns; ++d) {
        const int64_t column = t->of_columns.first + d;  // of a tile that is part of wider rows
        if (column >= truth_.value_dim()) break;
        if (std::fabs(t->row(r)[d] - want[column]) <= 2e-2 * (1 + std::fabs(want[column])))
          continue;
        return differ(blamed, fmt::format("row {}, column {} of the output is {:.5g} and should be "
                                          "{:.5g}",
                                          i, column, t->row(r)[d], want[column]));
      }
    });
  }

  // The rows are those of the warpgroup's accumulators; any that stands for query rows will do.
  void check_lse(const Stmt& s, const View& v) {
    Warpgroup& w = warpgroup(v);
    const Row* lse = v.row(text_of(s, tl::Hole::src));
    const Tile* t = nullptr;
    for (const auto& [name, product] : w.product)
      if (const Tile* x = v.tile(name); x && x->of_rows.known) t = x;
    if (!lse || !t) return;
    const Stmt* blamed = map_or(w, text_of(s, tl::Hole::src), s);
    std::vector<double> row(truth_.value_dim());
    each_row(*t, [&](int r, int64_t b, int64_t h, int64_t i) {
      const double want = truth_.row(b, h, i, row.data()), got = lse->x[r];
      if (got == want || std::fabs(got - want) <= 1e-3 * (1 + std::fabs(want))) return;
      differ(blamed, fmt::format("row {}: {:.6g}, and should be {:.6g}", i, got, want));
    });
  }

  const Case& case_;
  spec::Evaluator& truth_;
  const Counterexample& wrong_;
  // Every turn's accumulator is a sum over all keys so far.
  static constexpr int64_t kLarge = 1 << 28;
  const bool one_row_;
  const tl::ExprPtr scale_name_;
  std::map<int, Warpgroup> warpgroups_;
  const Stmt* last_store_ = nullptr;
  Difference found_;
};

}  // namespace

std::unique_ptr<Locator> make_locator(const Case& c, spec::Evaluator& truth,
                                      const Counterexample& wrong) {
  return std::make_unique<SoftmaxLocator>(c, truth, wrong);
}

}  // namespace kw::check
