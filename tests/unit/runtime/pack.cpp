// Packing without a GPU: launch.json, the argument struct's bytes, tensor maps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "launch_json.h"
#include "runtime/launch/tensor_map.h"

namespace kw::runtime {
namespace {

// ---- launch.json

TEST(LaunchJson, ReadsTheAttentionKernels) {
  Diagnostics diagnostics;
  const auto spec = read(attention(), diagnostics);
  ASSERT_TRUE(spec) << render(diagnostics);
  EXPECT_EQ(spec->arguments.size(), 9u);
  EXPECT_EQ(spec->find("lse")->kind, ArgumentKind::tensor);
  EXPECT_TRUE(spec->find("lse")->written);
  EXPECT_EQ(spec->find("k")->box_rows, 128);
}

TEST(LaunchJson, PointsAtASyntaxError) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_launch_spec(make_source("launch.json", "{\n \"entry\": oops }"), diagnostics));
  EXPECT_EQ(diagnostics.all()[0].span.place(), "launch.json:2:11");
}

TEST(LaunchJson, RefusesANumberThatNoDoubleHolds) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_launch_spec(make_source("launch.json", "{\"threads\": 1e999}"), diagnostics));
  EXPECT_EQ(diagnostics.all()[0].message, "has a number that no double holds");
}

// Each change makes one thing wrong; the message must name it.
TEST(LaunchJson, RefusesEachFaultByItsPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"op":"remove","path":"/entry"}])", "entry: is missing"},
      {R"([{"op":"replace","path":"/threads","value":2048}])",
       "threads: is 2048, not an integer from 1 to 1024"},
      {R"([{"op":"add","path":"/thread","value":1}])", "thread: is not a field that is known here"},
      {R"([{"op":"remove","path":"/cluster"}])", "cluster: is missing"},
      {R"([{"op":"replace","path":"/cluster","value":16}])",
       "cluster: is 16, not an integer from 1 to 8"},
      {R"([{"op":"replace","path":"/resident","value":33}])",
       "resident: is 33, not an integer from 1 to 32"},
      {R"([{"op":"add","path":"/arguments/2/row_alignment","value":8}])",
       "arguments[2].row_alignment: is 8, not an integer from 16 to 16"},
      {R"([{"op":"replace","path":"/grid","value":["ceil","M"]}])",
       "grid: unknown function 'ceil'"},
      {R"([{"op":"replace","path":"/requires/0/0","value":"="}])",
       R"(requires: holds ["=",["%","H","G"],0], not [comparison, expression, expression])"},
      {R"([{"op":"add","path":"/before","value":[{"entry":"e","threads":0,"grid":1}]}])",
       "before[0].threads: is 0, not an integer from 1 to 1024"},
      {R"([{"op":"add","path":"/before","value":[{"entry":"e","threads":32}]}])",
       "before[0].grid: is missing"},
      {R"([{"op":"replace","path":"/constants/D","value":"x"}])",
       "constants.D: is \"x\", not a number"},
      {R"([{"op":"replace","path":"/arguments/0/kind","value":"map"}])",
       "arguments[0].kind: is 'map', not one of size, tensor_map, tensor, pointer, stride, scalar, "
       "workspace, scratch"},
      {R"([{"op":"replace","path":"/arguments/2/dtype","value":"bf8"}])",
       "arguments[2].dtype: unknown type 'bf8'"},
      {R"([{"op":"remove","path":"/arguments/0/dims/0"}])",
       "arguments[0].dims: has 3 entries; a tensor map is over batch, head, row, column"},
      {R"([{"op":"replace","path":"/arguments/0/box/columns","value":100}])",
       "q.box.columns: is 100; 32 of bf16 make a panel of 64 bytes"},
      {R"([{"op":"replace","path":"/arguments/0/l2_promotion","value":100}])",
       "arguments[0].l2_promotion: is 100, not 0, 64, 128 or 256"},
      {R"([{"op":"replace","path":"/arguments/1/offset","value":64}])",
       "q reaches to byte 128, but k begins at 64"},
      {R"([{"op":"replace","path":"/arguments/4/offset","value":310}])",
       "H is at offset 310, which is not a multiple of 4"},
      {R"([{"op":"replace","path":"/parameter_bytes","value":330}])",
       "queue reaches to byte 336 of 330 parameter bytes"},
      {R"([{"op":"replace","path":"/arguments/4/name","value":"B"}])",
       "two arguments are named B"}};
  for (const auto& [patch, expected] : cases) {
    Diagnostics diagnostics;
    EXPECT_FALSE(read(attention().patch(Json::parse(patch)), diagnostics)) << patch;
    ASSERT_FALSE(diagnostics.all().empty()) << patch;
    EXPECT_EQ(diagnostics.all()[0].message, expected);
  }
}

