// NVRTC's findings and the cubin audit, on small kernels that each break one rule. Without an NVRTC
// on the machine the compiling tests are skipped, and say so.
#include "compile/nvrtc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "compile/cubin.h"
#include "in_clone.h"

namespace kw::runtime {
namespace {

const Nvrtc* nvrtc() {
  static Diagnostics diagnostics;
  static const std::string venv_python = in_clone() + "/.venv/bin/python";
  static const std::optional<Nvrtc> found = Nvrtc::find(venv_python, diagnostics);
  return found ? &*found : nullptr;
}

class Compiling : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc()) GTEST_SKIP() << "no NVRTC on this machine: neither PyTorch nor a CUDA toolkit";
  }
  std::optional<Compiled> compile(const std::string& text, std::vector<Header> headers = {},
                                  const std::string& target = "sm_90a") {
    return nvrtc()->compile(make_source("kernel.cu", text), headers, target, {}, diagnostics);
  }
  // Compiles and audits as a module whose only entry is k.
  std::optional<Cubin> audit(const std::string& text) {
    const std::optional<Compiled> compiled = compile(text);
    if (!compiled) return std::nullopt;
    image = compiled->cubin;
    return audit_cubin(image, {"sm_90a", {"k"}, compiled->dead_globals, {}}, diagnostics);
  }
  int count(const std::string& code) const {
    int n = 0;
    for (const Diagnostic& d : diagnostics.all()) n += d.code == code;
    return n;
  }
  Diagnostics diagnostics;
  std::string image;
};

TEST_F(Compiling, GivesACubinAndTheEntrysResources) {
  const auto compiled = compile(R"(
      extern "C" __global__ void __launch_bounds__(128) k(float* p) {
        __shared__ float tile[128];
        tile[threadIdx.x] = p[threadIdx.x];
        __syncthreads();
        p[threadIdx.x] = tile[127 - threadIdx.x];
      })");
  ASSERT_TRUE(compiled) << render(diagnostics);
  EXPECT_EQ(compiled->cubin.substr(1, 3), "ELF");
  ASSERT_EQ(compiled->entries.size(), 1u);
  EXPECT_EQ(compiled->entries[0].entry, "k");
  EXPECT_GT(compiled->entries[0].registers, 0);
  EXPECT_EQ(compiled->entries[0].shared, 512);
  EXPECT_EQ(compiled->entries[0].barriers, 1);
}

TEST_F(Compiling, TakesHeadersFromMemoryAndBlamesTheirLines) {
  const std::string kernel =
      "#include \"kw/one.cuh\"\nextern \"C\" __global__ void k(int* p) { *p = one(); }\n";
  EXPECT_TRUE(compile(kernel, {{"kw/one.cuh", "__device__ int one() { return 1; }\n"}}))
      << render(diagnostics);
  EXPECT_FALSE(compile(kernel, {{"kw/one.cuh", "\n  __device__ int one() { return nothing; }\n"}}));
  ASSERT_EQ(diagnostics.all().size(), 1u) << render(diagnostics);
  EXPECT_EQ(diagnostics.all()[0].span.place(), "kw/one.cuh:2:3");
  EXPECT_EQ(diagnostics.all()[0].message, "identifier \"nothing\" is undefined");
}

TEST_F(Compiling, HeadersIncludeEachOtherAsFilesDo) {
  // Two headers of one name in two folders: the spelling alone does not tell them apart.
  const std::vector<Header> headers = {
      {"kw/all.cuh", "#pragma once\n#include \"a/same.cuh\"\n#include \"b/same.cuh\"\n"},
      {"kw/a/same.cuh", "#pragma once\n#include \"part.cuh\"\n"},
      {"kw/a/part.cuh", "#pragma once\n__device__ int one() { return 1; }\n"},
      {"kw/b/same.cuh", "#pragma once\n#include \"part.cuh\"\n#include \"../a/part.cuh\"\n"},
      {"kw/b/part.cuh", "#pragma once\n__device__ int two() { return 2; }\n"}};
  EXPECT_TRUE(
      compile("#include \"kw/all.cuh\"\n"
              "extern \"C\" __global__ void k(int* p) { *p = one() + two(); }\n",
              headers))
      << render(diagnostics);
}

