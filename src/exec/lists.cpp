// The pre-pass: which blocks are visited for some query rows, found before the kernel starts.
//
//   lists attention_lists, threads 512, w of lists:
//       let i0 = ...
//       list_blocks visits[w * list_words] for n in range(first, end), groups r to s of 4:
//           let ...
//           return some, all
//
// It is a launch of its own: when the kernel begins, its words are there. So nothing runs beside it
// and no order is to be found out: one list after the other, block after block.
#include <fmt/format.h>

#include <algorithm>

#include "exec/ops/exec_ops.h"
#include "exec/reads.h"

namespace kw::exec {

using tl::Item;
using tl::Op;
using tl::Stmt;

namespace {

// The words of one list, by the place of its first: how many visits, how many of them without a
// mask, how many for each group of rows, the blocks.
constexpr int64_t kCount = 0, kFull = 1, kGroups = 2;

struct Class {
  bool all = false;        // every group keeps all of the block
  std::vector<bool> some;  // by group
};

struct Kept {
  bool some = false, all = false;
};

// What the block of list_blocks says of block n and the rows of groups r to end - 1.
Kept kept(Machine& m, const Stmt& s, const ScopePtr& outer, int64_t n, int64_t r, int64_t end) {
  const ScopePtr scope = std::make_shared<Scope>(outer);
  scope->names[s.index()] = Value::integer(n);
  scope->names[s.group_begin()] = Value::integer(r);
  scope->names[s.group_end()] = Value::integer(end);
  for (const Stmt& inner : s.body) {
    const Context c{m, scope.get(), &inner};
    if (inner.op == Op::let) bind_lets(c, inner);
    if (inner.op == Op::return_ && inner.values().size() == 2)
      return {condition_of(c, inner.values()[0].expr), condition_of(c, inner.values()[1].expr)};
  }
  m.faults.raise("exec.type", &s, "the block returns no two conditions");
  return {};
}

// The data may be any, and so may the lists (Launch::any_lists): what the orders of the
// agents are tried with are lists of every shape, whatever the predicate would say of some data.
// The shape goes with the list's number and length: all blocks full; all partial; some full and
// the groups' numbers rising, as below a diagonal, or falling; none. Of long lists a third is full
// and a third is the last group's alone: turns that repeat stand for any number of them.
Class class_of_shape(int64_t list, int64_t n, int64_t length, int64_t groups) {
  constexpr int64_t kLong = 16;
  const int64_t shape = length > kLong ? 2 : (list + length + 3) % 5;
  const bool steps = shape == 2 || shape == 3;
  const int64_t whole = shape == 0 ? length : !steps ? 0 : length > kLong ? length / 3 : length / 2;
  Class found{n < whole, std::vector<bool>(groups, shape != 4)};
  for (int64_t r = 0; steps && r < groups; ++r) {
    const int64_t share = shape == 2 ? r + 1 : groups - r;
    const bool last = length > kLong && share == groups, first = length > kLong && share < groups;
    found.some[r] = last || n < (first ? 2 * whole : whole + (length - whole) * share / groups);
  }
  return found;
}

// The groups are asked one by one where all of them together neither keep everything nor nothing.
Class class_of(Machine& m, const Stmt& s, const ScopePtr& scope, int64_t n, int64_t groups) {
  const Kept together = kept(m, s, scope, n, 0, groups);
  Class found{together.some && together.all, std::vector<bool>(groups, together.some)};
  if (!together.some || together.all || groups == 1) return found;
  found.all = true;
  for (int64_t r = 0; r < groups && !m.faults.any(); ++r) {
    const Kept alone = kept(m, s, scope, n, r, r + 1);
    found.some[r] = alone.some;
    found.all &= alone.all;
  }
  return found;
}

// Puts the words of one list behind each other; nothing of a list that does not fit is written.
void write_list(Machine& m, const Stmt& s, Scratch& words, int64_t at,
                const std::vector<int64_t>& values) {
  if (at < 0 || at + int64_t(values.size()) > int64_t(words.size())) {
    m.faults.raise("exec.bounds", &s,
                   fmt::format("a list of {} words from {} on does not fit into {} words",
                               values.size(), at, words.size()));
    return;
  }
  for (const int64_t value : values) {
    if (words[at])
      m.faults.raise("exec.written_twice", &s, fmt::format("word {} is written twice", at));
    words[at++] = value;
  }
}

void list_blocks(Machine& m, const Stmt& s, const ScopePtr& scope, int64_t list) {
  const Context c{m, scope.get(), &s};
  const int64_t at = integer_of(c, s.at()), first = integer_of(c, s.begin()),
                end = integer_of(c, s.end()), groups = integer_of(c, s.groups());
  const auto words = m.scratches.find(s.scratch()->text);
  if (m.faults.any() || words == m.scratches.end() || groups < 1) {
    m.faults.raise("exec.name", &s, "key blocks are listed in a scratch, for 1 group or more");
    return;
  }
  std::vector<int64_t> full, partial, values(kGroups + groups, 1);
  std::vector<int64_t> last(groups, -1);  // of the partial ones, by group
  for (int64_t n = first; n < end && !m.faults.any(); ++n) {
    const Class found = m.launch.any_lists ? class_of_shape(list, n - first, end - first, groups)
                                           : class_of(m, s, scope, n, groups);
    if (found.all) {
      full.push_back(n);
    } else if (std::find(found.some.begin(), found.some.end(), true) != found.some.end()) {
      for (int64_t r = 0; r < groups; ++r)
        if (found.some[r]) last[r] = int64_t(partial.size());
      partial.push_back(n);
    }
  }
  if (full.empty() && partial.empty()) partial.push_back(0);
  const int64_t count = int64_t(full.size() + partial.size());
  values[kCount] = count;
  values[kFull] = int64_t(full.size());
  for (int64_t r = 0; r < groups; ++r)
    values[kGroups + r] = std::max<int64_t>(1, int64_t(full.size()) + last[r] + 1);
  values.insert(values.end(), full.begin(), full.end());
  values.insert(values.end(), partial.begin(), partial.end());
  if (!m.faults.any()) write_list(m, s, words->second, at, values);
}

}  // namespace

void run_lists(Machine& m) {
  if (!m.lists) return;
  m.faults.agent = "the pre-pass";
  const int64_t count = integer_of({m, nullptr, m.lists}, m.lists->count());
  for (int64_t w = 0; w < count && !m.faults.any(); ++w) {
    const ScopePtr scope = std::make_shared<Scope>(nullptr);
    scope->names[m.lists->index()] = Value::integer(w);
    for (const Stmt& s : m.lists->body) {
      if (m.faults.any()) break;
      if (s.op == Op::let) bind_lets({m, scope.get(), &s}, s);
      if (s.op == Op::list_blocks) list_blocks(m, s, scope, w);
    }
  }
  m.faults.agent.clear();
}

Next exec_list_blocks(Machine& m, Agent&, const Stmt& s) { return outside(m, s, "the pre-pass"); }

Value word_of_scratch(const Context& c, const tl::Expr& e) {
  const Scratch& words = c.m.scratches.at(e.args[0]->text);
  const int64_t at = e.args.size() == 2 ? integer_of(c, e.args[1]) : -1;
  if (c.m.faults.any()) return {};
  if (at < 0 || at >= int64_t(words.size())) {
    c.m.faults.raise(
        "exec.bounds", c.at,
        fmt::format("{}[{}] is outside its {} words", e.args[0]->text, at, words.size()));
    return {};
  }
  if (!words[at]) {
    c.m.faults.raise(
        "exec.uninitialised", c.at,
        fmt::format("{}[{}] is read, and the pre-pass has not written it", e.args[0]->text, at));
    return {};
  }
  return Value::integer(*words[at]);
}

namespace {

// The elements of a dimension that indices from first to last read, as one range.
std::pair<int64_t, int64_t> inside(int64_t first, int64_t last, int64_t extent) {
  const bool outside = first < 0 || last >= extent;
  return {std::clamp<int64_t>(first, 0, extent - 1), outside ? extent - 1 : last};
}

}  // namespace

Value least_or_greatest(const Context& c, const tl::Expr& e) {
  const std::string name = e.args.empty() ? "" : e.args[0]->text;
  const Global* tensor = readable_tensor(c, name);
  if (!tensor) return {};
  const Tensor& t = tensor->data;
  const size_t rank = t.shape.size();
  if (e.args.size() != 1 + 2 * rank) {
    c.m.faults.raise("exec.type", c.at,
                     fmt::format("{} of {} takes {} indices", e.text, name, 2 * rank));
    return {};
  }
  std::vector<std::pair<int64_t, int64_t>> box;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t first = integer_of(c, e.args[1 + 2 * d]), last = integer_of(c, e.args[2 + 2 * d]);
    if (!c.m.faults.any() && first > last)
      c.m.faults.raise("exec.bounds", c.at,
                       fmt::format("{} has no elements from {} to {}", name, first, last));
    if (c.m.faults.any()) return {};
    box.push_back(inside(first, last, t.shape[d]));
  }
  std::vector<int64_t> at;
  for (const auto& [first, last] : box) at.push_back(first);
  std::optional<double> found;
  for (size_t d = 0; d < rank && !c.m.faults.any();) {
    const double x = element_at(c, name, *tensor, t.offset(at)).x;
    if (!found || (e.text == "least" ? x < *found : x > *found)) found = x;
    if (t.values.size() == 1) break;  // one value for all
    for (d = 0; d < rank && ++at[rank - 1 - d] > box[rank - 1 - d].second; ++d)
      at[rank - 1 - d] = box[rank - 1 - d].first;
  }
  return found ? Value::integer(int64_t(*found)) : Value{};
}

}  // namespace kw::exec