// ---- packing

class Packing : public testing::Test {
 protected:
  std::optional<Packed> pack_with(const Tensors& tensors, const Scalars& scalars = {{"cap", 30}}) {
    diagnostics = {};
    const auto spec = read(attention(), diagnostics);
    return spec ? pack(*spec, tensors, scalars, 132, diagnostics) : std::nullopt;
  }
  // The only finding, as text.
  std::string refusal(const Tensors& tensors, const Scalars& scalars = {{"cap", 30}}) {
    EXPECT_FALSE(pack_with(tensors, scalars));
    return diagnostics.all().size() == 1 ? diagnostics.all()[0].message : render(diagnostics);
  }
  template <class T>
  T field(const Packed& packed, int offset) {
    T out;
    memcpy(&out, packed.bytes.data() + offset, sizeof out);
    return out;
  }
  Diagnostics diagnostics;
};

TEST_F(Packing, PutsSizesScalarsAndTensorsAtTheirOffsets) {
  const auto packed = pack_with(attention_tensors());
  ASSERT_TRUE(packed) << render(diagnostics);
  EXPECT_EQ(packed->bytes.size(), 448u);
  EXPECT_EQ(packed->grid, 48u);
  EXPECT_EQ(field<int64_t>(*packed, 264), 2400);
  EXPECT_EQ(field<int64_t>(*packed, 272), 300);
  EXPECT_EQ(field<int64_t>(*packed, 280), 1);
  EXPECT_EQ(field<int32_t>(*packed, 288), 2);
  EXPECT_EQ(field<int32_t>(*packed, 296), 300);
  EXPECT_EQ(field<int32_t>(*packed, 304), 2);
  EXPECT_EQ(field<int32_t>(*packed, 308), 8);
  EXPECT_EQ(field<int32_t>(*packed, 312), 4);
  EXPECT_EQ(field<float>(*packed, 316),
            static_cast<float>(1 / std::sqrt(128.0) * 1.4426950408889634));
  EXPECT_EQ(field<float>(*packed, 320), 30.0f);
  ASSERT_EQ(packed->workspaces.size(), 1u);
  EXPECT_EQ(packed->workspaces[0].bytes, 8);
}

TEST_F(Packing, SeesATensorAsPanelsOf128Bytes) {
  const auto packed = pack_with(attention_tensors());
  ASSERT_TRUE(packed) << render(diagnostics);
  const TensorMapGeometry& k = *packed->tensors[1].map;
  EXPECT_EQ(k.dtype, 9);
  EXPECT_EQ(k.dims, (std::array<uint64_t, 5>{64, 500, 2, 2, 2}));
  EXPECT_EQ(k.strides, (std::array<uint64_t, 4>{512, 128, 256, 256000}));
  EXPECT_EQ(k.box, (std::array<uint32_t, 5>{64, 128, 2, 1, 1}));
  EXPECT_EQ(k.l2_promotion, 3);
}