TEST_F(Compiling, RefusesAMisspelledTarget) {
  EXPECT_FALSE(compile("", {}, "hopper"));
  EXPECT_EQ(count("build.target"), 1);
}

TEST_F(Compiling, ReportsATargetThatThisNvrtcLacks) {
  EXPECT_FALSE(compile("extern \"C\" __global__ void k() {}", {}, "sm_11"));
  EXPECT_EQ(count("build.compile"), 1) << render(diagnostics);
}

TEST_F(Compiling, RefusesSpills) {
  std::string loads, stores;
  EXPECT_FALSE(compile(R"(
      extern "C" __global__ void __launch_bounds__(1024, 2) k(float* p) {
        float a[100];
        #pragma unroll
        for (int i = 0; i < 100; i++) a[i] = p[i * 1024 + threadIdx.x];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 100; i++) p[i * 1024 + threadIdx.x] = a[99 - i] * a[i];
      })"));
  EXPECT_EQ(count("build.spill"), 1) << render(diagnostics);
}

TEST_F(Compiling, ReportsWhatPtxasRefuses) {
  EXPECT_FALSE(
      compile("extern __device__ int elsewhere(int);\n"
              "extern \"C\" __global__ void k(int* p) { *p = elsewhere(*p); }"));
  ASSERT_EQ(count("build.compile"), 1) << render(diagnostics);
  EXPECT_NE(diagnostics.all()[0].message.find("elsewhere"), std::string::npos);
}

TEST_F(Compiling, AuditPassesAKernelAndKnowsItsNumbers) {
  const auto cubin = audit(R"(
      struct Args { float* p; int n; };
      extern "C" __global__ void k(const __grid_constant__ Args args) {
        if (threadIdx.x < args.n) args.p[threadIdx.x] *= 2;
      })");
  ASSERT_TRUE(cubin);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics);
  EXPECT_EQ(cubin->architecture, 90);
  ASSERT_EQ(cubin->entries.size(), 1u);
  EXPECT_EQ(cubin->entries[0].parameter_bytes, 16);
  EXPECT_GT(cubin->entries[0].registers, 0);
  EXPECT_GT(cubin->entries[0].code_bytes, 0);

  audit_cubin(image, {"sm_80", {"k"}, {}, 24}, diagnostics);
  EXPECT_EQ(count("cubin.target"), 1);
  EXPECT_EQ(count("cubin.parameters"), 1);
}

TEST_F(Compiling, AuditKnowsTheSizeOfAnAlignedStruct) {
  const auto cubin = audit(R"(
      struct Args { struct alignas(64) Map { char bytes[128]; } map; float* p; };
      extern "C" __global__ void k(const __grid_constant__ Args args) { *args.p = args.map.bytes[0]; })");
  ASSERT_TRUE(cubin);
  EXPECT_EQ(cubin->entries[0].parameter_bytes, 192);
}

TEST_F(Compiling, AuditExceptsConstantsThatNoInstructionNames) {
  audit("constexpr int BM = 128;\nextern \"C\" __global__ void k(int* p) { *p = BM; }");
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics);
}

TEST_F(Compiling, AuditRefusesStateInGlobalMemory) {
  audit(
      "__device__ int zeroed; __device__ int started = 3;\n"
      "extern \"C\" __global__ void k(int* p) { *p = atomicAdd(&zeroed, 1) + started; }");
  EXPECT_EQ(count("cubin.global"), 2) << render(diagnostics);
}

TEST_F(Compiling, AuditRefusesPrinting) {
  audit("extern \"C\" __global__ void k(int* p) { printf(\"%d\", *p); }");
  EXPECT_EQ(count("cubin.undefined"), 1) << render(diagnostics);
  EXPECT_EQ(count("cubin.relocation"), 1);
}

TEST_F(Compiling, AuditRefusesAllocation) {
  audit("extern \"C\" __global__ void k(void** p) { *p = malloc(8); }");
  EXPECT_EQ(count("cubin.undefined"), 1) << render(diagnostics);
}

TEST_F(Compiling, AuditRefusesAnEntryTooManyAndOneTooFew) {
  audit("extern \"C\" __global__ void k() {}\nextern \"C\" __global__ void also() {}");
  EXPECT_EQ(count("cubin.entries"), 1);
  audit("extern \"C\" __global__ void other() {}");
  EXPECT_EQ(count("cubin.entries"), 2);
}

