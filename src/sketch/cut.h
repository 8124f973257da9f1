// An output too wide for the registers of a warpgroup, cut: between place() and the sizes.
//
//   K1  where no choice of rows, keys and warpgroups is possible (T1, T2 of tiles.h), the columns
//   of
//       the output are cut into parts of CUT, the largest of 256, 128 and 64 that divides them and
//       with which a choice is. A CTA computes one part, and all of the scores. (Warpgroups
//       of one CTA would compute the scores as often, and 64 rows of 512 columns take
//       64 KB of shared memory on their way out, which is all that a T4 has.)
//   K2  the scores are summed up in steps of STEP = 64 columns of both operands, a panel: shared
//       memory has a step of each, and the rows come again with every block of keys, from the L2
//       cache.
//   K3  the output leaves through a tile of its own, as wide as its part: that of the rows has a
//       step's columns.
//   K4  what leaves by rows, the log-sum-exp, leaves with the first part.
// Both widths must divide: 64 those of q and k and of the output. Rows of whole width are copied
// for the scores, so a sketch that says where their columns begin is not cut.
#pragma once
#include "sketch/budget.h"

namespace kw::sketch {

// Whether it was cut: then the program has the parameters CUT, CUTS, STEP, STEPS, the tiles have
// these widths, the work is that of a CTA, and `plan` is of the changed program. Else
// nothing has changed. Machines with a copy engine are left alone: their schedule loads whole rows.
bool cut(tl::Program& program, Plan& plan, Placed& placed, Work& work, const Machine& machine);

}  // namespace kw::sketch
