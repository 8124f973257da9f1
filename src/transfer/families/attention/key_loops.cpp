#include "transfer/families/attention/key_loops.h"

#include <algorithm>

#include "tl/traits.h"

namespace kw::transfer {
namespace {

using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

constexpr const char* kFirst = "first";
constexpr const char* kFullFrom = "full_from";

bool ends_at(const Stmt& loop, const std::string& field) {
  const ExprPtr& end = loop.end();
  return end->kind == tl::ExprKind::field && end->text == field;
}

void end_at(Stmt& loop, const ExprPtr& end) { loop.end() = end; }

// e with the field of one name called otherwise.
ExprPtr with_field(const ExprPtr& e, const std::string& from, const std::string& to) {
  return tl::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    return x->kind == tl::ExprKind::field && x->text == from ? tl::field(x->args[0], to) : nullptr;
  });
}

bool is_key_loop(const Stmt& s) { return tl::is(s.op, tl::Family::loop) && s.op != Op::range; }

// keys of keys.count - 1, for loops over key blocks; null for others.
ExprPtr key_range_of(const Stmt& loop, const Facts& facts) {
  if (!is_key_loop(loop)) return nullptr;
  ExprPtr keys;
  tl::rewrite(loop.begin(), [&](const ExprPtr& e) -> ExprPtr {
    if (e->kind == tl::ExprKind::field && e->text == facts.count_field) keys = e->args[0];
    return nullptr;
  });
  return keys;
}

// The value of a name in a block, instead of the name: a value that is computed where it is needed
// takes no register until then.
ExprPtr value_in(const std::vector<Stmt>& body, const ExprPtr& named) {
  for (const Stmt& s : body)
    if (s.op == Op::let)
      for (const tl::Item& d : s.names())
        if (named->is_name(d.name)) return d.expr;
  return named;
}

// Behind the count of the last visited key block: the loop that lets those before the warpgroup's
// first go by, as the one at the start lets those from its last on.
bool let_others_go_by(Edit& edit) {
  const Facts& f = edit.facts;
  bool done = false;
  tl::walk(edit.program.body, [&](Stmt& blocks) {
    const Stmt* before = nullptr;
    for (const Stmt& s : blocks.body)
      if (key_range_of(s, f) && ends_at(s, f.count_field)) before = &s;
    if (!before || done) return;
    Stmt after = *before;
    const ExprPtr mine = value_in(blocks.body, before->end()->args[0]),
                  all = value_in(blocks.body, key_range_of(*before, f));
    after.begin() = tl::binary("-", tl::field(mine, kFirst), tl::integer(1));
    end_at(after, tl::field(all, kFirst));
    for (size_t n = blocks.body.size(); n-- > 0;)
      if (blocks.body[n].op == Op::count && blocks.body[n].counter() == after.counter()) {
        blocks.body.insert(blocks.body.begin() + n + 1, after);
        done = true;
        return;
      }
  });
  return done;
}

// The rows that a copy of keys or values begins at; null for other statements.
const ExprPtr* copied_keys(const Stmt& s, const Facts& facts) {
  if (!tl::is(s.op, tl::Family::copy_in) || tl::traits(s.op).async == tl::Async::tma)
    return nullptr;
  const ExprPtr& from = s.tensor();
  return from->is_name(facts.k) || from->is_name(facts.v) ? &s.row() : nullptr;
}

// Whether a copy from these rows is of a key block that is visited whatever the first one is: that
// of the step, `n * BN`, or the last one, `(keys.count - 1) * BN`.
bool is_of_a_visited_block(const ExprPtr& rows, const Facts& facts) {
  if (rows->kind != tl::ExprKind::binary || rows->text != "*" ||
      !tl::equal(rows->args[1], facts.key_tile))
    return false;
  const ExprPtr& block = rows->args[0];
  const bool last = block->kind == tl::ExprKind::binary && block->text == "-" &&
                    block->args[0]->kind == tl::ExprKind::field &&
                    block->args[0]->text == facts.count_field && block->args[1]->text == "1";
  return block->kind == tl::ExprKind::name || last;
}

// `if n > 0:` with nothing but the copy of the keys that come next.
bool guards_next_keys(const Stmt& s, const Facts& facts) {
  if (s.op != Op::if_ || s.body.size() != 1 || !copied_keys(s.body[0], facts)) return false;
  const ExprPtr& condition = s.condition();
  return condition->kind == tl::ExprKind::binary && condition->text == ">" &&
         condition->args[1]->text == "0";
}

