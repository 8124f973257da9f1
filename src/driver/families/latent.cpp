// Latent attention has texts of its own, whose tiles are for GPUs with much shared memory: where
// they do not fit, a sketch does. The copy engine's schedule loads whole rows, and the values are
// columns of the keys.
#include "driver/families/attention.h"

namespace kw::driver::families {
namespace {

class Latent : public Attention {
 public:
  std::optional<std::vector<std::string>> texts(const spec::Form&,
                                                const TargetLimits* limits) const override {
    std::vector<std::string> out = {"sm80/latent_fwd.cu"};
    if (limits && limits->hopper) out.insert(out.begin(), "sm90/latent_fwd.cu");
    return out;
  }
  std::optional<Shipped> sketch() const override {
    return Shipped{"sketches/latent.tl", "latent_fwd", "key"};
  }
  std::string no_engine() const override {
    return "the values are columns of the keys, and the copy engine's schedule loads whole rows";
  }
  bool sketch_is_roomier() const override { return true; }

 protected:
  bool has_values_of_their_own() const override { return false; }
};

}  // namespace

const Family& latent() {
  static const Latent family;
  return family;
}

}  // namespace kw::driver::families
