// An output index is the query if q is read at it and neither k nor v is; it is the value's
// dimension if only v is; what is left is the batch and the heads. Of two such, the head is the one
// through which k is read at a quotient, else the one whose extent is a constant, else the later.
#include "operator/recognise/roles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "operator/expr/linear.h"
#include "operator/recognise/lengths.h"

namespace kw::spec {
namespace {

bool at_index(const ExprPtr& read, const std::string& name) {
  return mentions(read, Kind::index, name);
}

// Also as the batch entry of a table that says where rows lie.
bool directly(const ExprPtr& read, const std::string& name) {
  return std::any_of(read->args.begin(), read->args.end(), [&](const ExprPtr& a) {
    return (a->kind == Kind::index && a->name == name) ||
           (a->kind == Kind::read && directly(a, name));
  });
}

class Assigner {
 public:
  Assigner(Elements& elements, const Parts& parts, const std::vector<std::string>& output,
           Form& form, Diagnostics& diagnostics)
      : elements_(elements),
        parts_(parts),
        output_(output),
        form_(form),
        diagnostics_(diagnostics) {}

  std::optional<Roles> assign() {
    if (!name_indices() || !name_sizes()) return std::nullopt;
    roles_.q = operand(parts_.q);
    roles_.k = operand(parts_.k);
    roles_.v = operand(parts_.v);
    // In v the fresh d is not used; the output's own dimension is called d too.
    if (!check_operands() || !has_own_sizes()) return std::nullopt;
    if (!one_row_for_all_columns(roles_.q, parts_.q_row) ||
        !one_row_for_all_columns(roles_.k, parts_.k_row) ||
        !set_rows(roles_.q, parts_.q_row, "i") || !set_rows(roles_.k, parts_.k_row, "j") ||
        !set_rows(roles_.v, parts_.v_row, "j"))
      return std::nullopt;
    for (const ProductParts& p : parts_.more)
      if (!further_product(p)) return std::nullopt;
    for (const std::string& x : output_) form_.output_dims.push_back(roles_.index_names.at(x));
    if (form_.output_dims.back() != "d") {
      blamed_ = elements_.graph().outputs[0];
      refuse(
          "spec.operand",
          fmt::format("the output is [{}], and what a kernel writes ends with the head dimension",
                      fmt::join(form_.output_dims, ", ")),
          "return it with the head dimension last, and permute it outside");
      return std::nullopt;
    }
    name_dims();
    return roles_;
  }

 private:
  bool refuse(const std::string& code, const std::string& why, const std::string& hint = {}) {
    diagnostics_.error(code, elements_.node(blamed_).span, why).hint = hint;
    return false;
  }

  bool name_indices() {
    std::vector<std::string> shared, single;
    for (const std::string& x : output_) {
      if (is_single(x)) {
        single.push_back(x);
        continue;
      }
      const bool q = at_index(parts_.q, x), k = at_index(parts_.k, x), v = at_index(parts_.v, x);
      const char* role = q && !k && !v ? "i" : !q && !k && v ? "d" : nullptr;
      if (!role) {
        if (!(q && (k || v)) || shared.size() == 2)
          return refuse(
              "spec.operand",
              fmt::format("the output's dimensions do not look like batch, heads, queries "
                          "and head dimension: {} and {}",
                          print(parts_.q), print(parts_.v)),
              "inputs are [B, H, S, D] or [B, S, H, D]");
        shared.push_back(x);
      } else if (role == std::string("i") && is_multi_query_head(x)) {
        shared.push_back(x);  // k and v have one head, so they are not read at it
      } else if (!take(role, x)) {
        return false;
      }
    }
    name_single_query(single);
    return name_single(single, shared) && name_shared(shared);
  }

  // Where no dimension is the queries', as when one is decoded, the last of the single ones is.
  void name_single_query(std::vector<std::string>& single) {
    const auto is_query = [](const auto& entry) { return entry.second == "i"; };
    const auto& named = roles_.index_names;
    if (single.empty() || std::any_of(named.begin(), named.end(), is_query)) return;
    roles_.index_names[single.back()] = "i";
    single.pop_back();
  }