// The kernel for D columns, whose copies of K are `box` wide, and K of `type`.
std::optional<TensorMapGeometry> keys_of(int64_t d, int64_t box, Dtype type,
                                         Diagnostics& diagnostics) {
  const Argument argument{.name = "k",
                          .kind = ArgumentKind::tensor_map,
                          .dtype = type,
                          .box_rows = 64,
                          .box_columns = box};
  return tensor_map_geometry(argument, contiguous(0x20000, type, {2, 4, 500, d}), diagnostics);
}

TEST(TensorMap, HasPanelsOf64BytesWhereARowIsNoMultipleOf128) {
  Diagnostics diagnostics;
  const auto k = keys_of(96, 32, Dtype::f16, diagnostics);
  ASSERT_TRUE(k) << render(diagnostics);
  EXPECT_EQ(k->dtype, 6);
  EXPECT_EQ(k->dims, (std::array<uint64_t, 5>{32, 500, 3, 4, 2}));
  EXPECT_EQ(k->strides, (std::array<uint64_t, 4>{192, 64, 96000, 384000}));
  EXPECT_EQ(k->box, (std::array<uint32_t, 5>{32, 64, 1, 1, 1}));
  EXPECT_EQ(k->swizzle, 2);  // 64 bytes
  const auto wide = keys_of(192, 64, Dtype::f16, diagnostics);
  ASSERT_TRUE(wide) << render(diagnostics);
  EXPECT_EQ(wide->dims, (std::array<uint64_t, 5>{64, 500, 3, 4, 2}));
  EXPECT_EQ(wide->strides[1], 128u);
  EXPECT_EQ(wide->swizzle, 3);
}

TEST(TensorMap, OfPartsOfRowsHasWholeRowsOfAnyLength) {
  Diagnostics diagnostics;
  const Argument argument{.name = "a",
                          .kind = ArgumentKind::tensor_map,
                          .dtype = Dtype::bf16,
                          .box_rows = 64,
                          .box_columns = 64,
                          .part_of_rows = true};
  const auto a =
      tensor_map_geometry(argument, contiguous(0x20000, Dtype::bf16, {2, 4, 500, 72}), diagnostics);
  ASSERT_TRUE(a) << render(diagnostics);
  EXPECT_EQ(a->dims, (std::array<uint64_t, 5>{72, 500, 1, 4, 2}));
  EXPECT_EQ(a->strides, (std::array<uint64_t, 4>{144, 128, 72000, 288000}));
  EXPECT_EQ(a->box, (std::array<uint32_t, 5>{64, 64, 1, 1, 1}));
  EXPECT_EQ(a->swizzle, 3);
  EXPECT_FALSE(tensor_map_geometry(argument, contiguous(0x20000, Dtype::bf16, {2, 4, 500, 76}),
                                   diagnostics));
  EXPECT_NE(render(diagnostics).find("positive multiples of 8 elements"), std::string::npos);
}

TEST(TensorMap, RefusesColumnsThatAreNoWholePanels) {
  Diagnostics diagnostics;
  EXPECT_FALSE(keys_of(80, 32, Dtype::bf16, diagnostics));
  EXPECT_FALSE(keys_of(128, 32, Dtype::bf16, diagnostics));
  ASSERT_EQ(diagnostics.all().size(), 2u) << render(diagnostics);
  EXPECT_EQ(diagnostics.all()[0].message, "k has 80 columns, no multiple of 32");
  EXPECT_EQ(diagnostics.all()[1].message,
            "k has 128 columns, which are panels of 64; one copy moves 32");
}

// The kernel whose threads copy the rows of K themselves.
Json copied_by_threads() {
  Json json = attention();
  json["arguments"][1] = {{"name", "k"},
                          {"kind", "tensor"},
                          {"offset", 128},
                          {"dtype", "bf16"},
                          {"access", "read"},
                          {"row_alignment", 16},
                          {"dims", {"B", "G", "N", "D"}}};
  return json;
}

