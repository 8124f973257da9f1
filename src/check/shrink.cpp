// Making a counterexample small: fewer heads, then every size as small as it can be, greedily.
#include <algorithm>
#include <set>

#include "check/trial.h"

namespace kw::check {

namespace {

// Sizes to try below x, smallest first: small ones, and those around the tiles' edges.
std::vector<int64_t> smaller(int64_t x) {
  std::set<int64_t> sizes;
  for (int64_t s :
       {1, 2, 3, 8, 16, 32, 63, 64, 65, 66, 127, 128, 129, 130, 192, 193, 255, 256, 257})
    if (s < x) sizes.insert(s);
  if (x > 1) sizes.insert(x - 1);
  return {sizes.begin(), sizes.end()};
}

class Shrinker {
 public:
  Shrinker(const RunCase& run, const spec::Capture& capture, Case c, Failure failure)
      : run_(run), capture_(capture), best_(std::move(c)), failure_(std::move(failure)) {}

  std::pair<Case, Failure> run() {
    one_block();
    one_group();
    bool shrunk = true;
    while (shrunk && left_ > 0) {
      shrunk = false;
      for (const auto& [name, value] : std::map(best_.sizes)) shrunk |= shrink_size(name, value);
    }
    return {best_, failure_};
  }

 private:
  bool try_case(Case c) {
    if (left_ <= 0) return false;
    // A large case is work for many.
    const int64_t rows = spec::value_of(capture_.form.B, c.sizes) *
                         spec::value_of(capture_.form.M, c.sizes) * int64_t(c.heads.size());
    left_ -= 1 + (scores_of(capture_.form, c) + 100 * rows) / kWorkOfOne;
    const Trial trial = run_(c);
    if (!trial.valid || !trial.failure) return false;
    best_ = std::move(c);
    failure_ = *trial.failure;
    return true;
  }

  void one_block() {
    Case c = best_;
    c.grid = 1;
    if (best_.grid > 1) try_case(std::move(c));
  }

  // The query heads of one key head, where heads are alike.
  void one_group() {
    if (!spec::heads_are_alike(capture_.form) || best_.key_heads < 2) return;
    const int64_t ratio = capture_.form.H.constant / capture_.form.G.constant;
    const int64_t first = failure_.what.h / ratio;
    for (int64_t group : {first, best_.heads.front() / ratio, best_.heads.back() / ratio}) {
      Case c = best_;
      c.heads.clear();
      for (int64_t h : best_.heads)
        if (h / ratio == group) c.heads.push_back(h);
      c.key_heads = 1;
      if (try_case(std::move(c))) return;
    }
  }

  bool shrink_size(const std::string& name, int64_t value) {
    for (int64_t s : smaller(value)) {
      Case c = best_;
      c.sizes[name] = s;
      c.exact = false;
      if (try_case(std::move(c))) return true;
    }
    return false;
  }

  const RunCase& run_;
  const spec::Capture& capture_;
  Case best_;
  Failure failure_;
  static constexpr int64_t kWorkOfOne = 200'000;
  int64_t left_ = 120;  // runs
};

}  // namespace

std::pair<Case, Failure> shrink(const RunCase& run, const spec::Capture& capture, Case c,
                                Failure failure) {
  return Shrinker(run, capture, std::move(c), std::move(failure)).run();
}

}  // namespace kw::check