  // A dimension of one that nothing is read at: a single query, a single head, or a batch of one.
  bool is_single(const std::string& x) const {
    const ExprPtr& extent = elements_.extents().at(x);
    return extent->kind == Kind::number && extent->integer == 1 && !at_index(parts_.q, x) &&
           !at_index(parts_.k, x) && !at_index(parts_.v, x);
  }

  // Beside a dimension of heads, which is constant, it is the batch; else the first of two is.
  bool name_single(const std::vector<std::string>& single, std::vector<std::string>& shared) {
    if (single.empty()) return true;
    if (single.size() + shared.size() > 2)
      return refuse("spec.operand",
                    "the output has more dimensions than batch, heads, queries and "
                    "head dimension");
    const bool beside_heads =
        !shared.empty() && elements_.extents().at(shared[0])->kind == Kind::number;
    const bool batch_first = beside_heads || single.size() == 2;
    roles_.index_names[single[0]] = batch_first ? "b" : "h";
    if (single.size() == 2) roles_.index_names[single[1]] = "h";
    if (!shared.empty()) roles_.index_names[shared[0]] = batch_first ? "h" : "b";
    shared.clear();
    return true;
  }

  // Two output indices that only q is read at: the one of constant extent is the head. So is one
  // that is followed by a single query, [B, H, 1, D].
  bool is_multi_query_head(const std::string& x) const {
    int only_q = 0;
    for (const std::string& y : output_)
      only_q += at_index(parts_.q, y) && !at_index(parts_.k, y) && !at_index(parts_.v, y);
    const auto at = std::find(output_.begin(), output_.end(), x);
    const bool before_one =
        std::any_of(at, output_.end(), [&](const auto& y) { return is_single(y); });
    return (only_q == 2 || before_one) && elements_.extents().at(x)->kind == Kind::number;
  }

  bool take(const std::string& role, const std::string& x) {
    for (const auto& [other, taken] : roles_.index_names)
      if (taken == role)
        return refuse("spec.operand", fmt::format("two dimensions of the output look like {}",
                                                  role == "i" ? "queries" : "head dimensions"));
    roles_.index_names[x] = role;
    return true;
  }

  bool name_shared(const std::vector<std::string>& shared) {
    if (shared.size() == 1) {
      const bool constant = elements_.extents().at(shared[0])->kind == Kind::number;
      roles_.index_names[shared[0]] = constant ? "h" : "b";
    }
    if (shared.size() == 2) {
      const auto constant = [&](const std::string& x) {
        return elements_.extents().at(x)->kind == Kind::number;
      };
      const bool first_grouped = !directly(parts_.k, shared[0]);
      const bool second_grouped = !directly(parts_.k, shared[1]);
      bool first = first_grouped && !second_grouped;
      if (first_grouped == second_grouped) first = constant(shared[0]) && !constant(shared[1]);
      roles_.index_names[shared[0]] = first ? "h" : "b";
      roles_.index_names[shared[1]] = first ? "b" : "h";
    }
    const auto has = [&](const char* role) {
      return std::any_of(roles_.index_names.begin(), roles_.index_names.end(),
                         [&](const auto& entry) { return entry.second == role; });
    };
    return (has("i") && has("d")) ||
           refuse("spec.operand", "the output has no dimension of queries or no head dimension");
  }

  // Sizes: the extents of the named indices. A symbol takes its index's letter.
  bool name_sizes() {
    form_.B = form_.H = {"", 1};
    for (const auto& [x, role] : roles_.index_names) {
      const Size size = named(elements_.extents().at(x), role == "b"   ? "B"
                                                         : role == "h" ? "H"
                                                         : role == "i" ? "M"
                                                                       : "D");
      (role == "b" ? form_.B : role == "h" ? form_.H : role == "i" ? form_.M : form_.Dv) = size;
    }
    form_.N = keys(elements_.extents().at("j"));
    form_.D = named(elements_.extents().at("d"), "D");
    if (!form_.H.name.empty())
      return refuse("spec.heads", "the number of heads must be a constant",
                    "give q's heads as dimension 1 or 2 of four");
    for (const auto& [x, role] : roles_.index_names)
      if (role != "d") roles_.extents[role] = renamed_size(elements_.extents().at(x));
    roles_.extents["j"] = renamed_size(elements_.extents().at("j"));
    return true;
  }

