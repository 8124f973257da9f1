// Launching without a GPU: launch.json, packing, and the order of driver calls against
// the stand-in driver of tests/fake_cuda.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/launch.h"
#include "runtime/tensor_map.h"
#include "tiny_cubin.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

// ---- launch.json

Json attention() {
  return Json::parse(R"({
    "entry": "attention_fwd", "target": "sm_90a", "threads": 384, "shared_bytes": 230000,
    "parameter_bytes": 448, "cluster": 1, "resident": 1,
    "grid": ["min", ["*", ["ceil_div", "M", 128], "H", "B"], "SMS"],
    "requires": [["==", ["%", "H", "G"], 0]],
    "constants": {"D": 128},
    "arguments": [
      {"name": "q", "kind": "tensor_map", "offset": 0, "dtype": "bf16",
       "dims": ["B", "H", "M", "D"], "box": {"rows": 64, "columns": 128}, "access": "read",
       "l2_promotion": 256},
      {"name": "k", "kind": "tensor_map", "offset": 128, "dtype": "bf16",
       "dims": ["B", "G", "N", "D"], "box": {"rows": 128, "columns": 128}, "access": "read",
       "l2_promotion": 256},
      {"name": "lse", "kind": "tensor", "offset": 256, "dtype": "f32", "dims": ["B", "H", "M"],
       "access": "write"},
      {"name": "B", "kind": "size", "offset": 304},
      {"name": "H", "kind": "size", "offset": 308},
      {"name": "group", "kind": "size", "offset": 312, "value": ["//", "H", "G"]},
      {"name": "scale", "kind": "scalar", "dtype": "f32", "offset": 316,
       "value": ["*", ["rsqrt", "D"], "log2e"]},
      {"name": "cap", "kind": "scalar", "dtype": "f32", "offset": 320},
      {"name": "queue", "kind": "workspace", "offset": 328, "bytes": 8}]})");
}

std::optional<LaunchSpec> read(const Json& json, Diagnostics& diagnostics) {
  return read_launch_spec(make_source("launch.json", json.dump(1)), diagnostics);
}

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
       "grid: there is no function 'ceil'"},
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
       "arguments[2].dtype: there is no type 'bf8'"},
      {R"([{"op":"remove","path":"/arguments/0/dims/0"}])",
       "arguments[0].dims: has 3 entries; a tensor map is over batch, head, row, column"},
      {R"([{"op":"replace","path":"/arguments/0/box/columns","value":100}])",
       "q.box.columns: is 100; 32 of bf16 make a panel of 64 bytes"},
      {R"([{"op":"replace","path":"/arguments/0/l2_promotion","value":100}])",
       "arguments[0].l2_promotion: is 100, not 0, 64, 128 or 256"},
      {R"([{"op":"replace","path":"/arguments/1/offset","value":64}])",
       "q reaches to byte 128, but k begins at 64"},
      {R"([{"op":"replace","path":"/arguments/4/offset","value":310}])",
       "H is at offset 310, which is no multiple of 4"},
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

// A tensor as PyTorch makes it: contiguous, or [B, S, H, D] seen as [B, H, S, D].
TensorView contiguous(uint64_t data, Dtype dtype, std::vector<int64_t> shape) {
  TensorView view{data, dtype, shape, std::vector<int64_t>(shape.size(), 1)};
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    view.strides[i] = view.strides[i + 1] * shape[i + 1];
  return view;
}

Tensors attention_tensors() {
  Tensors tensors;
  tensors["q"] = contiguous(0x10000, Dtype::bf16, {2, 8, 300, 128});
  tensors["k"] = {0x20000, Dtype::bf16, {2, 2, 500, 128}, {500 * 256, 128, 256, 1}};
  tensors["lse"] = contiguous(0x30000, Dtype::f32, {2, 8, 300});
  return tensors;
}

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
            "k is at address 0x20008, which is no multiple of 16 bytes");
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
            "there is no tensor z; the kernel takes q, k, lse");
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
            "q is at address 0x10008, which is no multiple of 16 bytes");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["lse"].data += 2; })),
            "lse is at address 0x30002, which is no multiple of 4 bytes");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["q"].data = 0; })), "q has no memory (address 0)");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["k"].shape[1] = 3; })),
            "the kernel requires H % G == 0, and the two sides are 2 and 0");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["k"].shape[2] = 0; })),
            "k has 0 in dimension 2: nothing to do");
  EXPECT_EQ(refusal(changed([](Tensors& t) { t["lse"].strides[2] = 0; })),
            "lse is written, but its dimension 2 has stride 0: 300 elements would share one place");
  EXPECT_EQ(refusal(attention_tensors(), {}), "scalar cap is missing");
  EXPECT_EQ(refusal(attention_tensors(), {{"cap", 30}, {"hat", 1}}), "nothing reads a scalar hat");
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

