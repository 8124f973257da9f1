#include "mutate.h"

#include <fmt/format.h>

#include <functional>
#include <set>

#include "tl/traits.h"

namespace kw::test {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Item;
using tl::Op;
using tl::Program;
using tl::Stmt;

namespace {

// Statements that order agents or move tiles.
bool orchestrates(Op op) {
  switch (tl::traits(op).family) {
    case Family::sync:
    case Family::copy_in:
    case Family::copy_out:
    case Family::move:
    case Family::result:
    case Family::contract:
      return true;
    case Family::tiles:  // loops over tiles have their bounds changed
    case Family::value:
      return op == Op::schedule_tiles || op == Op::count;
    case Family::module:
    case Family::constant:
    case Family::section:
    case Family::tensor:
    case Family::argument:
    case Family::memory:
    case Family::barrier:
    case Family::function:
    case Family::kernel:
    case Family::pass:
    case Family::plan:
    case Family::role:
    case Family::rows:
    case Family::loop:
    case Family::branch:
    case Family::registers:
    case Family::map:
    case Family::gather:
    case Family::reduce:
      return false;
  }
  return false;
}

bool is_product(Op op) { return tl::is(op, Family::contract); }

ExprPtr plus(const ExprPtr& e, int by) {
  return by > 0 ? tl::binary("+", e, tl::integer(by)) : tl::binary("-", e, tl::integer(-by));
}

class Mutator {
 public:
  explicit Mutator(const Program& program) : program_(program) {
    tl::walk(program.body, [&](const Stmt& s) {
      if (s.op == Op::barrier || s.op == Op::cluster_barrier)
        for (const Item& d : s.names()) barriers_.push_back(d.name);
    });
  }

  std::vector<Mutant> run() {
    visit({});
    return std::move(out_);
  }

 private:
  using Path = std::vector<size_t>;

  static std::vector<Stmt>& body_at(Program& p, const Path& path) {
    std::vector<Stmt>* body = &p.body;
    for (size_t n : path) body = &(*body)[n].body;
    return *body;
  }

  // A mutant whose block at `path` is changed by f; n is the statement that is blamed.
  void add(const std::string& kind, const Path& path, size_t n,
           const std::function<void(std::vector<Stmt>&)>& f) {
    Program p = program_;
    const Stmt& was = body_at(p, path)[n];
    const std::string where =
        fmt::format("{}: {}", was.span.known() ? was.span.start().line : 0, tl::print_head(was));
    f(body_at(p, path));
    if (tl::equal(p, program_)) return;
    out_.push_back({kind, where, std::move(p), ""});
  }

  void visit(const Path& path) {
    Program copy = program_;
    const std::vector<Stmt> body = body_at(copy, path);
    for (size_t n = 0; n < body.size(); ++n) {
      statement(path, n, body);
      if (body[n].op == Op::def) continue;
      Path inside = path;
      inside.push_back(n);
      visit(inside);
    }
  }

  void statement(const Path& path, size_t n, const std::vector<Stmt>& body) {
    const Stmt& s = body[n];
    const std::string word(tl::word(s.op));
    if (orchestrates(s.op)) {
      if (!is_product(s.op)) {
        add("drop " + word, path, n, [&](auto& b) { b.erase(b.begin() + n); });
        add("twice " + word, path, n, [&](auto& b) { b.insert(b.begin() + n, Stmt(b[n])); });
      }
      move(path, n, body, word);
      guard(path, n, s);
      indices(path, n, s);
      exchange(path, n, s);
    }
    // A statement alone under a toggle moves with it.
    if (s.op == Op::if_ && s.body.size() == 1 && orchestrates(s.body[0].op))
      move(path, n, body, fmt::format("{} under if", tl::word(s.body[0].op)));
    loops(path, n, s);
    declarations(path, n, s);
  }

  // Past one, two and three neighbours, both ways.
  void move(const Path& path, size_t n, const std::vector<Stmt>& body, const std::string& word) {
    for (size_t by = 1; by <= 3; ++by) {
      if (n + by < body.size())
        add(fmt::format("later {}", word), path, n, [&](auto& b) {
          std::rotate(b.begin() + n, b.begin() + n + 1, b.begin() + n + by + 1);
        });
      if (n >= by)
        add(fmt::format("earlier {}", word), path, n,
            [&](auto& b) { std::rotate(b.begin() + n - by, b.begin() + n, b.begin() + n + 1); });
    }
  }

  // By one agent only.
  void guard(const Path& path, size_t n, const Stmt& s) {
    Diagnostics d;
    for (const char* head : {"if cta == 0:", "if cta == 1:", "if me == 0:", "thread 0:"}) {
      auto wrapped = tl::parse_statement(std::string(head) + "\n    sync_cluster\n", d);
      if (!wrapped) continue;
      wrapped->body = {s};
      add(fmt::format("only {} {}",
                      std::string_view(head).substr(0, std::string_view(head).size() - 1),
                      tl::word(s.op)),
          path, n, [&](auto& b) { b[n] = *wrapped; });
    }
  }

