// What a program makes of integers besides its mask: coordinates of tiles, indices of data, numbers
// that enter a score, conditions.
//
// Cases show these at sizes of a few hundred. They stand for every size where each integer is one
// of two kinds:
//   - it is *plain*: a sum of block numbers, indices, counters and sizes, each times a constant.
//   Two
//     such are the same everywhere, or differ at one of some cases that are in general position;
//   - or it is one of the specification's own integers or truths, for every size, index and datum:
//     the solver proves it.
// What a program does with them is then the same function of them at every size, and the exact
// reading has shown which: of the specification's integers and the program's, any two that differ
// somewhere differ where a case is (`whole`). A number that enters a real is one of those that the
// specification puts among reals: exponents and offsets that grow with a block's number would
// cancel in an algebra, and not in fp32.
//
// A condition that is neither may choose between two ways to the same function (choices.h).
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/form.h"
#include "proofs/choices.h"
#include "proofs/solver/solver.h"
#include "proofs/solver/terms.h"
#include "proofs/visits.h"
#include "tl/program.h"

namespace kw::proofs {

// A tile of scores: its first element, and its size.
struct TileAt {
  std::string i0, j0;
  int64_t rows = 0, columns = 0;
};

// An integer or a truth that a statement uses.
struct Use {
  std::vector<std::string> premises;  // it is reached under these
  Term term;
  std::string text;  // as the program says it
  Span span;
  std::optional<TileAt> tile;  // which elements of the scores a step is about that uses it
  bool real = false;           // as a number of reals
  std::string along;           // an index along so many heads, where these are a symbol (heads.h)
};

// A loop over key blocks, from begin down to end, after so many turns of its role in this block.
struct Loop {
  std::vector<std::string> premises;
  std::string begin, end, after;
  Span span;
};

// How many turns a role makes in a block.
struct Turns {
  std::vector<std::string> premises;
  std::string all;
  Span span;
};

// `if c: ... if not c: ...`, each of which computes a formula.
struct Choice {
  Use condition;
  std::string negation;
  Formula one, other;
};

// A loop over blocks, as one agent comes to it.
struct Range {
  std::vector<std::string> premises;
  const tl::Stmt* loop = nullptr;
  std::string begin, end;
};

struct Uses {
  std::vector<Use> launched;        // how many blocks each pass over rows has
  std::vector<Use> all;             // each once
  std::vector<std::string> of_all;  // premises of the kernel
  std::string list;                 // the number of the list that is read
  std::string open;                 // why these are not all
  std::set<std::string> of_agents;  // symbols that run over agents and constant loops
  std::set<std::string> of_tables;  // symbols of tables' lengths, which are the same in all cases
  std::vector<Step> steps;          // what is computed of integers on the way
  std::vector<Loop> loops;          // whose turns take the next places of rings
  std::vector<Turns> turns;         // of roles with such loops
  std::vector<Range> ranges;        // all loops down to some block
  // Statements of the kernel, each by the loops that it stands within there.
  std::set<std::pair<const tl::Stmt*, std::vector<const tl::Stmt*>>> reached;
  std::set<std::string> counts;  // terms that bound loops with visits
  std::set<std::string> firsts;  // key blocks that are visited before a loop
  // Which key block stands at place @, where they are not visited one after the other: one symbol
  // more, if the place is plain.
  std::set<std::string> key_blocks;
  std::vector<Choice> choices;
  std::set<std::string> branches;  // conditions of branches that are no choice's
};

// Of all agents of the kernel, and of passes that write rows before it.
Uses uses_of(const tl::Program& program, const std::map<std::string, Term>& sizes,
             const Blocks& blocks, bool without_softmax, std::set<std::string> counts,
             Vocabulary& vocabulary);

// Whether a term says which agent, and nothing else.
bool says_which_agent(const std::string& term, const Uses& uses);

// Whether it is plain. Symbols of agents count as constants, since every case has all of them.
bool is_plain(const Term& term, const Uses& uses);

// The specification's integers and truths.
struct Specified {
  std::vector<Term> all;
  std::vector<Term> reals;  // those that it puts among reals: the distance that a slope multiplies
  // Those that reals and indices of data are made of directly, at a kernel's element: not plain.
  std::vector<Term> whole;
  // Of several among reals, some are of the data: f32(a) - f32(b) and f32(a - b) are one where fp32
  // holds a and b.
  bool data_among_reals = false;
};

// Those of its parts too, at the indices of a kernel's
// block and of a row that a pass writes.
Specified integers_of(const spec::Form& form, const std::map<std::string, Term>& indices,
                      Vocabulary& vocabulary);

}  // namespace kw::proofs
