// Numbers at which a program or its specification may turn: the integers that they are written
// with.
//
// A window of 1024 keys is seen by cases with more than 1024 keys alone, and a program that takes
// another path from 4096 keys on by cases with more than these. So each such number is a size of
// some cases: one less, the number itself, one more, and a tile beyond. What it would be too much
// work to reach is named, and then the verdict is about the sizes and data that ran.
//
// What stands nowhere counts too: sizes at which an integer of positions first changes, as
// `j // 100 // 100` does at 10000.
//
// Where the solver has proved what the program does with integers (proofs/proofs.h), its own
// numbers and those of the mask are of no interest: what is left are numbers of the function's
// scores, which the program has too, but perhaps in another place.
#pragma once
#include <set>
#include <vector>

#include "check/trial.h"

namespace kw::check {

// The integers that an expression is written with, without their signs.
std::set<int64_t> written_integers(const spec::ExprPtr& e);

// In order, those that cases of fewer than 256 rows and keys do not reach; of neighbours (1023 and
// 1024) the last. A number that only the program has may count tiles: then the first row of that
// tile, too.
std::vector<int64_t> turning_points(const tl::Program& program, const spec::Form& form,
                                    bool proved);

// Cases beyond those of make_cases(): many batch entries, the user's own number of heads at more
// rows than a tile unless all is proved, and one head around each turning point, the least work
// first, as far as `further_scores` reaches. Unless all is proved, as many batch entries as a
// number of the program's, which may be one's, and a product is as deep as it has steps. The points
// that no case has in both rows and keys come back in `unreached`.
std::vector<Case> cases_beyond(const tl::Program& program, const spec::Capture& capture,
                               const Options& options, bool proved,
                               std::vector<int64_t>& unreached);

}  // namespace kw::check
