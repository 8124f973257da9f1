// The rules, in the order in which they are applied. Each makes one kind of change, or none where
// the source already does what the form asks for; each returns false after a refusal. What a rule
// does, when, and to what numeric effect stands above its definition and in docs/rules.md.
#pragma once
#include "transfer/families/attention/edit.h"

namespace kw::transfer {

bool rule_form(Edit& edit);        // one softmax over q k^T times v, with the kernel's dims
bool bind_form(Edit& edit);        // of it, the operands, the output and sizes, of every term
bool rule_tiles(Edit& edit);       // element type, head dimensions, and the tiles for them
bool rule_arguments(Edit& edit);   // tensors and scalars that the score and the mask read
bool rule_pages(Edit& edit);       // keys and values that lie in pages
bool rule_rows(Edit& edit);        // what the rows of q, k and v become first
bool rule_narrow(Edit& edit);      // operands of e4m3
bool rule_bounded(Edit& edit);     // a softmax that needs no maximum
bool rule_scale(Edit& edit);       // the factor of s
bool rule_score(Edit& edit);       // what else the score is: bias, softcap
bool rule_normaliser(Edit& edit);  // weights without a softmax, a sink
bool rule_saves(Edit& edit);       // what a backward kernel reads
bool rule_epilogue(Edit& edit);    // what becomes of the output
bool rule_mask(Edit& edit);        // which scores are dropped
bool rule_lists(Edit& edit);       // which key blocks are visited, where the data says so
bool rule_keys(Edit& edit);        // which key blocks are visited, which need no mask
bool rule_pairs(Edit& edit);       // what is read for every score is read two at a time
bool rule_columns(Edit& edit);     // what is the same for a row or a key is computed once
bool rule_uniform(Edit& edit);     // what is read once for a tile of scores
bool rule_invariant(Edit& edit);   // what is one value in every tile is computed once for it
bool rule_order(Edit& edit);       // which blocks of the output come first
bool rule_queue(Edit& edit);       // who works on which

// Whether tiles of so many keys are made up of whole pages, or are parts of one, in groups of the
// copy engine's 8 rows.
bool fits_tiles(const spec::Pages& pages, int64_t keys);

}  // namespace kw::transfer