TEST_F(Compiling, AuditRefusesEveryTruncation) {
  ASSERT_TRUE(audit("extern \"C\" __global__ void k(int* p) { *p = 1; }"));
  ASSERT_FALSE(diagnostics.has_errors());
  for (size_t n = 0; n < image.size(); n += 97) {
    Diagnostics found;
    // The program headers at the very end are not needed, hence the bound on what must be refused.
    audit_cubin(std::string_view(image).substr(0, n), {"sm_90a", {"k"}, {}, {}}, found);
    EXPECT_TRUE(found.has_errors() || n > image.size() / 2) << n;
  }
}

TEST(CubinAudit, RefusesWhatIsNoCubin) {
  for (const std::string& image : {std::string(), std::string("hello"), std::string(4096, '\0')}) {
    Diagnostics diagnostics;
    EXPECT_FALSE(audit_cubin(image, {"sm_90a", {"k"}, {}, {}}, diagnostics));
    ASSERT_EQ(diagnostics.all().size(), 1u);
    EXPECT_EQ(diagnostics.all()[0].code, "cubin.not_elf");
  }
}

TEST(CompileLog, ReadsPtxasRemarksOfLostPerformance) {
  const CompileLog log = parse_compile_log(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to non wgmma instructions in function 'attention_fwd'\n"
      "ptxas info    : Compiling entry function 'attention_fwd' for 'sm_90a'\n"
      "ptxas info    : Function properties for attention_fwd\n"
      "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers, 1024 bytes smem\n");
  ASSERT_EQ(log.losses.size(), 1u);
  ASSERT_EQ(log.entries.size(), 1u);
  EXPECT_EQ(log.entries[0].registers, 168);
  EXPECT_EQ(log.entries[0].barriers, 16);
  EXPECT_EQ(log.entries[0].shared, 1024);
  EXPECT_EQ(log.entries[0].stack, 16);
  EXPECT_EQ(log.entries[0].spill_stores, 8);
  EXPECT_EQ(log.entries[0].spill_loads, 12);
}

// NVRTC's own cache gave a cubin with an empty log on a machine with a driver: "0 registers, 0
// spills".
TEST(CompileLog, SilenceAboutAnEntryIsNoticed) {
  const CompileLog log = parse_compile_log(
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n");
  EXPECT_EQ(unreported(log.entries, {"a"}), std::vector<std::string>{});
  EXPECT_EQ(unreported(log.entries, {"a", "b", "c"}), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(unreported(parse_compile_log("").entries, {"a"}), std::vector<std::string>{"a"});
}

TEST(DeadGlobals, AreThoseThatOnlyTheirDefinitionNames) {
  EXPECT_EQ(dead_globals("\n.global .align 4 .u32 BM = 128;\n.global .align 4 .u32 used = 1;\n"
                         ".visible .global .align 1 .b8 table[2] = {1, 2};\n"
                         "\tld.global.u32 %r1, [used];\n\tmov.u64 %rd1, table;\n"),
            std::vector<std::string>{"BM"});
}

TEST(Includes, AreSpeltInFullAndNothingElseChanges) {
  EXPECT_EQ(
      with_full_includes("kw/ops/x.cuh",
                         "  #include \"../tile/t.cuh\"  // why\n#include \"none.cuh\"\nint x;",
                         {{"kw/tile/t.cuh", ""}}),
      "  #include \"kw/tile/t.cuh\"  // why\n#include \"none.cuh\"\nint x;");
}

TEST(FindingNvrtc, TakesTheEnvironmentsChoiceAloneAndSaysWhenItIsWrong) {
  setenv("KERNELWRIGHT_NVRTC", "/nowhere/libnvrtc.so", 1);
  Diagnostics diagnostics;
  EXPECT_FALSE(Nvrtc::find("", diagnostics));
  unsetenv("KERNELWRIGHT_NVRTC");
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].code, "build.no_nvrtc");
  ASSERT_EQ(diagnostics.all()[0].notes.size(), 1u);
  EXPECT_NE(diagnostics.all()[0].notes[0].message.find("/nowhere/libnvrtc.so"), std::string::npos);
}

}  // namespace
}  // namespace kw::runtime
