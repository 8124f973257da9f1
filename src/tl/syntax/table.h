// The rows of ops.def, their two spellings cut into words and holes once.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tl/program.h"

namespace kw::tl {

enum class Level { sketch, sized, scheduled };
enum class Block { none, top, args, shared, body };

// A word of the spelling, or a hole.
struct Part {
  std::string text;    // the word, or the hole's name
  std::string kind;    // of a hole; empty for a word
  bool first = false;  // a hole's first mention in this spelling
  Hole name{};         // of a hole
  bool hole() const { return !kind.empty(); }
};

struct Pattern {
  std::vector<Part> parts;   // for reading
  std::vector<Part> pieces;  // for printing: literal text (spaces and all) and holes
  bool empty() const { return parts.empty(); }
};

struct Row {
  Op op;
  std::string_view word;
  Level level;
  Block where, holds;
  Pattern cuda, tl;
  std::vector<std::string> after;  // the CUDA words that close the block
  std::vector<Hole> holes;         // in the order of the TL spelling
  // A complete `if (...)` or `for (...)`: C allows a single statement without braces.
  bool optional_braces;
};

const std::vector<Row>& table();  // in the order of ops.def
const Row& row(Op op);

}  // namespace kw::tl
