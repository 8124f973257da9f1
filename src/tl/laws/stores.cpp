// The thread of the loader that stores tiles which the warpgroups hand over.
//
//   wait o_full[u]                    the warpgroups have stored it in shared memory and published
//   it tma_store q_s[r][u] -> o[...] tma_store_wait_read                   the copy engine has read
//   it: the slot may be filled again arrive q_free[u]
//   ...
//   tma_store_wait                        and in the end, all of it is in global memory
//
// What the warpgroups do before they arrive is followed in laws_flow.cpp.
#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

class StoringThread {
 public:
  StoringThread(const Facts& facts, Diagnostics& diagnostics)
      : facts_(facts), diagnostics_(diagnostics) {}

  void run(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (is(s.op, Family::copy_out) && traits(s.op).async == Async::tma) {
        stores_.push_back(&s);
        reading_.insert(&s);
        unfinished_.insert(&s);
      }
      if (s.op == Op::tma_store_wait_read || s.op == Op::tma_store_wait) reading_.clear();
      if (s.op == Op::tma_store_wait) unfinished_.clear();
      if (s.op == Op::arrive) gives_back(s);
      run(s.body);
    }
  }

  void ends() {
    for (const Stmt* s : unfinished_)
      broken(*s, "C5", s->span,
             fmt::format("no tma_store_wait follows: the kernel may end before `{}` is written",
                         base_name(s->tensor())));
    for (const Stmt* s : stores_) {
      const auto freed = facts_.freed_by.find(base_name(s->src()));
      if (freed != facts_.freed_by.end() && !given_back_.count(freed->second))
        broken(*s, "C7", s->span,
               fmt::format("slots of `{}` are given back at `{}`, where this thread never arrives",
                           base_name(s->src()), freed->second));
    }
  }

 private:
  void gives_back(const Stmt& arrive) {
    given_back_.insert(base_name(arrive.barrier()));
    for (const Stmt* s : reading_) {
      const auto freed = facts_.freed_by.find(base_name(s->src()));
      if (freed != facts_.freed_by.end() && freed->second == base_name(arrive.barrier()))
        broken(*s, "C7", arrive.span,
               fmt::format("a slot of `{}` is given back while it may still be on its way out",
                           base_name(s->src())))
            .notes.push_back({"it is stored here", s->span});
    }
  }

  Diagnostic& broken(const Stmt& store, const char* label, Span span, std::string message) {
    const std::string code = fmt::format("{}.{}", word(store.op), label);
    Diagnostic& d = diagnostics_.error(code, std::move(span), std::move(message));
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
    return d;
  }

  const Facts& facts_;
  Diagnostics& diagnostics_;
  std::vector<const Stmt*> stores_;
  std::set<const Stmt*> reading_, unfinished_;
  std::set<std::string> given_back_;  // barriers where the thread arrives
};

}  // namespace

void judge_storing_thread(const Stmt& thread, const Facts& facts, Diagnostics& diagnostics) {
  StoringThread t(facts, diagnostics);
  t.run(thread.body);
  t.ends();
}

}  // namespace kw::tl