TEST_F(Packing, AsksTheSameOfRowsThatThreadsCopy) {
  const auto refusal = [&](auto change) {
    Tensors tensors = attention_tensors();
    change(tensors["k"]);
    diagnostics = {};
    const auto spec = read(copied_by_threads(), diagnostics);
    const bool packed = spec && pack(*spec, tensors, {{"cap", 30}}, 132, diagnostics).has_value();
    return packed ? "" : diagnostics.all().at(0).message;
  };
  EXPECT_EQ(refusal([](TensorView&) {}), "");
  EXPECT_EQ(refusal([](TensorView& k) { k.strides[3] = 2; }),
            "k: the last dimension has stride 2, not 1");
  EXPECT_EQ(refusal([](TensorView& k) { k.strides[1] = 132; }),
            "k: the stride of dimension 1 is 132 elements of bf16; its copies take positive "
            "multiples of 8 elements");
  EXPECT_EQ(refusal([](TensorView& k) { k.strides[1] = 0; }),
            "k: the stride of dimension 1 is 0 elements of bf16; its copies take positive "
            "multiples of 8 elements");
  EXPECT_EQ(refusal([](TensorView& k) { k.data += 8; }),
            "k is at address 0x20008, which is not a multiple of 16 bytes");
}

TEST_F(Packing, AStrideThatDoesNotMatterIsPackedAsNoneWhereThreadsCopy) {
  Tensors tensors = attention_tensors();
  tensors["k"] = {0x20000, Dtype::bf16, {2, 2, 1, 128}, {512, 256, 7, 1}};
  const auto spec = read(copied_by_threads(), diagnostics);
  const auto packed = pack(*spec, tensors, {{"cap", 30}}, 132, diagnostics);
  ASSERT_TRUE(packed) << render(diagnostics);
  EXPECT_EQ(field<int64_t>(*packed, 128 + 8), 512);
  EXPECT_EQ(field<int64_t>(*packed, 128 + 8 + 16), 0);
  EXPECT_EQ(field<int64_t>(*packed, 128 + 8 + 24), 1);
}

TEST_F(Packing, RefusesNeighboursInTheLastDimensionThatAre2To32BytesApartWhereElementsAreRead) {
  Json json = attention();
  json["arguments"][2]["access"] = "read";
  const auto spec = read(json, diagnostics);
  ASSERT_TRUE(spec) << render(diagnostics);
  Tensors tensors = attention_tensors();
  tensors["lse"].strides[2] = 0xffffffff / 4;  // of 4 bytes
  EXPECT_TRUE(pack(*spec, tensors, {{"cap", 30.0}}, 132, diagnostics)) << render(diagnostics);
  ++tensors["lse"].strides[2];
  EXPECT_FALSE(pack(*spec, tensors, {{"cap", 30.0}}, 132, diagnostics));
  EXPECT_EQ(diagnostics.all()[0].code, "launch.range");
}

TEST_F(Packing, IgnoresTheStrideOfADimensionOfOne) {
  Tensors tensors = attention_tensors();
  for (auto& [name, tensor] : tensors) {
    tensor.shape[0] = 1;
    tensor.strides[0] = 3;
  }
  EXPECT_TRUE(pack_with(tensors)) << render(diagnostics);
}