  // The use of a ring off by one and by two; another barrier.
  void indices(const Path& path, size_t n, const Stmt& s) {
    for (size_t f = 0; f < s.fields.size(); ++f) {
      const tl::Hole hole = s.fields[f].hole;
      if (s.fields[f].items.empty() || !s.fields[f].items[0].expr) continue;
      const ExprPtr e = s.fields[f].items[0].expr;
      if (e->kind == ExprKind::index && hole != tl::Hole::tensor && hole != tl::Hole::value) {
        for (int by : {1, -1, 2}) {
          std::vector<ExprPtr> args(e->args.begin() + 1, e->args.end());
          args.back() = plus(args.back(), by);
          const ExprPtr moved = tl::index(e->args[0], args);
          add(fmt::format("use {:+} {}.{}", by, tl::word(s.op), tl::word(hole)), path, n,
              [&](auto& b) { b[n].fields[f].items[0].expr = moved; });
        }
        if (hole == tl::Hole::barrier)
          for (const std::string& other : barriers_) {
            if (!e->args[0]->is_name(other) && !is_product(s.op)) {
              const ExprPtr there = tl::index(tl::name(other), {e->args.back()});
              add(fmt::format("other barrier {}", tl::word(s.op)), path, n,
                  [&](auto& b) { b[n].fields[f].items[0].expr = there; });
            }
          }
      }
      const bool number =
          (s.op == Op::wgmma_wait || s.op == Op::wgmma_wait_group || s.op == Op::cp_async_wait) &&
          hole == tl::Hole::pending;
      const bool who =
          (s.op == Op::order_arrive || s.op == Op::order_wait || s.op == Op::sync_warpgroup);
      if (!number && !(who && hole == tl::Hole::warpgroup)) continue;
      for (int by : {1, -1}) {
        if (number && by < 0 && e->text == "0") continue;
        const ExprPtr moved =
            number ? tl::integer(std::stoll(e->text) + by)
                   : tl::binary("%", tl::binary("+", e, tl::integer(1)), tl::name("WARPGROUPS"));
        add(fmt::format("{} {}.{}", number ? fmt::format("{:+}", by) : "next", tl::word(s.op),
                        tl::word(hole)),
            path, n, [&](auto& b) { b[n].fields[f].items[0].expr = moved; });
        if (!number) break;
      }
    }
  }

  // One statement for another that looks like it.
  void exchange(const Path& path, size_t n, const Stmt& s) {
    const auto become = [&](Op op) {
      add(fmt::format("{} for {}", tl::word(op), tl::word(s.op)), path, n,
          [&](auto& b) { b[n].op = op; });
    };
    if (s.op == Op::wait) {
      become(Op::wait_free);
      become(Op::arrive);
    }
    if (s.op == Op::wait_free) become(Op::wait);
    if (s.op == Op::arrive) become(Op::wait);
    if (s.op == Op::tma_store_wait) become(Op::tma_store_wait_read);
    if (s.op == Op::order_arrive) become(Op::order_wait);
    if (s.op == Op::order_wait) become(Op::order_arrive);
    if (s.op == Op::tma_load_multicast)
      add("tma_load for tma_load_multicast", path, n, [&](auto& b) {
        b[n].op = Op::tma_load;
        std::erase_if(b[n].fields, [](const tl::Field& f) { return f.hole == tl::Hole::ctas; });
      });
  }

  void bound(const Path& path, size_t n, const Stmt& s, tl::Hole hole) {
    for (int by : {1, -1})
      add(fmt::format("{:+} {}.{}", by, tl::word(s.op), tl::word(hole)), path, n,
          [&](auto& b) { b[n].items(hole)[0].expr = plus(s.expr(hole), by); });
  }

  void loops(const Path& path, size_t n, const Stmt& s) {
    if (tl::is(s.op, Family::loop)) {
      if (s.op != Op::range) bound(path, n, s, tl::Hole::begin);
      bound(path, n, s, tl::Hole::end);
    }
    if (tl::is(s.op, Family::tiles) && tl::is_loop(s.op)) bound(path, n, s, tl::Hole::count);
    if (s.op == Op::call) add("drop call", path, n, [&](auto& b) { b.erase(b.begin() + n); });
  }

  void declarations(const Path& path, size_t n, const Stmt& s) {
    if (s.op == Op::barrier || s.op == Op::cluster_barrier) {
      bound(path, n, s, tl::Hole::arrivals);
      bound(path, n, s, tl::Hole::stages);
      add("doubled arrivals", path, n,
          [&](auto& b) { b[n].arrivals() = tl::binary("*", tl::integer(2), s.arrivals()); });
    }
    if (s.op == Op::cluster_barrier)
      add("barrier for cluster_barrier", path, n, [&](auto& b) {
        b[n].op = Op::barrier;
        std::erase_if(b[n].fields, [](const tl::Field& f) { return f.hole == tl::Hole::ctas; });
      });
    if (s.op == Op::ring || s.op == Op::row_ring) bound(path, n, s, tl::Hole::stages);
    if (s.op == Op::queue) {
      bound(path, n, s, tl::Hole::arrivals);
      bound(path, n, s, tl::Hole::stages);
    }
    if (s.op == Op::init)
      for (size_t k = 0; k < s.barriers().size(); ++k)
        add("init lacks one", path, n, [&](auto& b) {
          auto& items = b[n].barriers();
          items.erase(items.begin() + k);
        });
    if (s.op == Op::var) bound(path, n, s, tl::Hole::names);
  }

  const Program& program_;
  std::vector<std::string> barriers_;
  std::vector<Mutant> out_;
};

}  // namespace

std::vector<Mutant> mutants_of(const Program& program) { return Mutator(program).run(); }

}  // namespace kw::test
