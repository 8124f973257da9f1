// Plain attention for the stand-in driver, so that what `make` and `tune` write can be proven,
// timed and held against the fp64 goldens on a machine without a GPU.
//
// The argument struct is that of kernels/sm90/attention_fwd.cu for full attention: tensor maps of
// q, k, v and o at 0, 128, 256 and 384, lse (rank 3, f32) at 512, and where the kernel saves it the
// output in f32 (rank 4) at 560. The scale is 1 / sqrt(D).
#pragma once
#include <cstdint>

namespace fake {

// What cuTensorMapEncodeTiled leaves in 128 bytes: dims and strides (in bytes) of columns in a
// panel, rows, panels, heads, batch.
struct TensorMap {
  char* data;  // first: the launcher of the tests replaces an address by these bytes alone
  int32_t dtype, dims[5];
  int64_t strides[4];
};
static_assert(sizeof(TensorMap) <= 128);

// Computes nothing when neither the arguments nor any memory has changed since the last launch: in
// memory of the stand-in's own, since what else changes, such as PyTorch's on the CPU, it is not
// told.
void attention(const unsigned char* arguments);
// Of kernels/sm90/attention_bwd.cu: q, k and v as above, o (rank 4, f32) at 384, the tensor map of
// the output's gradient at 512, lse at 640, the maps of dk and dv at 704 and 832, dq (rank 4) at
// 960.
void gradients(const unsigned char* arguments);
void memory_changed();
void memory_given(uint64_t address, uint64_t bytes);
void memory_taken(uint64_t address);

}  // namespace fake
