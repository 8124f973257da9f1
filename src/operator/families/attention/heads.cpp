// Whether one head is like another: it is when the head is asked for as a place along the heads of
// an argument and as nothing else. A table that is longer than there are heads, for all that is
// known, is read at the head's number. Where heads are alike, the function for fewer of them is the
// same function of smaller arguments, which is how cases of many rows fit in memory.
#include <algorithm>
#include <map>
#include <set>

#include "operator/families/attention/attention.h"

namespace kw::spec {
namespace {

bool is(const Size& a, const Size& b) { return a.name == b.name && a.constant == b.constant; }

// Whether dimension d of what e reads is the heads'. An operand's own elements are read at one.
bool is_heads(const Form& form, const ExprPtr& e, size_t d) {
  for (const Term& t : form.terms)
    for (const Operand* o : operands(t))
      if (e->name == o->argument) return true;
  const Argument* a = form.argument(e->name);
  return a && d < a->dims.size() && (is(a->dims[d], form.H) || is(a->dims[d], form.G));
}

// h occurs in e other than as a place along the heads of an argument.
bool computes_with_head(const Form& form, const ExprPtr& e) {
  if (e->kind == Kind::index) return e->name == "h";
  for (size_t n = 0; n < e->args.size(); ++n) {
    const bool place = e->kind == Kind::read && e->args[n]->kind == Kind::index;
    if (place && (e->args[n]->name != "h" || is_heads(form, e, n))) continue;
    if (computes_with_head(form, e->args[n])) return true;
  }
  return false;
}

using Places = std::map<std::pair<std::string, size_t>, std::optional<Size>>;

// Dimension d of the argument has this extent; nothing is known where two reads disagree.
void place(Places& places, const std::string& argument, size_t d, std::optional<Size> extent) {
  const auto [known, is_new] = places.emplace(std::pair(argument, d), extent);
  if (!is_new && (!extent || !known->second || !is(*known->second, *extent)))
    known->second = std::nullopt;
}

void add_places(const ExprPtr& e, const Size& heads, Places& places) {
  if (!e) return;
  for (size_t n = 0; n < e->args.size(); ++n) {
    if (e->kind == Kind::read) {
      const bool at_head = e->args[n]->kind == Kind::index && e->args[n]->name == "h";
      place(places, e->name, n, at_head ? std::optional(heads) : std::nullopt);
    }
    add_places(e->args[n], heads, places);
  }
}

// Where each argument has its heads, and how many they are for the given form's head counts.
std::optional<Places> places_of_heads(Form& form) {
  Places places;
  const Family& family = Family::of(form);
  bool known = true;
  family.each_operand(form, [&](Operand& o) {
    for (size_t d = 0; d < o.indices.size(); ++d) {
      const ExprPtr& e = o.indices[d];
      if (!mentions(e, Kind::index, "h")) continue;
      const bool shared = e->kind == Kind::binary && e->name == "//";
      const int64_t by = shared ? e->args[1]->integer : 1;
      known &= (shared || e->kind == Kind::index) && by > 0 && form.H.constant % by == 0;
      if (known) place(places, o.argument, d, Size{"", form.H.constant / by});
    }
  });
  if (!known) return std::nullopt;
  // An operand's own element is read at its head, as the operand itself is.
  std::set<std::string> operands;
  family.each_operand(form, [&](Operand& o) { operands.insert(o.argument); });
  family.each_expression(form, [&](ExprPtr& e, const Extents& extents) {
    Places here;
    add_places(e, is(extents.heads, form.G) ? form.G : form.H, here);
    for (const auto& [at, extent] : here)
      if (!operands.count(at.first)) place(places, at.first, at.second, extent);
  });
  return places;
}

}  // namespace

ExprPtr head_of(const Operand& operand) {
  for (const ExprPtr& e : operand.indices)
    if (mentions(e, Kind::index, "h")) return e;
  return nullptr;
}

bool attention::heads_are_alike(const Form& form) {
  const auto computes = [&](const ExprPtr& e) { return e && computes_with_head(form, e); };
  if (computes(form.epilogue)) return false;
  for (const Term& t : form.terms) {
    if (computes(t.score) || computes(t.keep) || computes(t.sink) || computes(t.factor))
      return false;
    for (const Operand* o : operands(t)) {
      if (!o->row) continue;
      if (computes(o->row->element) ||
          std::any_of(o->row->sums.begin(), o->row->sums.end(), computes))
        return false;
    }
  }
  return true;
}

std::optional<Form> attention::with_key_heads(const Form& given, int64_t key_heads) {
  if (!attention::heads_are_alike(given) || !given.H.name.empty() || !given.G.name.empty())
    return std::nullopt;
  Form form = given;
  form.G.constant = key_heads;
  form.H.constant = given.H.constant / given.G.constant * key_heads;
  const std::optional<Places> places = places_of_heads(form);
  if (!places) return std::nullopt;
  for (Argument& a : form.arguments)
    for (size_t d = 0; d < a.dims.size(); ++d)
      if (const auto at = places->find({a.name, d}); at != places->end() && at->second)
        a.dims[d] = *at->second;
  return form;
}

}  // namespace kw::spec
