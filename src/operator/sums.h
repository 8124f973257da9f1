// Outputs without rows of queries: sums over heads.
//
// Such an output has a block of elements for each batch entry, head or key head that its axes name
// ("bhj": each head its own; "bgjc": one for the heads that share a key head; "h": one number a
// head, of all batch entries). A head gives its share of one block, and the block is complete with
// the last head that has one.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "operator/family.h"

namespace kw::spec {

// A head among those that are walked over, batch entry by batch entry.
struct HeadAt {
  int64_t b, B;     // the batch entry, of so many
  int64_t h, H;     // the head, of those that are looked at
  int64_t g, G;     // the key head, of those
  bool ends_group;  // no later head shares the key head
};

// All heads of all batch entries, in the order in which they are walked.
std::vector<HeadAt> heads_of(int64_t B, int64_t H, int64_t G,
                             const std::function<bool(int64_t)>& ends_group);

struct Block {
  int64_t number;  // in the order of the output's axes
  bool complete;   // with this head's share
};
Block block_of(const Output& output, const HeadAt& at);

// A head's share in fp64: elements, and what they may be off by.
void add_share(Held& sum, const Held& share);

// Shares are of fp64 (Held), or of the exact algebra.
template <class Share>
class Sums {
 public:
  // Adds a head's share to a block of outputs()[n], by `add(sum, share)`. The whole block where
  // that completes it.
  template <class Add>
  std::optional<Share> add(size_t n, const Block& block, const Share& share, Add add) {
    const auto [place, is_first] = under_way_.try_emplace({n, block.number}, share);
    if (!is_first) add(place->second, share);
    if (!block.complete) return std::nullopt;
    Share out = std::move(place->second);
    under_way_.erase(place);
    return out;
  }

 private:
  std::map<std::pair<size_t, int64_t>, Share> under_way_;
};

}  // namespace kw::spec
