// The tensors that a kernel is given. A dimension is named by the letter of the size it has, so the
// type says the whole signature: Tensor<float, 'B', 'H', 'M'>. `const T` is read, `T` is written.
#pragma once
#include "../ptx/memory.cuh"
namespace kw {

// A tensor moved tile by tile by the copy engine: batch, heads, rows, columns. Any strides that are
// multiples of 16 bytes; columns are contiguous.
template <class T, char... Dims> struct TensorMap {
  static_assert(sizeof...(Dims) == 4, "a tensor map has batch, head, row and column");
  OpaqueMap map;
};

// A row of a tensor, along its last dimension. There neighbours are less than 2^32 bytes apart, so that
// one 32-bit product, added to the row's address, is all that an element takes.
template <class T> struct TensorRow {
  T* data;
  u32 apart;  // bytes from one element to the next
  u32 last;
  // An element's address; outside of the row, on either side, its last element's.
  KW_DEVICE T* at(u32 j) const {
    return reinterpret_cast<T*>(reinterpret_cast<u64>(data) + u64(j < last ? j : last) * apart);
  }
};

// A tensor read or written element by element: a pointer, strides and extents in elements.
template <class T, char... Dims> struct Tensor {
  static constexpr int rank = sizeof...(Dims);
  T* data;
  i64 stride[rank];
  int extent[rank];
  // What is read. Tiles hang over the edges of tensors: an index outside of a dimension, on either
  // side, reads its last element, so that nothing outside of the tensor is ever touched.
  template <class... Index> KW_DEVICE auto operator()(Index... at) const {
    static_assert(sizeof...(Index) == rank, "one index a dimension");
    const u32 i[rank] = {u32(at)...};
    return from_memory(row_of(i).at(i[rank - 1]));
  }
  // The row of it that has all of these indices but the last, which it lacks.
  template <class... Index> KW_DEVICE TensorRow<T> row(Index... at) const {
    static_assert(sizeof...(Index) == rank - 1, "one index a dimension but for the last");
    const u32 i[rank] = {u32(at)...};
    return row_of(i);
  }
  // What is written, at indices inside.
  template <class... Index> KW_DEVICE T& element(Index... at) const {
    static_assert(sizeof...(Index) == rank, "one index a dimension");
    const int i[rank] = {at...};
    i64 offset = 0;
#pragma unroll
    for (int d = 0; d < rank; ++d) offset += i[d] * stride[d];
    return data[offset];
  }

 protected:
  KW_DEVICE TensorRow<T> row_of(const u32 (&i)[rank]) const {
    T* from = data;
#pragma unroll
    for (int d = 0; d < rank - 1; ++d) {
      const u32 last = extent[d] - 1;
      from += (i[d] < last ? i[d] : last) * stride[d];
    }
    return {ptx::one_address(from), u32(stride[rank - 1] * sizeof(T)), u32(extent[rank - 1] - 1)};
  }
};

// A tensor that a pre-pass writes, row by row, and the kernel after it reads; or that the kernel stores, and a
// pass behind it reads. Who launches makes room for it: rows follow each other.
template <class T> struct scratch {};
template <class T> struct Element { using type = T; };
template <class T> struct Element<scratch<T>> { using type = T; };
template <class T> using element_of = typename Element<T>::type;
template <class T, char... Dims> struct Tensor<scratch<T>, Dims...> : Tensor<const T, Dims...> {
  // By an ordinary load: a lane may have written the element in this very pass.
  template <class... Index> KW_DEVICE auto operator()(Index... at) const {
    static_assert(sizeof...(Index) == sizeof...(Dims), "one index a dimension");
    const u32 i[sizeof...(Dims)] = {u32(at)...};
    return from_scratch(*this->row_of(i).at(i[sizeof...(Dims) - 1]));
  }
  KW_DEVICE T* row_to_write(int batch, int head, int row) const {
    const i64 at = batch * this->stride[0] + head * this->stride[1] + row * this->stride[2];
    return const_cast<T*>(this->data) + at;
  }
};
template <class T, char... Dims> struct TensorMap<scratch<T>, Dims...> : TensorMap<const T, Dims...> {
  Tensor<scratch<T>, Dims...> rows;
  template <class... Index> KW_DEVICE auto operator()(Index... at) const { return rows(at...); }
};

// Words of device memory that are zero when the kernel starts and zero again when it ends; the
// launcher zeroes them once.
template <int N> struct Workspace {
  u32* words;
};

// Words that a pre-pass writes and the kernel after it reads, or the kernel and a pass behind it. Who launches makes room for them; the
// kernel's text only says for how many.
struct Scratch {
  int* words;
  Scratch() = default;
  KW_DEVICE Scratch(i64) {}
  KW_DEVICE int operator()(int at) const { return from_memory(words + at); }
};

// Where a tile of a tensor starts.
struct Coords {
  int batch, head, row;
};

// Where one starts of a tensor whose rows are wider.
struct TileCoords {
  int batch, head, row, column;
};

}  // namespace kw
