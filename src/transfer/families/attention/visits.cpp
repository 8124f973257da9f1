#include "transfer/families/attention/visits.h"

#include "tl/traits.h"
#include "transfer/editing/lists.h"

namespace kw::transfer {
namespace {

using tl::Op;
using tl::Stmt;

// Where a statement says which keys it is about; null where it is about none.
tl::ExprPtr* keys_in(Stmt& s, const Facts& facts) {
  if (tl::is(s.op, tl::Family::copy_in)) {
    const std::string from = tl::base_name(s.tensor());
    return from == facts.k || from == facts.v ? &s.row() : nullptr;
  }
  const bool placed = tl::has_element(s.op) && s.has(tl::Hole::j0);
  return placed && tl::base_name(s.target()) == facts.score ? &s.j0() : nullptr;
}

// What a block of statements calls the block of the output: `let c = block_of(...)`.
std::string block_here(const std::vector<Stmt>& body, const Facts& facts) {
  for (const Stmt& s : body)
    if (s.op == Op::let)
      for (const tl::Item& d : s.names())
        if (d.expr->kind == tl::ExprKind::call && d.expr->text == facts.block_def) return d.name;
  return "";
}

class Numbering {
 public:
  Numbering(const Facts& facts, std::string def) : facts_(facts), def_(std::move(def)) {}

  // n * BN -> key_block(c, n) * BN, in a block and all inside it.
  bool apply(std::vector<Stmt>& body, std::string block) {
    if (const std::string here = block_here(body, facts_); !here.empty()) block = here;
    bool done = true;
    for (Stmt& s : body) {
      if (tl::ExprPtr* keys = keys_in(s, facts_)) done = renumber(*keys, block) && done;
      done = apply(s.body, block) && done;
    }
    return done;
  }

 private:
  const Facts& facts_;
  const std::string def_;

  bool renumber(tl::ExprPtr& keys, const std::string& block) {
    const bool product = keys->kind == tl::ExprKind::binary && keys->text == "*" &&
                         tl::equal(keys->args[1], facts_.key_tile);
    if (!product || block.empty()) return false;
    keys = tl::binary("*", tl::call(def_, {tl::name(block), keys->args[0]}), keys->args[1]);
    return true;
  }
};

}  // namespace

bool insert_record(Edit& edit, const std::string& name, const std::vector<std::string>& fields) {
  const std::string keys = def_named(edit.program, edit.facts.keys_def)->result();
  std::vector<Stmt>& all = edit.program.body;
  for (size_t n = 0; n < all.size(); ++n) {
    if (all[n].op != Op::record || all[n].name() != keys) continue;
    Stmt record = all[n];
    record.name() = name;
    record.names().clear();
    for (const std::string& field : fields) record.names().push_back({field, "", nullptr, {}});
    all.insert(all.begin() + n + 1, std::move(record));
    return true;
  }
  return false;
}

bool number_visits(Edit& edit, const std::vector<std::string>& body) {
  const std::string name = edit.fresh({"key_block", "visited_block"});
  if (!Numbering(edit.facts, name).apply(edit.program.body, ""))
    return edit.refuse("transfer.kernel", {},
                       "this kernel loads or masks keys that are not a whole number of key blocks",
                       "");
  const tl::Item block = def_named(edit.program, edit.facts.keys_def)->params().at(0);
  return insert_function(edit, edit.facts.keys_def, name, {block, {"n", "index", nullptr, {}}},
                         "index", body);
}

}  // namespace kw::transfer
