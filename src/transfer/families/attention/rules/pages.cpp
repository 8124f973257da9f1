// Keys and values that lie in pages are copied page by page, as a table says.
//
//   k: tiled in element[B, G, N, D]        ->   k: tiled in element[P, G, R, D]
//   B, H, G, M, N: size                         B, H, G, M, P, S: size
//                                               N: size = S * R
//   param ...                                   param R = 16
//   tma_load k[c.b, g, n * BN] -> k_s[t]   ->   tma_load_pages k[c.b, g, n * BN] of R by table, 4
//   at once -> k_s[t]
//
// When     the form's keys and values are read through a table of page numbers (operator/form.h).
// Effect   none: the same rows come to the same places of a tile. How many keys there are is now
//          what the table has entries for, the last of them perhaps behind a mask.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tl/traits.h"
#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using tl::Op;
using tl::Stmt;

class Pager {
 public:
  explicit Pager(Edit& edit)
      : edit_(edit),
        f_(edit.facts),
        pages_(*spec::pages_of(edit.term.k)),
        count_(edit.fresh({"P", "C", "Q", "U"})),
        rows_(edit.fresh({"R", "E", "W", "L"})) {}

  bool apply() {
    for (const spec::Operand* o : {&edit_.term.k, &edit_.term.v})
      if (o->row) return refuse(*o, "rows that change before the product");
    if (!table_is_of_i32() || !fits_a_tile()) return false;
    std::vector<Stmt>& body = edit_.program.body;
    if (!move(body) || moved_ < 2) return refuse(edit_.term.k, "copies of its own");
    return declare(f_.k, f_.dim) && declare(f_.v, f_.value_dim) && count_keys() &&
           edit_.insert({&body, first_param()}, fmt::format("param {} = {}", rows_, pages_.rows));
  }

 private:
  bool refuse(const spec::Operand& o, const std::string& what) {
    const spec::Argument* given = edit_.form.argument(o.argument);
    return edit_.refuse(
        "transfer.pages", given ? given->span : Span{},
        fmt::format("{} lies in pages of {} rows, and this kernel has {}", o.argument, pages_.rows,
                    what),
        "kernels take pages whose tiles one thread copies with tma_load, of rows that are "
        "multiplied as they are");
  }

  bool table_is_of_i32() {
    const spec::Argument* table = edit_.form.argument(pages_.table);
    return !table || table->dtype == Dtype::i32 ||
           edit_.refuse("transfer.pages", table->span,
                        fmt::format("{} is {}, and pages are numbered in i32", pages_.table,
                                    name(table->dtype)),
                        "pass it as torch.int32");
  }

  bool fits_a_tile() {
    const int64_t keys = constant(edit_.program, f_.key_tile).value_or(0);
    std::vector<std::string> fit;
    for (int64_t rows = 8; rows <= keys; rows += 8)
      if (keys % rows == 0) fit.push_back(std::to_string(rows));
    if (fits_tiles(pages_, keys)) return true;
    const spec::Argument* given = edit_.form.argument(edit_.term.k.argument);
    return edit_.refuse(
        "transfer.pages", given ? given->span : Span{},
        fmt::format("{} lies in pages of {} rows, and this kernel copies {} keys at a time",
                    edit_.term.k.argument, pages_.rows, keys),
        fmt::format("pages may have {} rows, or a multiple of {}", fmt::join(fit, ", "), keys));
  }

  // Each copy of keys or values.
  bool move(std::vector<Stmt>& body) {
    for (Stmt& s : body) {
      const std::string from = tl::is(s.op, tl::Family::copy_in) ? tl::base_name(s.tensor()) : "";
      if (from == f_.k || from == f_.v) {
        if (s.op != Op::tma_load && s.op != Op::tma_load_multicast) return false;
        const std::optional<Stmt> paged = tl::parse_statement(
            fmt::format(
                "tma_load_pages {}[{}, {}, {}] of {} by {}, {} at once -> {}, arrive {}, {}", from,
                tl::print(s.batch()), tl::print(s.head()), tl::print(s.row()), rows_, edit_.table,
                at_once(), tl::print(s.dst()), tl::print(s.barrier()), s.hint()),
            edit_.diagnostics);
        if (!paged) return false;
        s = *paged;
        ++moved_;
      }
      if (!move(s.body)) return false;
    }
    return true;
  }

  // A loader of few registers looks up one page after the other: of four its copies would spill.
  int64_t at_once() const {
    constexpr int64_t kAtOnce = 4, kRegisters = 40;
    const tl::Item* has = constant_named(edit_.program, "LOADER_REGISTERS");
    const int64_t pages = constant(edit_.program, f_.key_tile).value_or(0) / pages_.rows;
    const bool room = has && constant(edit_.program, has->expr).value_or(0) >= kRegisters;
    return room && pages > 0 && pages % kAtOnce == 0 ? kAtOnce : 1;
  }

  bool declare(const std::string& argument, const std::string& columns) {
    std::vector<Stmt>& args = args_of(edit_.program).body;
    for (size_t at = 0; at < args.size(); ++at) {
      if (args[at].op != Op::arg_tiled) continue;
      std::vector<tl::Item>& names = args[at].names();
      const size_t had = names.size();
      std::erase_if(names, [&](const tl::Item& d) { return d.name == argument; });
      if (names.size() == had) continue;
      if (names.empty()) args.erase(args.begin() + at--);
      return edit_.insert({&args, at + 1},
                          fmt::format("{}: tiled in element[{}, {}, {}, {}]", argument, count_,
                                      f_.groups, rows_, columns));
    }
    return refuse(edit_.term.k, "no such argument");
  }

  // The caller gives no number of keys: the table has it. What is computed of that stands below.
  bool count_keys() {
    std::vector<Stmt>& args = args_of(edit_.program).body;
    const std::string& entries = edit_.entries->name;
    std::erase_if(args, [&](const Stmt& s) {
      return s.op == Op::arg_size && s.names().size() == 1 && s.names()[0].name == entries;
    });
    for (size_t at = 0; at < args.size(); ++at) {
      if (args[at].op != Op::arg_size) continue;
      for (tl::Item& d : args[at].names()) {
        if (d.name != f_.keys || d.expr) continue;
        d.name = count_;
        return edit_.insert({&args, at + 1}, std::vector{fmt::format("{}: size", entries),
                                                         fmt::format("{}: size = {} * {}", f_.keys,
                                                                     entries, rows_)});
      }
    }
    return refuse(edit_.term.k, "no number of keys");
  }

  size_t first_param() const {
    const std::vector<Stmt>& body = edit_.program.body;
    size_t at = 0;
    while (at < body.size() && body[at].op != Op::param) ++at;
    return at;
  }

  Edit& edit_;
  const Facts& f_;
  const spec::Pages pages_;
  const std::string count_, rows_;
  int moved_ = 0;
};

}  // namespace

bool fits_tiles(const spec::Pages& pages, int64_t keys) {
  return keys > 0 && pages.rows % 8 == 0 && (keys % pages.rows == 0 || pages.rows % keys == 0);
}

bool rule_pages(Edit& edit) { return edit.table.empty() || Pager(edit).apply(); }

}  // namespace kw::transfer
