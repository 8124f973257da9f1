// The first statement whose value is another formula than the specification's at that point.
//
// The same places as the Locator of the values reading, with nothing tolerated: scores before
// `online_max`, weights before `row_sum`, sums after it, the accumulator after its product, outputs
// and log-sums before a store. It explains a refutation and decides nothing.
#include <fmt/format.h>

#include <map>

#include "check/locator.h"
#include "check/packing.h"
#include "operator/evaluate/exact.h"
#include "tl/traits.h"

namespace kw::check {

using exact::Element;
using exec::Row;
using exec::Tile;
using exec::View;
using tl::Family;
using tl::Op;
using tl::Stmt;

namespace {

struct Warpgroup {
  exec::Place rows;
  std::map<std::string, const Stmt*> last;  // by tile or vector: the last statement that set it
  std::string score_tile;                   // by name
  // The scores as their product left them (no statement) and after each map since.
  std::vector<std::pair<const Stmt*, std::vector<Element>>> scores;
  std::string reference;
  Element scale;
  std::vector<Element> m_of_p;
  using Keys = std::vector<std::pair<int64_t, int64_t>>;  // first, count
  std::map<std::string, Keys> summed;                     // by lane_sum
  Keys multiplied;
};

class ExactLocator : public Locator {
 public:
  ExactLocator(const Case& c, const spec::Form& form, const spec::Problem& named,
               const exec::Launch& launch)
      : case_(c),
        form_(form),
        named_(named),
        algebra_(*launch.algebra),
        M_(spec::value_of(form.M, named.sizes)),
        N_(spec::value_of(form.N, named.sizes)),
        Dv_(form.Dv.constant) {}

  Difference found() const override {
    if (found_.statement || !last_store_) return found_;
    return {last_store_, "every value agrees up to here: it goes to the wrong place"};
  }

  void before(const Stmt& s, const View& v) override {
    if (found_.statement) return;
    if (s.op == Op::online_max) check_scores(s, v);
    if (s.op == Op::row_sum) check_weights(s, v);
    if (s.op == Op::row) check_total(s, v);
    if ((s.op == Op::store && text_of(s, tl::Hole::src) != warpgroups_[v.agent()].score_tile) ||
        s.op == Op::store_columns)
      check_output(s, v);
    if (s.op == Op::store_rows) check_lse(s, v);
  }

  void after(const Stmt& s, const View& v) override {
    if (tl::is(s.op, Family::copy_out) && !last_store_) last_store_ = &s;
    if (found_.statement) return;
    Warpgroup& w = warpgroups_[v.agent()];
    if (tl::has_element(s.op) || s.op == Op::fill) on_map(s, v, w);
    if (tl::is(s.op, Family::contract)) on_product(s, v, w);
    if (s.op == Op::online_max) w.reference = text_of(s, tl::Hole::max);
    if (s.op == Op::row_sum) {
      if (const Tile* t = v.tile(text_of(s, tl::Hole::src)))
        w.summed[text_of(s, tl::Hole::sum)].push_back({t->of_columns.first, t->columns});
      check_sum(blamed(w, text_of(s, tl::Hole::sum), s), text_of(s, tl::Hole::sum), v);
    }
    if (s.op == Op::add) {
      const Warpgroup::Keys& more = w.summed[text_of(s, tl::Hole::part)];
      Warpgroup::Keys& all = w.summed[text_of(s, tl::Hole::sum)];
      all.insert(all.end(), more.begin(), more.end());
      check_sum(blamed(w, text_of(s, tl::Hole::sum), s), text_of(s, tl::Hole::sum), v);
    }
    if (s.op == Op::to_operand)
      if (const Row* m = v.row(w.reference)) w.m_of_p = m->e;
  }

 private:
  static std::string text_of(const Stmt& s, tl::Hole hole) {
    const tl::Item& item = s.items(hole)[0];
    return item.name.empty() && item.expr ? item.expr->text : item.name;
  }
  static const Stmt& blamed(const Warpgroup& w, const std::string& name, const Stmt& otherwise) {
    const auto it = w.last.find(name);
    return it == w.last.end() ? otherwise : *it->second;
  }
  bool same(const Element& a, const Element& b) const { return algebra_.equal(a, b).holds; }

  const spec::ExactScores& scores(int64_t b, int64_t h) {
    const auto [it, fresh] = scores_.try_emplace({b, h});
    if (fresh)
      it->second = spec::exact_scores(form_, form_.terms[0], named_, algebra_, b, case_.heads[h]);
    return it->second;
  }
  const spec::ExactRows& rows(int64_t b, int64_t h) {
    const auto [it, fresh] = rows_.try_emplace({b, h});
    if (fresh) it->second = spec::exact_rows(form_, named_, algebra_, b, case_.heads[h]);
    return it->second;
  }

