// An output index is the query if q is read at it and neither k nor v is; it is the value's
// dimension if only v is; what is left is the batch and the heads. Of two such, the head is the one
// through which k is read at a quotient, else the one whose extent is a constant, else the later.
#include "spec/recognise_roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/linear.h"

namespace kw::spec {
namespace {

bool at_index(const ExprPtr& read, const std::string& name) {
  return mentions(read, Kind::index, name);
}

bool directly(const ExprPtr& read, const std::string& name) {
  return std::any_of(read->args.begin(), read->args.end(),
                     [&](const ExprPtr& a) { return a->kind == Kind::index && a->name == name; });
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
    if (!check_operands()) return std::nullopt;
    if (!set_rows(roles_.q, parts_.q_row, "i") || !set_rows(roles_.k, parts_.k_row, "j") ||
        !set_rows(roles_.v, parts_.v_row, "j"))
      return std::nullopt;
    for (const std::string& x : output_) form_.output_dims.push_back(roles_.index_names.at(x));
    name_dims();
    return roles_;
  }

 private:
  bool refuse(const std::string& code, const std::string& why, const std::string& hint = {}) {
    diagnostics_.error(code, elements_.node(parts_.product).span, why).hint = hint;
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
    form_.N = named(elements_.extents().at("j"), "N");
    form_.D = named(elements_.extents().at("d"), "D");
    if (!form_.H.name.empty())
      return refuse("spec.heads", "the number of heads must be a constant",
                    "give q's heads as dimension 1 or 2 of four");
    for (const auto& [x, role] : roles_.index_names)
      if (role != "d") roles_.extents[role] = renamed_size(elements_.extents().at(x));
    roles_.extents["j"] = renamed_size(elements_.extents().at("j"));
    return true;
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

  // q at b, h, i, d; k and v at b, h // (H // G), j, d; each dimension once.
  bool check_operands() {
    form_.G = {"", 1};
    for (const auto& [operand, row] :
         {std::pair(&roles_.q, "i"), {&roles_.k, "j"}, {&roles_.v, "j"}}) {
      std::vector<std::string> seen;
      for (size_t n = 0; n < operand->indices.size(); ++n) {
        const ExprPtr& e = operand->indices[n];
        const bool fixed = e->kind == Kind::number && e->integer == 0;
        std::string name = e->kind == Kind::index ? e->name : "";
        const bool grouped = e->kind == Kind::binary && e->name == "//" &&
                             e->args[0]->kind == Kind::index && e->args[0]->name == "h" &&
                             e->args[1]->kind == Kind::number;
        if (grouped) name = "h";
        if (fixed) continue;
        const bool expected = name == "b" || name == "h" || name == row || name == "d";
        if (!expected || std::count(seen.begin(), seen.end(), name) ||
            (grouped && operand == &roles_.q))
          return refuse(
              mentions(e, Kind::index, "h") ? "spec.heads" : "spec.operand",
              fmt::format("{} is read at {}, where {} is supported", operand->argument, print(e),
                          mentions(e, Kind::index, "h") ? "h or h // n" : "b, i, j or d"),
              "consecutive query heads must share a key head");
        seen.push_back(name);
        if (name == "h" && operand == &roles_.k)
          form_.G = {"", grouped ? form_.H.constant / e->args[1]->integer : form_.H.constant};
      }
    }
    return same_head(roles_.k, roles_.v);
  }

  bool same_head(const Operand& k, const Operand& v) {
    const auto head = [](const Operand& o) {
      for (const ExprPtr& e : o.indices)
        if (mentions(e, Kind::index, "h")) return print(e);
      return std::string("0");
    };
    if (head(k) == head(v)) return true;
    return refuse("spec.heads",
                  fmt::format("k is read at head {}, v at head {}", head(k), head(v)));
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

bool second_output(Elements& elements, const Graph& graph, const Parts& parts, const Roles& roles,
                   const std::vector<std::string>& output, Form& form, Diagnostics& diagnostics) {
  const Node& node = graph.nodes[graph.outputs[1]];
  const auto refuse = [&] {
    diagnostics
        .error("spec.not_attention", node.span,
               "the second output is not the logsumexp of the scores, one for each row")
        .hint = "return torch.logsumexp(scores, dim=-1), or only the first output";
    return false;
  };
  Indices at;
  for (const std::string& x : output)
    if (roles.index_names.at(x) != "d") at.push_back(leaf(Kind::index, Type::integer, x));
  if (static_cast<int>(at.size()) != node.rank() || graph.outputs.size() > 2) return refuse();
  const ExprPtr e = elements.element(graph.outputs[1], at);
  const int n = Elements::reduced(e);
  if (n < 0 || elements.reduction(n) != Reduction::logsumexp ||
      parts.normaliser != Normaliser::softmax)
    return refuse();
  // The same body as the softmax's, at the same indices, and as many logits.
  const Linear more = add(linear(elements.extent(n)), linear(elements.extents().at("j")), -1);
  const auto at_logit = [&](const ExprPtr& index) {
    return simplify_bounds(elements.body(n, e->args, index), {{"j", elements.extents().at("j")}});
  };
  if (!more.is_constant() || more.constant != (parts.sink ? 1 : 0)) return refuse();
  const bool behind = equal(at_logit(parts.key), parts.normalised);
  const ExprPtr one = integer(1);
  if (!behind && !(parts.sink && equal(at_logit(binary("+", parts.key, one)), parts.normalised)))
    return refuse();
  if (parts.sink && !equal(at_logit(behind ? elements.extents().at("j") : integer(0)), parts.sink))
    return refuse();
  form.returns_lse = true;
  return !elements.failed();
}

}  // namespace kw::spec
