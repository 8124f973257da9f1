// Scores that lie far from 0 in all of a row, and sinks beside them.
//
// A key past the end has a score of 0, for its row is zeros. Of random inputs its weight is a small
// number, and a backward kernel that does not mask it multiplies that by 0: nothing is wrong. Below
// -100 the weight is beyond fp32, and infinity times 0 is NaN. So queries point away from every
// key. What a program then gets wrong depends on how many keys of a tile lie past the end, in which
// block of keys, and on whether that block is masked for another reason: a case has one key past
// the end, half a tile of them, all but one, or as many as a number that the program is written
// with; in the first, second and third block; and queries that lie behind all of the block's keys.
//
// A sink is a logit like a score: where its rows' scores are near -150, so is it, and where they
// are near 100. Then exponentials of the sink alone, or of the logsumexp alone, leave fp32, and
// only their difference does not.
#pragma once
#include <cstdint>
#include <vector>

#include "check/trial.h"
#include "tl/program.h"

namespace kw::check {

// Whether every term is a softmax; whether one has a sink that arguments decide.
bool all_softmax(const spec::Form& form);
bool has_drawn_sinks(const spec::Form& form);

// Queries that point away from every key, or along all of them, by so much that with a scale of
// 1 / sqrt(D) a row's scores lie around -175, or around 80; sinks around -150, or 100.
void plant_below(const spec::Form& form, spec::Problem& problem);
void plant_above(const spec::Form& form, spec::Problem& problem);

// Whether of the case, planted so, the first row that has a key gives a key past the end a weight
// beyond fp32: a tanh of scores does not let it.
bool lies_below(const spec::Form& form, const Case& c);

// Of gradients of a softmax: the cases of tiles that reach past the last key. A quick check has
// one.
std::vector<Case> cases_of_tails(const tl::Program& program, const spec::Capture& capture,
                                 const Options& options);

}  // namespace kw::check
