// The tile database: which constants a kernel takes for which head dimension, on which target.
//
// Tiles are measured, not derived, so they are data: kernels/<arch>/tiles.json beside the text
// whose constants it sets, and files of the same form that a user or `kernelwright tune` wrote.
//
//   { "about": "how the figures were taken",
//     "rows": [
//       { "targets": ["sm_90a"], "D": 64, "V": 64, "keys": "alike",
//         "constants": { "BM": 384, "BN": 128, "PING_PONG": true },
//         "why": "557 TFLOP/s, 1.038x FlashAttention-4; without ping-pong 1.030x" } ] }
//
//   targets    what the kernel is compiled for
//   D, V       columns of q and k, and of v and the output; both of a norm's rows, and of shorter
//              ones; a text of a product has none of D, V and keys
//   keys       which forms the row is for: `alike` where all rows of a batch entry see the same
//              keys, `by_row` where the range of keys moves with the row (causal), `window` where
//              that has one window of more than 512 keys, `sparse` where a row sees other parts of
//              the keys (sparse.h: narrow windows, documents), or `any`
//   constants  values for `param` (numbers) and `toggle` (true, false) of the kernel's text; those
//              that a row does not name stay
//   why        what decided: a figure, a ratio, or that nothing was timed
//
// The first row that fits counts; where it needs more registers than there are, the next one that
// fits is tried. This reader is given text and gives rows: who finds the files is the driver.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "support/diagnostic.h"

namespace kw::transfer {

// Which forms a row is for; of a form itself never `any`.
enum class Keys { any, alike, by_row, window, sparse };
const char* name(Keys keys);
std::optional<Keys> keys_named(const std::string& name);

using ConstantValue = std::variant<bool, int64_t>;  // of a toggle, of a param
struct Constant {
  std::string name;
  ConstantValue value;
  bool operator==(const Constant&) const = default;
};
std::string text_of(const ConstantValue& value);              // "true", "128": as TL writes it
std::string text_of(const std::vector<Constant>& constants);  // "BM = 384, PING_PONG = true"

struct Tiles {
  std::vector<std::string> targets;
  int64_t dim = 0, value_dim = 0;  // 0: of a product
  Keys keys = Keys::any;
  std::vector<Constant> constants;  // in the file's order
  std::string why;
  std::string place;   // "kernels/sm90/tiles.json: rows[3]"
  bool users = false;  // of a file that the user named: it goes before a text's own constants

  bool is_for(const std::string& target) const;
  bool of_product() const { return dim == 0; }
};

struct TileDatabase {
  std::string about;
  std::vector<Tiles> rows;
};

// Reports tiles.syntax with the place in the text, and tiles.field with the path of each field that
// is missing, unknown or of the wrong kind.
std::optional<TileDatabase> read_tiles(const SourcePtr& source, Diagnostics& diagnostics);

// Text that read_tiles gives the same rows for; one field a line.
std::string print(const TileDatabase& database);

}  // namespace kw::transfer
