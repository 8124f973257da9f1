// Which cases a check runs: the capture's golden ones, then shapes around the edges of tiles and
// with more key blocks than a ring has stages, drawn alike with another seed.
//
// With standard normal inputs a softmax is flat: a score hardly ever exceeds the running reference
// by 2^8, so a kernel that forgets to rescale would pass. Every second shape therefore has queries
// six times as large. (Sharp inputs alone would not do either: they hide mask faults.) A kernel
// whose reference never rises again is right until exponentials overflow, which takes 2^128: every
// fourth shape has queries a hundred times as large, and blocks without a mask that follow the
// first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>

#include "check/family.h"
#include "check/planted.h"

namespace kw::check {

using spec::Form;
using spec::GoldenCase;

namespace {

int64_t area(const Form& form, const std::map<std::string, int64_t>& sizes) {
  return spec::value_of(form.B, sizes) * spec::value_of(form.M, sizes) *
         spec::value_of(form.N, sizes);
}

// The case's sizes with other batches, queries and keys, where the form leaves them open.
std::map<std::string, int64_t> resized(const Form& form, std::map<std::string, int64_t> sizes,
                                       int64_t b, int64_t m, int64_t n) {
  spec::give(form.B, b, sizes);
  spec::give(form.M, m, sizes);
  spec::give(form.N, n, sizes);
  Family::of(form).resize(form, m, n, sizes);
  return sizes;
}

const GoldenCase& nearest(const spec::Capture& capture,
                          const std::map<std::string, int64_t>& sizes) {
  return *std::min_element(
      capture.cases.begin(), capture.cases.end(), [&](const GoldenCase& a, const GoldenCase& b) {
        const auto far = [&](const GoldenCase& c) {
          return std::abs(area(capture.form, c.sizes) - area(capture.form, sizes));
        };
        return far(a) < far(b);
      });
}

// The n-th case beyond the goldens; of a rehearsal another one.
Case further_case(const spec::Capture& capture, int n, uint64_t rehearsal) {
  constexpr int64_t kQueries[] = {1, 31, 63, 64, 65, 127, 128, 129, 150, 191, 256, 257, 400};
  constexpr int64_t kKeys[] = {1, 2, 65, 127, 128, 129, 200, 256, 257, 300, 385, 520, 640};
  const Random pick(20240502 + rehearsal, 0);
  auto any = [&](const auto& from, int which) {
    return from[pick.integer(3 * n + which, 0, std::size(from) - 1)];
  };
  const int64_t b = pick.integer(3 * n, 1, 2), m = any(kQueries, 1), keys = any(kKeys, 2);
  const uint64_t salt = 1000 + n + (rehearsal << 20);
  Case c = n % 4 == 1 ? case_of(capture, 1, 300, 400, salt) : case_of(capture, b, m, keys, salt);
  for (const std::string& q : Family::of(capture.form).sharpened(capture.form)) {
    double& scale = c.draws.arguments[q].scale;
    if (n % 2 == 0) scale *= 6;
    if (n % 4 == 1) scale *= 100;
  }
  return c;
}

// A form that fixes its sizes has the same, large, in every case: fewer cases then, of all kinds,
// and not one with all heads.
void keep_within(const Form& form, int64_t budget, size_t all_heads, std::vector<Case>& cases) {
  int64_t total = 0;
  for (const Case& c : cases) total += scores_of(form, c);
  if (total <= budget) return;
  if (scores_of(form, cases[all_heads]) > budget / 4) {
    total -= scores_of(form, cases[all_heads]);
    choose_heads(form, cases[all_heads], false);
    total += scores_of(form, cases[all_heads]);
  }
  const size_t all = cases.size(), least = std::min<size_t>(all, 3);
  const size_t kept = std::clamp<size_t>(all * budget / std::max<int64_t>(total, 1), least, all);
  if (kept == all) return;
  for (size_t n = 0; n < kept; ++n) cases[n] = cases[n * (all - 1) / (kept - 1)];
  cases.resize(kept);
}

int64_t inputs_of(const Form& form, const Case& c) {
  int64_t out = 0;
  for (const spec::Argument& a : form.arguments) {
    int64_t count = a.is_tensor;
    for (const spec::Size& d : a.dims) count *= std::max<int64_t>(spec::value_of(d, c.sizes), 1);
    out += count;
  }
  return out;
}

// Of each group of query heads the first and the last.
void keep_ends_of_groups(Case& c) {
  const size_t ratio = c.heads.size() / c.key_heads;
  std::vector<int64_t> kept;
  for (size_t h = 0; h < c.heads.size(); ++h)
    if (h % ratio == 0 || h % ratio == ratio - 1) kept.push_back(c.heads[h]);
  c.heads = kept;
}

// Sizes that an argument alone has are the example's in all goldens that read no more, and a
// program could be written with that number, or read a table beyond its end: in exact cases they
// are others.
void change_own_sizes(const Form& form, size_t n, Case& c) {
  constexpr int64_t kFew = 37, kMore = 13;  // few grow to what is read
  for (const auto& [size, any] : spec::own_sizes(form)) {
    const auto found = c.sizes.find(size);
    if (found == c.sizes.end()) continue;
    if (any && n % 2 == 0)
      found->second = std::min(found->second, kFew);
    else
      found->second += kMore;
  }
}

}  // namespace

int64_t key_head_of(const Form& form, const Case& c, size_t h) {
  return c.heads[h] / (form.H.constant / form.G.constant);
}

bool ends_group(const Form& form, const Case& c, size_t h) {
  return h + 1 == c.heads.size() || key_head_of(form, c, h) != key_head_of(form, c, h + 1);
}

Case case_of(const spec::Capture& capture, int64_t b, int64_t m, int64_t n, uint64_t salt) {
  Case c;
  c.sizes = resized(capture.form, capture.cases[0].sizes, b, m, n);
  c.golden = &nearest(capture, c.sizes);
  c.draws = c.golden->draws;
  c.draws.seed += salt;
  c.exact = false;
  return c;
}

int64_t scores_of(const Form& form, const Case& c) {
  return area(form, c.sizes) * int64_t(c.heads.size()) * Family::of(form).depth(form, c.sizes);
}

FewHeads few_heads(const Form& form, const Case& c) {
  FewHeads out{form, c};
  if (c.exact || inputs_of(form, c) < kManyElements) return out;
  const int64_t ratio = form.H.constant / form.G.constant;
  const std::optional<Form> few = spec::with_key_heads(form, c.key_heads);
  if (!few || c.key_heads >= form.G.constant) return out;
  out.form = *few;
  int64_t group = -1, last = -1;
  for (size_t n = 0; n < c.heads.size(); ++n) {
    if (c.heads[n] / ratio != last) ++group;
    last = c.heads[n] / ratio;
    out.c.heads[n] = group * ratio + c.heads[n] % ratio;
  }
  return out;
}

int64_t elements_of(const FewHeads& few) {
  const auto& [form, c] = few;
  const auto of = [&](const spec::Size& size) { return spec::value_of(size, few.c.sizes); };
  const int64_t heads = int64_t(c.heads.size()), key_heads = std::max<int64_t>(c.key_heads, 1);
  return inputs_of(form, c) + of(form.B) * (heads * of(form.M) + key_heads * of(form.N)) *
                                  std::max(of(form.D), of(form.Dv));
}

std::string_view name(Planted what) {
  switch (what) {
    case Planted::none:
      return "as drawn";
    case Planted::bits:
      return "zeros and ones";
    case Planted::zeros:
      return "every second row 0";
    case Planted::equal:
      return "equal rows";
    case Planted::spike:
      return "one large among small";
    case Planted::tiny:
      return "tiny";
    case Planted::below:
      return "scores far below 0";
    case Planted::above:
      return "scores and sinks near 100";
    case Planted::spread:
      return "integers all over the positions";
    case Planted::alike:
      return "integers of the data all alike";
    case Planted::runs:
      return "integers of the data in runs";
    case Planted::small:
      return "small numbers";
    case Planted::large:
      return "large numbers";
    case Planted::far_below:
      return "other arguments far below 0";
    case Planted::far_above:
      return "other arguments far above 0";
    case Planted::balanced:
      return "products near 100, and as much taken off";
    case Planted::reach:
      return "rows of all powers of two";
    case Planted::products:
      return "products of all powers of two";
    case Planted::compared:
      return "numbers that data are compared with";
    case Planted::ends:
      return "nothing but the first and last columns";
  }
  return "";
}

std::string describe(const Case& c) {
  std::string text;
  for (const auto& [name, value] : c.sizes) text += fmt::format("{} {}, ", name, value);
  text += fmt::format("{} query / {} key heads, grid {}, seed {}", c.heads.size(), c.key_heads,
                      c.grid, c.draws.seed);
  for (const auto& [name, draw] : c.draws.arguments)
    if (c.golden && draw.scale != c.golden->draws.arguments.at(name).scale)
      text += fmt::format(", {} times {}", name, draw.scale);
  if (c.fused != exec::Fused::none)
    text += fmt::format(", products fused with sums, {} ones first",
                        c.fused == exec::Fused::left ? "left" : "right");
  if (c.planted != Planted::none) text += fmt::format(", {}", name(c.planted));
  return text;
}

void keep_one_head(const Form& form, Case& c) {
  if (!spec::heads_are_alike(form)) return;
  c.heads.resize(1);
  c.key_heads = 1;
}

void choose_heads(const Form& form, Case& c, bool all) {
  const int64_t H = form.H.constant, G = form.G.constant, ratio = H / G;
  c.heads.clear();
  std::set<int64_t> groups;
  if (all || !spec::heads_are_alike(form)) {
    for (int64_t g = 0; g < G; ++g) groups.insert(g);
    for (int64_t h = 0; h < H; ++h) c.heads.push_back(h);
  } else {
    for (int64_t h : c.golden->heads)
      if (groups.size() < 2) groups.insert(h / ratio);
    if (groups.empty()) groups.insert(0);
    if (groups.size() < 2) groups.insert((*groups.begin() + G - 1) % G);
    // Of a group of more than four, the ends and what lies between in steps.
    // With one query there is little of each, and heads may be a tile's rows: all then.
    const bool single = form.M.name.empty() && form.M.constant == 1;
    const int64_t kept = single ? ratio : std::min<int64_t>(ratio, 4);
    for (int64_t g : groups)
      for (int64_t r = 0; r < kept; ++r)
        c.heads.push_back(g * ratio + (kept == 1 ? 0 : r * (ratio - 1) / (kept - 1)));
  }
  c.key_heads = static_cast<int64_t>(groups.size());
}

void keep_to_limits(const Form& form, const std::optional<proofs::Report>& proved, int64_t scores,
                    std::vector<Case>& cases) {
  if (!proved || !proved->complete()) return;
  const auto admitted = [&](const Case& c) {
    return std::all_of(proved->limits.begin(), proved->limits.end(), [&](const proofs::Limit& l) {
      return proofs::admits(l, int64_t(c.heads.size()), c.key_heads);
    });
  };
  std::erase_if(cases, [&](Case& c) {
    if (admitted(c)) return false;
    choose_heads(form, c, false);
    if (!admitted(c)) choose_heads(form, c, true);
    scores -= scores_of(form, c);
    return scores < 0;
  });
}

// Several key blocks and rows of tiles, ragged ends, more keys than queries and fewer.
std::vector<Case> make_exact_cases(const spec::Capture& capture, const Options& options,
                                   bool parts) {
  using Shape = std::array<int64_t, 3>;
  constexpr Shape kOfParts = {24, 65, 700};
  constexpr Shape kShapes[] = {{1, 200, 300}, {1, 300, 257}, {2, 65, 129}};
  constexpr Shape kOfAllHeads[] = {{1, 129, 200}};  // of a quick check
  const bool less = options.effort == Effort::quick && !spec::heads_are_alike(capture.form);
  const std::span<const Shape> all = less ? std::span<const Shape>(kOfAllHeads) : kShapes;
  std::vector<Shape> shapes(all.begin(),
                            all.begin() + std::min(int(all.size()), options.exact_cases));
  if (parts) shapes.push_back(kOfParts);
  std::vector<Case> cases;
  for (const auto& [b, m, n] : shapes) {
    Case c;
    c.sizes = resized(capture.form, capture.cases[0].sizes, b, m, n);
    c.golden = &nearest(capture, c.sizes);
    c.draws = c.golden->draws;
    c.draws.seed += options.rehearsal << 20;
    c.exact = false;
    change_own_sizes(capture.form, cases.size(), c);
    c.grid = 1 + int(cases.size() % 2);
    choose_heads(capture.form, c, false);
    const bool single = capture.form.M.name.empty() && capture.form.M.constant == 1;
    if (spec::heads_are_alike(capture.form) && !single) keep_ends_of_groups(c);
    const std::vector<spec::Argument>& arguments = capture.form.arguments;
    const bool own = Shape{b, m, n} != kOfParts;
    if (cases.size() == 1 && own &&
        std::any_of(arguments.begin(), arguments.end(), is_data_of_integers))
      c.planted = Planted::alike;
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<Case> make_cases(const spec::Capture& capture, const Options& options) {
  const Form& form = capture.form;
  std::vector<Case> cases;
  size_t smallest = 0;
  for (const GoldenCase& g : capture.cases) {
    if (int(cases.size()) >= options.cases || options.rehearsal) break;
    Case c;
    c.sizes = g.sizes;
    c.draws = g.draws;
    c.golden = &g;
    const int64_t a = area(form, g.sizes), best = area(form, capture.cases[smallest].sizes);
    // One key is no attention: the case for all heads has at least a few.
    if (a >= 1000 && (best < 1000 || a < best)) smallest = cases.size();
    cases.push_back(std::move(c));
  }
  for (int n = 0; int(cases.size()) < options.cases && !capture.cases.empty(); ++n)
    cases.push_back(further_case(capture, n, options.rehearsal));
  for (size_t n = 0; n < cases.size(); ++n) {
    choose_heads(form, cases[n], n == smallest);
    cases[n].grid = 1 + int(n % 3);
  }
  keep_within(form, options.scores, smallest, cases);
  return cases;
}

}  // namespace kw::check
