// TL text: the row's spelling with its holes filled, one statement a line.
#include "tl/syntax/holes.h"
#include "tl/syntax/table.h"

namespace kw::tl {

std::string print_head(const Stmt& stmt) {
  std::string out;
  for (const Part& p : row(stmt.op).tl.pieces) {
    if (!p.hole()) {
      out += p.text;
      continue;
    }
    for (const Field& f : stmt.fields)
      if (f.hole == p.name) out += write_tl_hole(p.kind, f);
  }
  return out;
}

std::string print(const Stmt& stmt, int depth) {
  std::string out = std::string(depth * 4, ' ') + print_head(stmt) + "\n";
  for (const Stmt& s : stmt.body) out += print(s, depth + 1);
  return out;
}

std::string print(const Program& program) {
  std::string out;
  for (const Stmt& s : program.body) out += print(s);
  return out;
}

}  // namespace kw::tl