  // Of keys in pages so many for each entry of a table.
  Size keys(const ExprPtr& extent) {
    const Linear of = linear(extent);
    if (!pages_of(operand(parts_.k)) || of.constant != 0 || of.terms.size() != 1)
      return named(extent, "N");
    Size out = named(of.terms[0].atom, "T");
    out.times = of.terms[0].factor;
    return out;
  }

  Size named(const ExprPtr& extent, const std::string& wanted) {
    if (extent->kind == Kind::number) return {"", extent->integer};
    if (extent->kind != Kind::size) return {print(extent), 0};
    const auto [found, is_new] = roles_.size_names.emplace(extent->name, wanted);
    if (!is_new && found->second == "M" && wanted == "N") {
      // One size for queries and keys.
      found->second = "S";
      form_.M.name = "S";
    }
    return {found->second, 0};
  }

  ExprPtr renamed_size(const ExprPtr& e) const {
    return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind != Kind::size) return nullptr;
      const auto found = roles_.size_names.find(x->name);
      return found == roles_.size_names.end() ? nullptr
                                              : leaf(Kind::size, Type::integer, found->second);
    });
  }

  Operand operand(const ExprPtr& read) const {
    Operand out{read->name, {}, std::nullopt};
    for (const ExprPtr& a : read->args) out.indices.push_back(roles_.rename(a));
    return out;
  }

  // A score is the same for every column of the output; where it is not, a dimension holds heads.
  bool one_row_for_all_columns(const Operand& operand, const std::optional<RowMap>& row) {
    for (const auto& [x, role] : roles_.index_names)
      if (role == "d" && row && at_index(row->element, x))
        return refuse(
            "spec.heads",
            fmt::format("{} is read at other places for other columns of the output: its last "
                        "dimension, or the output's, holds several heads",
                        operand.argument),
            "a kernel takes heads in a dimension of their own, [B, S, H, D] or [B, H, S, D]: split "
            "them before, and give those; kernelwright.compile does so by itself");
    return true;
  }

  // What the operand's rows become, with h as the operand's own head.
  bool set_rows(Operand& operand, const std::optional<RowMap>& given, const char* row) {
    if (!given) return true;
    ExprPtr head;  // null: one head
    for (const ExprPtr& e : operand.indices)
      if (mentions(e, Kind::index, "h")) head = e;
    const ExprPtr own = leaf(Kind::index, Type::integer, "own");
    bool fine = true;
    const auto renamed = [&](const ExprPtr& e) {
      ExprPtr out = roles_.rename(e);
      if (head)
        out = rewrite(out, [&](const ExprPtr& x) { return equal(x, head) ? own : nullptr; });
      for (const char* other : {"h", row[0] == 'i' ? "j" : "i"}) {
        if (!fine || !mentions(out, Kind::index, other)) continue;
        fine = refuse("spec.operand",
                      fmt::format("the rows of {} depend on the {} too: {}", operand.argument,
                                  other[0] == 'h'   ? "query head"
                                  : other[0] == 'i' ? "query"
                                                    : "key",
                                  print(roles_.rename(e))),
                      "a row is changed once for all that it is multiplied with");
      }
      return rewrite(out, [&](const ExprPtr& x) {
        return equal(x, own) ? leaf(Kind::index, Type::integer, "h") : nullptr;
      });
    };
    RowMap map{{}, renamed(given->element)};
    for (const ExprPtr& sum : given->sums) map.sums.push_back(renamed(sum));
    operand.row = std::move(map);
    return fine;
  }

  // q at b, h, i, d; k and v at b, h // (H // G), j, d.
  bool check_operands() {
    form_.G = {"", 1};
    if (!check_operand(roles_.q, "i") || !check_operand(roles_.k, "j") ||
        !check_operand(roles_.v, "j"))
      return false;
    const ExprPtr dim = elements_.extents().at("d");
    if (!whole(roles_.q, dim) || !whole(roles_.k, dim) || !whole(roles_.v, column_of_output()))
      return false;
    if (const ExprPtr h = head_of(roles_.k)) {
      const bool grouped = h->kind == Kind::binary;
      form_.G = {"", grouped ? form_.H.constant / h->args[1]->integer : form_.H.constant};
    }
    if (pages_of(roles_.k).has_value() != pages_of(roles_.v).has_value())
      return refuse(
          "spec.pages",
          fmt::format("one of {} and {} lies in pages, the other does not", roles_.k.argument,
                      roles_.v.argument),
          "keys and values lie in pages of one size, that one table names: k[table].flatten(1, 2)");
    if (head(roles_.k) == head(roles_.v)) return true;
    return refuse("spec.heads", fmt::format("k is read at head {}, v at head {}", head(roles_.k),
                                            head(roles_.v)));
  }

  // Each dimension at most once.
  bool check_operand(const Operand& operand, const std::string& row) {
    std::vector<std::string> seen;
    const std::optional<Pages> pages = row == "j" ? pages_of(operand) : std::nullopt;
    for (size_t n = 0; n < operand.indices.size(); ++n) {
      const ExprPtr& e = operand.indices[n];
      if (pages && (n == pages->page || n == pages->row)) continue;
      std::string name = e->kind == Kind::index ? e->name : "";
      const bool grouped = e->kind == Kind::binary && e->name == "//" &&
                           e->args[0]->kind == Kind::index && e->args[0]->name == "h" &&
                           e->args[1]->kind == Kind::number;
      if (grouped) name = "h";
      if (e->kind == Kind::number && e->integer == 0) continue;
      const bool expected = name == "b" || name == "h" || name == row || name == "d";
      if (!expected || std::count(seen.begin(), seen.end(), name) || (grouped && row == "i"))
        return refuse(
            mentions(e, Kind::index, "h") ? "spec.heads" : "spec.operand",
            fmt::format("{} is read at {}, where {} is supported", operand.argument, print(e),
                        mentions(e, Kind::index, "h") ? "h or h // n" : "b, i, j or d"),
            "consecutive query heads must share a key head");
      seen.push_back(name);
    }
    return true;
  }

  ExprPtr column_of_output() const {
    for (const auto& [x, role] : roles_.index_names)
      if (role == "d") return elements_.extents().at(x);
    return nullptr;
  }

  // Whether each dimension is read from its first to its last.
  bool whole(const Operand& operand, const ExprPtr& columns) {
    if (pages_of(operand)) return whole_pages(operand);
    std::map<std::string, ExprPtr> extents = {{"j", elements_.extents().at("j")}, {"d", columns}};
    for (const auto& [x, role] : roles_.index_names)
      if (role != "d") extents[role] = elements_.extents().at(x);
    const std::string of_keys =
        parts_.normaliser == Normaliser::softmax
            ? "one more key of zeros, with a value of zeros, is one more logit of 0: "
              "F.pad(scores, (0, 1)).softmax(-1)[..., :-1] @ v"
            : "";
    return read_as_long_as_it_is(elements_, operand, extents, blamed_, of_keys, diagnostics_);
  }

  // Keys lie in whole pages, as many to a page as the argument has, and so do values.
  bool whole_pages(const Operand& operand) {
    const Pages pages = *pages_of(operand);
    const std::optional<Pages> others = pages_of(roles_.k);
    const std::vector<Argument>& all = elements_.graph().arguments;
    size_t place = 0;
    while (place < all.size() && all[place].name != operand.argument) ++place;
    const ExprPtr rows =
        place < all.size() ? elements_.node(static_cast<int>(place)).shape[pages.row] : nullptr;
    if (rows && rows->kind == Kind::number && rows->integer == pages.rows && others &&
        others->table == pages.table && others->rows == pages.rows && form_.N.times == pages.rows)
      return true;
    return refuse(
        "spec.pages",
        fmt::format("{} is read in pages of {} rows by {}, where a page of it has {}{}",
                    operand.argument, pages.rows, pages.table,
                    rows ? print(rows) : "no constant number",
                    others && others->table != pages.table
                        ? fmt::format(", and {} by {}", roles_.k.argument, others->table)
                        : ""),
        "keys and values lie in pages of one size, that one table names: k[table].flatten(1, 2)");
  }

  bool has_own_sizes() {
    const std::map<std::string, const char*> of = {{"b", "batch entries"}, {"i", "queries"}};
    for (const auto& [x, role] : roles_.index_names)
      if (of.count(role) &&
          !is_a_size(elements_, elements_.extents().at(x), of.at(role), diagnostics_))
        return false;
    return form_.N.times > 1 ||
           is_a_size(elements_, elements_.extents().at("j"), "keys", diagnostics_);
  }

  static std::string head(const Operand& o) {
    const ExprPtr h = head_of(o);
    return h ? print(h) : "0";
  }

  // A product of the scores beside the term's own.
  bool further_product(const ProductParts& p) {
    blamed_ = p.product;
    FurtherProduct out{operand(p.q), operand(p.k), 0};
    if (p.dim->kind != Kind::number)
      return refuse("spec.head_dim",
                    fmt::format("the product of {} and {} is over a dimension of any length",
                                out.q.argument, out.k.argument),
                    "a head dimension is a constant: no batch, queries or keys");
    out.D = p.dim->integer;
    if (!check_operand(out.q, "i") || !check_operand(out.k, "j") || !whole(out.q, p.dim) ||
        !whole(out.k, p.dim))
      return false;
    const std::string own = head(out.k);
    if (own != "0" && own != "h" && own != head(roles_.k))
      return refuse("spec.heads",
                    fmt::format("{} is read at head {} and {} at head {}", out.k.argument, own,
                                roles_.k.argument, head(roles_.k)),
                    "the keys of a further product have as many heads as k, as q, or one");
    if (!set_rows(out.q, p.q_row, "i") || !set_rows(out.k, p.k_row, "j")) return false;
    roles_.more.push_back(std::move(out));
    return true;
  }

  // The arguments' dimensions under the sizes' new names; other symbols become L1, L2, ...
  void name_dims() {
    int others = 0;
    for (size_t n = 0; n < form_.arguments.size(); ++n) {
      Argument& a = form_.arguments[n];
      for (const ExprPtr& d : elements_.node(static_cast<int>(n)).shape) {
        if (d->kind == Kind::number) {
          a.dims.push_back({"", d->integer});
          continue;
        }
        if (d->kind == Kind::size && !roles_.size_names.count(d->name))
          roles_.size_names[d->name] = fmt::format("L{}", ++others);
        a.dims.push_back({print(renamed_size(d)), 0});
      }
    }
  }

  Elements& elements_;
  const Parts& parts_;
  const std::vector<std::string>& output_;
  Form& form_;
  Diagnostics& diagnostics_;
  int blamed_ = parts_.product;  // the product that is looked at
  Roles roles_;
};

}  // namespace

ExprPtr Roles::rename(const ExprPtr& e) const {
  return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::index && x->kind != Kind::size) return nullptr;
    const auto& names = x->kind == Kind::index ? index_names : size_names;
    const auto found = names.find(x->name);
    return found == names.end() ? nullptr : leaf(x->kind, x->type, found->second);
  });
}

std::optional<Roles> assign_roles(Elements& elements, const Parts& parts,
                                  const std::vector<std::string>& output, Form& form,
                                  Diagnostics& diagnostics) {
  return Assigner(elements, parts, output, form, diagnostics).assign();
}

}  // namespace kw::spec