TEST_F(Packing, RefusesEachFaultByTheArgumentsName) {
  const auto changed = [](auto change) {
    Tensors tensors = attention_tensors();
    change(tensors);
    return tensors;
  };
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["k"].shape[0] = 3; })),
            "k has 3 in dimension 0 (B), but q has 2");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["q"].shape[3] = 64; })),
            "q has 64 in dimension 3 (D), but the kernel takes 128");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["q"].dtype = Dtype::f16; })),
            "q is f16, the kernel takes bf16");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t.erase("k"); })),
            "tensor k is missing; the kernel takes q, k, lse");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["z"] = t["q"]; })),
            "unknown tensor z; the kernel takes q, k, lse");
  EXPECT_EQ(refusal(changed([](Tensors& t) {
              t["lse"] = contiguous(8, Dtype::f32, {2, 8});
            })),
            "lse has shape [2, 8], the kernel takes [B, H, M]");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["q"].strides[3] = 2; })),
            "q: the last dimension has stride 2, not 1");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["q"].strides[2] = 132; })),
            "q: the stride of dimension 2 is 132 elements of bf16; its copies take positive "
            "multiples of 8 elements");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["q"].data += 8; })),
            "q is at address 0x10008, which is not a multiple of 16 bytes");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["lse"].data += 2; })),
            "lse is at address 0x30002, which is not a multiple of 4 bytes");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["q"].data = 0; })), "q has no memory (address 0)");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["k"].shape[1] = 3; })),
            "the kernel requires H % G == 0, and the two sides are 2 and 0");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["k"].shape[2] = 0; })),
            "k has 0 in dimension 2: nothing to do");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["lse"].strides[2] = 0; })),
            "lse is written, but its dimension 2 has stride 0: 300 elements would share one place");
  EXPECT_EQ(refusal(attention_tensors(), {}), "scalar cap is missing");
  EXPECT_EQ(refusal(attention_tensors(), {{"cap", 30}, {"hat", 1}}),
            "unknown scalar hat; this kernel takes cap");
}

TEST_F(Packing, TakesSizesUpToThoseThatAreProved) {
  const auto with_keys = [](int64_t n) {
    Tensors tensors = attention_tensors();
    tensors["k"].shape[2] = n;
    return tensors;
  };
  EXPECT_TRUE(pack_with(with_keys(16777216))) << render(diagnostics);
  EXPECT_EQ(refusal(with_keys(16777217)),
            "k has 16777217 in dimension 2 (N), and kernels are checked for sizes up to 16777216");
}

TEST_F(Packing, RefusesAGridOfNothingAndOneThatIsTooLarge) {
  Json json = attention();
  json["grid"] = Json::parse(R"(["*", "M", 10000000])");
  EXPECT_FALSE(pack(*read(json, diagnostics), attention_tensors(), {{"cap", 1}}, 132, diagnostics));
  EXPECT_EQ(diagnostics.all()[0].message,
            "grid = M * 10000000 is 3000000000, not an integer from 1 to 2147483647");
  diagnostics = {};
  json["grid"] = Json::parse(R"(["-", "M", 300])");
  const auto spec = read(json, diagnostics);
  EXPECT_FALSE(pack(*spec, attention_tensors(), {{"cap", 1}}, 132, diagnostics));
  EXPECT_EQ(diagnostics.all()[0].message,
            "grid = M - 300 is 0, not an integer from 1 to 2147483647");
}

TEST_F(Packing, RefusesAGridThatIsNotWholeClusters) {
  Json json = in_clusters();
  const auto whole = read(json, diagnostics);
  EXPECT_EQ(pack(*whole, attention_tensors(), {{"cap", 1}}, 132, diagnostics)->grid, 96u);
  EXPECT_EQ(pack(*whole, attention_tensors(), {{"cap", 1}}, 79, diagnostics)->grid, 78u);
  json["grid"] = Json::parse(R"(["min", "M", "SMS"])");
  const auto spec = read(json, diagnostics);
  EXPECT_TRUE(pack(*spec, attention_tensors(), {{"cap", 1}}, 78, diagnostics));
  EXPECT_FALSE(pack(*spec, attention_tensors(), {{"cap", 1}}, 79, diagnostics));
  ASSERT_EQ(diagnostics.all().size(), 1u) << render(diagnostics);
  EXPECT_EQ(diagnostics.all()[0].message,
            "grid = min(M, SMS) is 79, no multiple of the 2 CTAs of a cluster");
}