  void on_map(const Stmt& s, const View& v, Warpgroup& w) {
    const std::string name = text_of(s, tl::Hole::target);
    w.last[name] = &s;
    if (s.op == Op::fill) w.summed.erase(name);
    if (const Tile* t = v.tile(name); t && name == w.score_tile) w.scores.emplace_back(&s, t->e);
  }
  // Of scores, whose right side is transposed; or acc += p @ v.
  void on_product(const Stmt& s, const View& v, Warpgroup& w) {
    const std::string name = text_of(s, tl::Hole::acc);
    if (tl::traits(s.op).transposed) {
      w.score_tile = name;
      if (const Tile* t = v.tile(name)) on_scores(s, *t, w);
    } else if (const Tile* p =
                   v.tile(text_of(s, tl::Hole::a))) {  // else another warpgroup's weights
      w.multiplied.push_back({p->of_columns.first, p->columns});
      check_accumulator(s, v, w);
    }
    w.last[name] = &s;
  }

  // Scores of a block; with those of other queries than before, sums start empty.
  void on_scores(const Stmt& s, const Tile& t, Warpgroup& w) {
    const exec::Place &a = t.of_rows, &b = w.rows;
    if (a.outer != b.outer || a.first != b.first) {
      w.summed.clear();
      w.multiplied.clear();
    }
    w.rows = a;
    w.scores.clear();
    w.scores.emplace_back(nullptr, t.e);
    if (!form_.terms[0].more.empty()) return;  // a tile may hold any of the products, or a sum
    each_row(a, t.rows, [&](int r, int64_t i, const exec::Place& at) {
      for (int c = 0; c < t.columns && t.of_columns.first + c < N_; ++c) {
        const int64_t j = t.of_columns.first + c;
        if (same(t.e[size_t(r) * t.columns + c],
                 scores(batch_of(at), head_of(at)).product[i * N_ + j]))
          continue;
        return differ(s, fmt::format("{}[{}, {}] is not q[{}] . k[{}]; its columns are rows of {}, "
                                     "head {} of batch {}",
                                     w.score_tile, r, c, i, j, t.of_columns.tensor,
                                     head_of(t.of_columns), batch_of(t.of_columns)));
      }
    });
  }

  // The last map that changed an element of the scores; of one that should have been dropped, the
  // last that drops any.
  const Stmt* last_change(const Warpgroup& w, size_t element, bool kept) const {
    const Stmt* last = nullptr;
    for (size_t k = 1; k < w.scores.size(); ++k) {
      const bool changed = !same(w.scores[k].second[element], w.scores[k - 1].second[element]);
      const bool drops = tl::mentions(w.scores[k].first->value(), "-inf");
      if (kept ? changed : changed || drops) last = w.scores[k].first;
    }
    return last;
  }

  // f(r, i, at) for the rows of a tile that exist, each with the user's head and query.
  template <class F>
  void each_row(const exec::Place& tile, int rows, F f) {
    if (!tile.known) return;
    for (int r = 0; r < rows && !found_.statement; ++r) {
      const UserRow row = user_row(case_, M_, head_of(tile), tile.first + r);
      exec::Place at = tile;
      at.outer[1] = row.head;
      if (row.head < int64_t(case_.heads.size()) && row.query < M_) f(r, row.query, at);
    }
  }
  void differ(const Stmt& s, std::string text) { found_ = {&s, std::move(text)}; }

  // The score of a kept key times log2e; -inf of another.
  Element exponent(const exec::Place& at, int64_t i, int64_t j) {
    const spec::ExactScores& s = scores(batch_of(at), head_of(at));
    if (j >= N_ || !s.keep[i * N_ + j].holds) return algebra_.minus_infinity();
    return algebra_.mul(s.score[i * N_ + j], algebra_.log2e());
  }
  Element weight(const exec::Place& at, int64_t i, int64_t j, const Element& m, const Element& k) {
    const Element e = exponent(at, i, j);
    if (e.kind == exact::Kind::minus_infinity) return Element();
    return algebra_.exp2(algebra_.sub(e, algebra_.mul(m, k)));
  }

  void check_scores(const Stmt& s, const View& v) {
    Warpgroup& w = warpgroups_[v.agent()];
    const Tile* t = v.tile(text_of(s, tl::Hole::src));
    if (!t) return;
    // The argument, not what this statement says: that may be what is wrong.
    w.scale = v.element(tl::name("scale"));
    if (w.scale.x[0] == 0) w.scale = v.element(s.scale());
    each_row(t->of_rows, t->rows, [&](int r, int64_t i, const exec::Place& at) {
      for (int c = 0; c < t->columns; ++c) {
        const int64_t j = t->of_columns.first + c;
        const Element got = algebra_.mul(t->e[size_t(r) * t->columns + c], w.scale);
        const Element want = exponent(at, i, j);
        if (same(got, want)) continue;
        const bool dropped = want.kind == exact::Kind::minus_infinity;
        const Stmt* changed = last_change(w, size_t(r) * t->columns + c, !dropped);
        return differ(changed ? *changed : s,
                      fmt::format("for row {} and key {} the score is another formula{}{}", i, j,
                                  dropped ? ": the key is dropped" : "",
                                  changed ? "" : "; no map has changed it since its product"));
      }
    });
  }

