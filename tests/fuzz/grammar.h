// Attention functions from a seed: what people write, in the ways in which they write it.
//
//   layout      [B, H, M, D] or [B, M, H, D], in and out; [B, M, D] without heads;
//               v of another width
//   heads       one to one, grouped (repeated, expanded, a dimension of their own, SDPA's),
//               one for all
//   score       scale (five places), softcap, tanh, slopes, distances, temperatures of heads and
//               batches, where
//   mask        causal, windows, prefixes, lengths, blocks by //, dilated by %, bits, gathered
//               limits, rows; and, or and not of those; kept by where, masked_fill, an added -inf,
//               SDPA
//   normaliser  torch.softmax, exponentials written out, minus logsumexp; with log-sum or without
//   sizes       a few query and key rows beyond the tile's edges
//
// For gradients there are also sinks, biases of keys, gates of heads, and weights without a sum,
// and sizes beyond the tiles of that kernel.
//
// Each seed has one function. A few of them ask for what no rule can write, and must be refused.
#pragma once
#include <map>
#include <string>

#include "graph_builder.h"
#include "num/random.h"

namespace kw::fuzz {

struct Function {
  uint64_t seed = 0;
  spec::Graph graph;
  std::string mask, score, heads, normaliser;  // classes, for the counts
  bool rows_first = false;                     // [B, M, H, D]
  int64_t B = 1, H = 1, G = 1, M = 1, N = 1, D = 16, V = 16;
  std::map<std::string, Draw> draws;
  std::string example;  // lines of example_inputs()
  std::string prelude;  // the sizes, in Python
};

enum class Wanted { output, gradients };

Function function_of(uint64_t seed, Wanted wanted = Wanted::output);

}  // namespace kw::fuzz