// 48 tiles of the output, in clusters of two thread blocks.
Json in_clusters() {
  Json json = attention();
  json["cluster"] = 2;
  json["grid"] = Json::parse(
      R"(["*", 2, ["min", ["*", ["ceil_div", "M", 128], "H", "B"], ["//", "SMS", 2]]])");
  return json;
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
            "grid = min(M, SMS) is 79, no multiple of the 2 thread blocks of a cluster");
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
            "arguments.q_batch: is a stride of k, which is no pointer"},
           {R"([{"op":"replace","path":"/arguments/2/dim","value":4}])",
            "arguments.q_batch: is the stride of dimension 4 of q, which has 4"}}) {
    diagnostics = {};
    EXPECT_FALSE(read(of_somebody_else().patch(Json::parse(patch)), diagnostics));
    ASSERT_FALSE(diagnostics.all().empty());
    EXPECT_EQ(diagnostics.all()[0].message, expected);
  }
}

// ---- launching, against the stand-in driver

class Launching : public testing::Test {
 protected:
  void SetUp() override {
    log_path = fmt::format("{}/kw_fake_cuda_{}.log", testing::TempDir(), getpid());
    remove(log_path.c_str());
    setenv("FAKE_CUDA_LOG", log_path.c_str(), 1);
    driver = Driver::open(diagnostics, KW_FAKE_CUDA);
    ASSERT_TRUE(driver) << render(diagnostics);
  }
  void TearDown() override { unsetenv("FAKE_CUDA_LOG"); }
  std::unique_ptr<Kernel> load(const Json& json, int parameter_bytes = 448) {
    auto spec = read(json, diagnostics);
    return Kernel::load(driver, tiny_cubin("attention_fwd", parameter_bytes), *spec, 0,
                        diagnostics);
  }
  std::string log() {
    std::ifstream file(log_path);
    std::stringstream text;
    text << file.rdbuf();
    remove(log_path.c_str());
    return text.str();
  }
  std::string log_path;
  Diagnostics diagnostics;
  std::shared_ptr<const Driver> driver;
};

TEST_F(Launching, LoadsOncePlansOnceAndEnqueuesWithTheAddressesOfTheDay) {
  auto kernel = load(attention());
  ASSERT_TRUE(kernel) << render(diagnostics);
  EXPECT_EQ(log(), "load\nfunction attention_fwd\nshared 230000\n");
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  EXPECT_EQ(
      log(),
      "encode dtype 9 dims 64 300 2 8 2 strides 256 128 76800 614400 box 64 64 2 1 1 swizzle 3\n"
      "encode dtype 9 dims 64 500 2 2 2 strides 512 128 256 256000 box 64 128 2 1 1 swizzle 3\n");
  const std::string launch = "launch attention_fwd grid 48 cluster 1 threads 384 shared 230000\n";
  EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(), "allocate 8\nfill 8\n" + launch);
  EXPECT_TRUE(plan->enqueue({0x10000, 0x50000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(), "address\n" + launch);
  // Another stream has a workspace of its own: its launches run beside the first stream's.
  EXPECT_TRUE(
      plan->enqueue({0x10000, 0x20000, 0x30000}, reinterpret_cast<CuStream>(1), diagnostics));
  EXPECT_EQ(log(), "allocate 8\nfill 8\n" + launch);
  kernel.reset();
  EXPECT_EQ(log(), "free\nfree\nunload\n");
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics);
}

// A replay may overlap an eager launch on the stream that it was captured on, and another graph.
TEST_F(Launching, GivesEachCaptureAWorkspaceOfItsOwnAndZeroesItApart) {
  auto kernel = load(attention());
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  const auto stream = reinterpret_cast<CuStream>(1);
  const auto enqueue = [&](const char* capture) {
    capture ? setenv("FAKE_CUDA_CAPTURE", capture, 1) : unsetenv("FAKE_CUDA_CAPTURE");
    log();
    EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, stream, diagnostics))
        << render(diagnostics);
    unsetenv("FAKE_CUDA_CAPTURE");
    return log();
  };
  const std::string launch = "launch attention_fwd grid 48 cluster 1 threads 384 shared 230000\n";
  const std::string own = "allocate 8\nstream\nfill 8 apart\nwait\nstream ends\n" + launch;
  EXPECT_EQ(enqueue("7"), own);
  EXPECT_EQ(enqueue("7"), launch);  // the same graph: its launches follow each other
  EXPECT_EQ(enqueue("8"), own);
  EXPECT_EQ(enqueue(nullptr), "allocate 8\nfill 8\n" + launch);
  EXPECT_TRUE(kernel->workspaces_are_zero(diagnostics));
}

TEST_F(Launching, LeavesSharedMemoryForAllThreadBlocksOfAMultiprocessor) {
  Json json = attention();
  json["resident"] = 2;
  EXPECT_TRUE(load(json)) << render(diagnostics);
  EXPECT_EQ(log(), "load\nfunction attention_fwd\nshared 230000\ncarveout 100\nunload\n");
}

