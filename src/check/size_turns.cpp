#include "check/size_turns.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "check/program_numbers.h"
#include "tl/traits.h"

namespace kw::check {
namespace {

constexpr int64_t kUsual = 65;  // of sizes beside the one that grows, as cases have them
constexpr size_t kMost = 4;     // places of one decision along one line

// Where decisions are asked: few at first, then nearer to each other than any two sizes that
// somebody would tell apart by a factor.
const std::vector<int64_t>& probes() {
  static const std::vector<int64_t> all = [] {
    std::vector<int64_t> out;
    for (double t = 1; t <= 2.0 * kFarthest; t = std::max(t + 1, t * 1.15))
      out.push_back(int64_t(t));
    return out;
  }();
  return all;
}

class Search {
 public:
  Search(const Integers& integers, const std::set<int64_t>& tiles)
      : integers_(integers), tiles_(tiles) {
    const auto& nodes = integers.nodes();
    support_.resize(nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].does == Does::variable) {
        support_[n] = {int(n)};
        // Numbers of heads are the function's own.
        const bool heads = nodes[n].text == "H" || nodes[n].text == "G";
        (!nodes[n].size ? others_ : heads ? heads_ : sizes_).push_back(int(n));
      }
      for (const int a : nodes[n].args) support_[n].insert(support_[a].begin(), support_[a].end());
    }
  }

  Turns take() {
    for (const int one : sizes_) {
      along({one}, 1, 0);
      along({one}, kUsual, 1);
      for (const int other : sizes_)
        if (one < other) along({one, other}, 1, 0);
    }
    for (const int one : others_)
      if (!integers_.nodes()[one].real) along({one}, 1, 0);
    // A size and what is read of data together: `min(N, length)`.
    std::set<int> all(sizes_.begin(), sizes_.end());
    along(all, 1, 0);
    for (const int v : others_)
      if (integers_.nodes()[v].data) all.insert(v);
    along(all, 1, 0);
    return std::move(out_);
  }

 private:
  // Along a line the sizes and integers that grow are t; others stay.
  void along(const std::set<int>& grown, int64_t of_sizes, int64_t of_others) {
    std::map<int, int64_t> variables;
    for (const int v : sizes_) variables[v] = of_sizes;
    for (const int v : others_) variables[v] = of_others;
    for (const int v : heads_) variables[v] = 1;
    std::vector<int> moving;
    for (size_t n = 0; n < support_.size(); ++n)
      if (std::any_of(grown.begin(), grown.end(), [&](int v) { return support_[n].count(v) > 0; }))
        moving.push_back(int(n));
    std::vector<Number> values;
    integers_.evaluate(variables, values);
    const auto at = [&](int64_t t) {
      for (const int v : grown) variables[v] = t;
      integers_.evaluate(variables, moving, values);
    };
    std::map<std::pair<int, int>, std::vector<std::optional<int64_t>>> said;
    for (const int64_t t : probes()) {
      at(t);
      for (const int n : moving)
        for (int which = 0; which < Integers::answers(integers_.nodes()[n]); ++which)
          said[{n, which}].push_back(Integers::answer(integers_.nodes()[n], which, values));
    }
    for (const auto& [decision, answers] : said) {
      const auto [n, which] = decision;
      const std::set<int>& of = support_[n];
      std::set<int> own;
      for (const int v : grown)
        if (of.count(v)) own.insert(v);
      // The line of fewer has asked it.
      if (own.empty() || (own.size() < grown.size() && own.size() < 2)) continue;
      const Integers::Node& node = integers_.nodes()[n];
      const auto ask = [&, which = which](int64_t t) {
        at(t);
        return Integers::answer(node, which, values);
      };
      size_t found = 0;
      for (size_t p = 0; p + 1 < probes().size() && found < kMost; ++p) {
        const std::optional<int64_t> before = answers[p];
        if (!before || before == answers[p + 1]) continue;
        int64_t same = probes()[p], other = probes()[p + 1];
        while (other - same > 1) {
          const int64_t middle = same + (other - same) / 2;
          (ask(middle) == before ? same : other) = middle;
        }
        // The same for long, and no edge of a tile.
        if (ask(same - same / 5) != before || ask(same - 3 * same / 8) != before) continue;
        if (other > 4 && other <= kFarthest && take(n, other, own, variables)) ++found;
      }
    }
  }

  bool is_edge(int64_t t) const {
    return std::any_of(tiles_.begin(), tiles_.end(), [&](int64_t tile) {
      return std::abs(t - tile) <= 1 || std::abs(t - 2 * tile) <= 1;
    });
  }

  bool take(int decision, int64_t t, const std::set<int>& own,
            const std::map<int, int64_t>& variables) {
    if (is_edge(t)) return false;
    SizeTurn turn;
    turn.at = t;
    turn.decision = decision;
    for (const int v : support_[decision]) {
      const Integers::Node& node = integers_.nodes()[v];
      turn.of_data |= node.data && own.count(v) > 0;
      if (!node.size) continue;
      if (own.count(v))
        turn.grown[node.text] = t;
      else
        turn.others[node.text] = variables.at(v);
    }
    if (turn.grown.empty()) {
      out_.of_others.insert(t);
      return true;
    }
    if (t < kCovered) return false;
    out_.of_sizes.insert(turn);
    return true;
  }

  const Integers& integers_;
  const std::set<int64_t>& tiles_;
  std::vector<std::set<int>> support_;  // of each node the variables
  std::vector<int> sizes_, heads_, others_;
  Turns out_;
};

}  // namespace

Turns turns_of(const tl::Program& program, const std::set<int64_t>& tiles) {
  Integers integers;
  tl::walk_scoped(program, [&](const tl::Stmt& s, const tl::Scope& scope) {
    if (s.op == tl::Op::param) return;
    std::vector<int> of_loop;
    tl::each_expr(s, scope, [&](const tl::ExprPtr& e, const tl::Scope& at) {
      const int node = integers.add(e, at);
      if (tl::traits(s.op).family == tl::Family::loop) of_loop.push_back(node);
    });
    if (of_loop.size() == 2) integers.add_order(of_loop[0], of_loop[1]);
    for (const int node : of_loop) integers.add_order(node, integers.add(tl::integer(0), scope));
  });
  return Search(integers, tiles).take();
}

}  // namespace kw::check