  void check_weights(const Stmt& s, const View& v) {
    Warpgroup& w = warpgroups_[v.agent()];
    const Tile* t = v.tile(text_of(s, tl::Hole::src));
    const Row* m = v.row(w.reference);
    if (!t || !m) return;
    each_row(t->of_rows, t->rows, [&](int r, int64_t i, const exec::Place& at) {
      for (int c = 0; c < t->columns; ++c) {
        const int64_t j = t->of_columns.first + c;
        if (same(t->e[size_t(r) * t->columns + c], weight(at, i, j, m->e[r], w.scale))) continue;
        return differ(
            blamed(w, text_of(s, tl::Hole::src), s),
            fmt::format("for row {} and key {} the weight is another formula, relative to "
                        "the reference at hand",
                        i, j));
      }
    });
  }

  void check_sum(const Stmt& s, const std::string& name, const View& v) {
    Warpgroup& w = warpgroups_[v.agent()];
    const Row *l = v.row(name), *m = v.row(w.reference);
    if (!l || !m) return;
    each_row(w.rows, l->rows, [&](int r, int64_t i, const exec::Place& at) {
      Element want, got;
      for (const auto& [first, keys] : w.summed[name])
        for (int64_t j = first; j < first + keys; ++j)
          want = algebra_.add(want, weight(at, i, j, m->e[r], w.scale));
      for (int lane = 0; lane < l->lanes; ++lane)
        got = algebra_.add(got, l->e[size_t(r) * l->lanes + lane]);
      if (!same(got, want))
        differ(s, fmt::format("for row {} the sum is not that of the weights of its {} keys", i,
                              w.summed[name].size() *
                                  (w.summed[name].empty() ? 0 : w.summed[name][0].second)));
    });
  }

  void check_total(const Stmt& s, const View& v) {
    for (const tl::Item& d : s.names())
      if (d.expr && d.expr->kind == tl::ExprKind::call && d.expr->text == "total")
        check_sum(blamed(warpgroups_[v.agent()], d.expr->args[0]->text, s), d.expr->args[0]->text,
                  v);
  }

  // A product that is right but for what it was added to blames the last to change that.
  void check_accumulator(const Stmt& s, const View& v, Warpgroup& w) {
    const Tile* t = v.tile(text_of(s, tl::Hole::acc));
    if (!t || w.m_of_p.empty()) return;
    each_row(t->of_rows, t->rows, [&](int r, int64_t i, const exec::Place& at) {
      Element want;
      const std::vector<Element>& value = scores(batch_of(at), head_of(at)).value;
      for (const auto& [first, keys] : w.multiplied)
        for (int64_t j = first; j < std::min(first + keys, N_); ++j)
          want = algebra_.add(want, algebra_.mul(weight(at, i, j, w.m_of_p[r], w.scale),
                                                 value[j * Dv_ + t->of_columns.first]));
      if (same(t->e[size_t(r) * t->columns], want)) return;
      differ(w.multiplied.size() > 1 ? blamed(w, text_of(s, tl::Hole::acc), s) : s,
             fmt::format("with it, row {} of the accumulator is not the sum of its weights and "
                         "values",
                         i));
    });
  }

  void check_output(const Stmt& s, const View& v) {
    const Tile* t = v.tile(text_of(s, tl::Hole::src));
    if (!t) return;
    each_row(t->of_rows, t->rows, [&](int r, int64_t i, const exec::Place& at) {
      const std::vector<Element>& want = rows(batch_of(at), head_of(at)).output;
      for (int d = 0; d < t->columns; ++d)
        if (const int64_t column = t->of_columns.first + d;
            column < Dv_ && !same(t->e[size_t(r) * t->columns + d], want[i * Dv_ + column]))
          return differ(
              blamed(warpgroups_[v.agent()], text_of(s, tl::Hole::src), s),
              fmt::format("row {}, column {} of the output is another formula", i, column));
    });
  }

  void check_lse(const Stmt& s, const View& v) {
    Warpgroup& w = warpgroups_[v.agent()];
    const Row* lse = v.row(text_of(s, tl::Hole::src));
    if (!lse) return;
    each_row(w.rows, lse->rows, [&](int r, int64_t i, const exec::Place& at) {
      const spec::ExactRows& want = rows(batch_of(at), head_of(at));
      if (!want.uniform[i] && !same(lse->e[r], want.lse[i]))
        differ(blamed(w, text_of(s, tl::Hole::src), s), fmt::format("row {}: another formula", i));
    });
  }

  const Case& case_;
  const spec::Form& form_;
  const spec::Problem& named_;
  const exact::Algebra& algebra_;
  const int64_t M_, N_, Dv_;
  std::map<std::pair<int64_t, int64_t>, spec::ExactScores> scores_;
  std::map<std::pair<int64_t, int64_t>, spec::ExactRows> rows_;
  std::map<int, Warpgroup> warpgroups_;
  const Stmt* last_store_ = nullptr;
  Difference found_;
};

}  // namespace

std::unique_ptr<Locator> make_exact_locator(const Case& c, const spec::Form& form,
                                            const spec::Problem& named,
                                            const exec::Launch& launch) {
  return std::make_unique<ExactLocator>(c, form, named, launch);
}

}  // namespace kw::check