TEST_F(Launching, LaunchesThePrePassFirstWithMemoryThatNobodyZeroes) {
  Json json = attention();
  json["arguments"][8] = Json::parse(
      R"({"name": "lists", "kind": "scratch", "offset": 328, "bytes": ["*", ["*", "B", "M"], 4]})");
  json["before"] =
      Json::parse(R"([{"entry": "attention_fwd", "threads": 64, "grid": ["ceil_div", "M", 200]}])");
  auto kernel = load(json);
  ASSERT_TRUE(kernel) << render(diagnostics);
  EXPECT_EQ(log(), "load\nfunction attention_fwd\nshared 230000\nfunction attention_fwd\n");
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  log();
  EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(),
            "allocate 2400\n"
            "launch attention_fwd grid 2 cluster 1 threads 64 shared 0\n"
            "launch attention_fwd grid 48 cluster 1 threads 384 shared 230000\n");
  EXPECT_TRUE(kernel->workspaces_are_zero(diagnostics));  // it is none
  json["before"][0]["entry"] = "attention_lists";
  EXPECT_FALSE(load(json));
  EXPECT_NE(render(diagnostics).find("no entry attention_lists"), std::string::npos);
}

TEST_F(Launching, LaunchesClusters) {
  auto kernel = load(in_clusters());
  ASSERT_TRUE(kernel) << render(diagnostics);
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  log();
  EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(),
            "allocate 8\nfill 8\n"
            "launch attention_fwd grid 96 cluster 2 threads 384 shared 230000\n");
}

TEST_F(Launching, SaysThatAGpuHasNoClustersOrRefusesThem) {
  setenv("FAKE_CUDA_NO_CLUSTERS", "1", 1);
  EXPECT_FALSE(load(in_clusters()));
  EXPECT_TRUE(load(attention()));
  unsetenv("FAKE_CUDA_NO_CLUSTERS");
  ASSERT_EQ(diagnostics.all().size(), 1u) << render(diagnostics);
  EXPECT_EQ(diagnostics.all()[0].message,
            "the kernel runs in clusters of 2 thread blocks, the GPU or its driver cannot launch "
            "clusters");
  diagnostics = {};
  auto kernel = load(in_clusters());
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  setenv("FAKE_CUDA_REFUSES_CLUSTERS", "1", 1);
  EXPECT_FALSE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  unsetenv("FAKE_CUDA_REFUSES_CLUSTERS");
  ASSERT_EQ(diagnostics.all().size(), 1u) << render(diagnostics);
  EXPECT_EQ(diagnostics.all()[0].message,
            "launching attention_fwd with 96 blocks of 384 threads in clusters of 2: "
            "CUDA_ERROR_INVALID_CLUSTER_SIZE: as the fake was told (912)");
}

TEST_F(Launching, RefusesWrongAddressesAndWrongCounts) {
  auto kernel = load(attention());
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  EXPECT_FALSE(plan->enqueue({0x10000, 0x20004, 0x30000}, nullptr, diagnostics));
  EXPECT_FALSE(plan->enqueue({0x10000}, nullptr, diagnostics));
  ASSERT_EQ(diagnostics.all().size(), 2u);
  EXPECT_EQ(diagnostics.all()[0].message,
            "k is at address 0x20004, which is no multiple of 16 bytes");
  EXPECT_EQ(diagnostics.all()[1].message, "1 addresses are given for 3 tensors");
}

TEST_F(Launching, RefusesACubinThatDoesNotFitLaunchJson) {
  EXPECT_FALSE(load(attention(), 440));
  EXPECT_EQ(diagnostics.all()[0].message,
            "attention_fwd takes 440 bytes of arguments in the cubin and 448 in launch.json");
  diagnostics = {};
  Json other = attention();
  other["entry"] = "other";
  EXPECT_FALSE(load(other));
  EXPECT_EQ(diagnostics.all()[0].message, "the cubin has no entry other, which launch.json names");
}

TEST_F(Launching, RefusesAGpuThatCannotRunTheKernel) {
  for (const auto& [field, value, message] :
       {std::tuple<std::string, Json, std::string>{
            "target", "sm_100a", "the kernel is built for sm_100a, the GPU is sm_90"},
        {"target", "sm_80", "the kernel is built for sm_80, the GPU is sm_90"},
        {"shared_bytes", 240000,
         "the kernel needs 240000 bytes of shared memory, the GPU has 232448 a block"}}) {
    diagnostics = {};
    Json json = attention();
    json[field] = value;
    EXPECT_FALSE(load(json));
    EXPECT_EQ(diagnostics.all()[0].message, message);
  }
}

TEST(OpeningTheDriver, SaysThatThereIsNoneOrNoGpu) {
  Diagnostics diagnostics;
  EXPECT_FALSE(Driver::open(diagnostics, "/nowhere/libcuda.so.1"));
  EXPECT_EQ(diagnostics.all()[0].code, "driver.missing");
  setenv("FAKE_CUDA_NO_GPU", "1", 1);
  EXPECT_FALSE(Driver::open(diagnostics, KW_FAKE_CUDA));
  unsetenv("FAKE_CUDA_NO_GPU");
  EXPECT_EQ(diagnostics.all()[1].code, "driver.no_device");
}

}  // namespace
}  // namespace kw::runtime