// Where no loader visits the key blocks, whoever multiplies copies them: each as it is visited, or
// the next one ahead, where `if n > 0:` before the copy becomes `if n > keys.first:`. False for a
// copy ahead that nothing guards.
bool copy_from_first(std::vector<Stmt>& body, const Facts& facts, const ExprPtr& keys) {
  for (Stmt& s : body) {
    if (guards_next_keys(s, facts)) {
      ExprPtr& condition = s.condition();
      condition = tl::binary(">", condition->args[0], tl::field(keys, kFirst));
      continue;
    }
    const ExprPtr* rows = copied_keys(s, facts);
    if (rows && !is_of_a_visited_block(*rows, facts)) return false;
    if (!copy_from_first(s.body, facts, keys)) return false;
  }
  return true;
}

// return ceil_div(all.count - c.s, splits), ceil_div(all.full - c.s, splits): of whatever else a
// key range says, a split's part is found as that of its last field is.
void extend_part(Edit& edit, const std::vector<std::string>& fields) {
  Stmt* part = def_named(edit.program, edit.facts.part_def);
  if (!part) return;
  std::vector<tl::Item>& values = part->body.back().values();
  const ExprPtr full = values.back().expr;
  for (const std::string& field : fields)
    values.push_back({"", "", with_field(full, edit.facts.full_field, field), {}});
}

// The two loops of those who multiply, in their block: masked key blocks, then unmasked ones.
struct Loops {
  std::vector<Stmt>* block = nullptr;
  size_t masked = 0;
  ExprPtr keys;  // their key range
};

Loops multiplying_loops(Edit& edit) {
  Loops out;
  const auto in = [&](std::vector<Stmt>& body) {
    for (size_t n = 0; n + 1 < body.size(); ++n) {
      const ExprPtr keys = key_range_of(body[n], edit.facts);
      if (keys && ends_at(body[n], edit.facts.full_field) && is_key_loop(body[n + 1]) &&
          body[n].index() == body[n + 1].index())
        out = {&body, n, keys};
    }
  };
  tl::walk(edit.program.body, [&](Stmt& s) { in(s.body); });
  return out;
}

// The key ranges of those who only load, whose loops then begin at the first key block, too.
std::vector<ExprPtr> end_loaders_at_first(Edit& edit) {
  std::vector<ExprPtr> ranges;
  tl::walk(edit.program.body, [&](Stmt& block) {
    for (Stmt& s : block.body) {
      const ExprPtr keys = key_range_of(s, edit.facts);
      if (!keys || s.op != Op::range_down_rolled || s.end()->text != "0") continue;
      end_at(s, tl::field(keys, kFirst));
      ranges.push_back(value_in(block.body, keys));
    }
  });
  return ranges;
}

// Whether those who multiply visit just what is loaded: then nothing goes by.
bool visits_all_that_comes(const std::vector<ExprPtr>& loaded, const ExprPtr& visited) {
  return std::all_of(loaded.begin(), loaded.end(),
                     [&](const ExprPtr& range) { return tl::print(range) == tl::print(visited); });
}

}  // namespace

bool end_key_loops(Edit& edit, const KeyFields& fields) {
  const std::string record = def_named(edit.program, edit.facts.keys_def)->result();
  std::vector<std::string> more;
  if (fields.first) more.push_back(kFirst);
  if (fields.full_from) more.push_back(kFullFrom);
  tl::walk(edit.program.body, [&](Stmt& s) {
    if (s.op != Op::record || s.name() != record) return;
    for (const std::string& field : more) s.names().push_back({field, "", nullptr, {}});
  });
  extend_part(edit, more);
  const Loops loops = multiplying_loops(edit);
  bool done = loops.block != nullptr;
  if (done) {
    std::vector<Stmt>& body = *loops.block;
    Stmt &masked = body[loops.masked], &unmasked = body[loops.masked + 1];
    if (fields.full_from) {
      end_at(unmasked, tl::field(loops.keys, kFullFrom));
      Stmt again = unmasked;
      again.begin() = with_field(again.begin(), edit.facts.full_field, kFullFrom);
      end_at(again, fields.first ? tl::field(value_in(body, loops.keys), kFirst) : tl::integer(0));
      again.body = masked.body;
      body.insert(body.begin() + loops.masked + 2, std::move(again));
    } else if (fields.first) {
      end_at(masked, tl::field(loops.keys, kFirst));
    }
  }
  if (done && fields.first) {
    const ExprPtr visited = value_in(*loops.block, loops.keys);
    const std::vector<ExprPtr> loaded = end_loaders_at_first(edit);
    done = loaded.empty() ? copy_from_first(edit.program.body, edit.facts, loops.keys)
                          : visits_all_that_comes(loaded, visited) || let_others_go_by(edit);
  }
  return done || edit.refuse("transfer.kernel", {},
                             "this kernel's loops over key blocks cannot start past key 0", "");
}

}  // namespace kw::transfer