// A struct that somebody else laid out: addresses, and the strides that it asks for; its blocks are
// numbered in three dimensions.
Json of_somebody_else() {
  return Json::parse(R"({
    "entry": "fwd", "target": "sm_80", "threads": 128, "shared_bytes": 65536,
    "parameter_bytes": 80, "cluster": 1, "resident": 1,
    "grid": ["ceil_div", "M", 128], "grid_y": "B", "grid_z": "H",
    "arguments": [
      {"name": "q", "kind": "pointer", "offset": 0, "dtype": "bf16",
       "dims": ["B", "H", "M", 128], "access": "read", "row_alignment": 16},
      {"name": "lse", "kind": "pointer", "offset": 8, "dtype": "f32", "dims": ["B", "H", "M"],
       "access": "write"},
      {"name": "q_batch", "kind": "stride", "of": "q", "dim": 0, "offset": 16},
      {"name": "q_row", "kind": "stride", "of": "q", "dim": 2, "offset": 24},
      {"name": "q_head", "kind": "stride", "of": "q", "dim": 1, "offset": 32},
      {"name": "window", "kind": "size", "offset": 40, "value": -1}]})");
}

TEST_F(Packing, GivesAddressesAndStridesToAStructThatIsNotOurs) {
  const auto spec = read(of_somebody_else(), diagnostics);
  ASSERT_TRUE(spec) << render(diagnostics);
  Tensors tensors;
  tensors["q"] = {0x10000, Dtype::bf16, {2, 8, 300, 128}, {300 * 1024, 128, 1024, 1}};
  tensors["lse"] = contiguous(0x30000, Dtype::f32, {2, 8, 300});
  const auto packed = pack(*spec, tensors, {}, 132, diagnostics);
  ASSERT_TRUE(packed) << render(diagnostics);
  EXPECT_EQ(field<int64_t>(*packed, 16), 300 * 1024);
  EXPECT_EQ(field<int64_t>(*packed, 24), 1024);
  EXPECT_EQ(field<int64_t>(*packed, 32), 128);
  EXPECT_EQ(field<int32_t>(*packed, 40), -1);
  EXPECT_EQ(packed->tensors[1].offset, 8);
  EXPECT_FALSE(packed->tensors[1].map);
  EXPECT_EQ(packed->grid, 3u);
  EXPECT_EQ(packed->grid_y, 2u);
  EXPECT_EQ(packed->grid_z, 8u);
  // What the struct does not say must be as the kernel takes it to be.
  const auto refusal = [&](const char* name, std::vector<int64_t> strides) {
    Tensors other = tensors;
    other[name].strides = std::move(strides);
    diagnostics = {};
    EXPECT_FALSE(pack(*spec, other, {}, 132, diagnostics));
    return diagnostics.all().empty() ? "" : diagnostics.all()[0].message;
  };
  EXPECT_EQ(refusal("lse", {2400, 1, 8}),
            "lse has stride 8 in dimension 2, and the kernel, which is not told, takes it to be 1");
  EXPECT_EQ(refusal("q", {300 * 1024, 128, 1020, 1}),
            "q: the stride of dimension 2 is 1020 elements of bf16; its copies take positive "
            "multiples of 8 elements");
}

TEST_F(Packing, RefusesAStrideOfNothing) {
  for (const auto& [patch, expected] : std::vector<std::pair<const char*, const char*>>{
           {R"([{"op":"replace","path":"/arguments/2/of","value":"k"}])",
            "arguments.q_batch: is a stride of k, which is not a pointer"},
           {R"([{"op":"replace","path":"/arguments/2/dim","value":4}])",
            "arguments.q_batch: is the stride of dimension 4 of q, which has 4"}}) {
    diagnostics = {};
    EXPECT_FALSE(read(of_somebody_else().patch(Json::parse(patch)), diagnostics));
    ASSERT_FALSE(diagnostics.all().empty());
    EXPECT_EQ(diagnostics.all()[0].message, expected);
  }
}

}  // namespace
}  // namespace kw::runtime
