// The tiles: in shared memory, in registers as accumulator or operand, and row vectors. Their
// layouts live here and nowhere else.
#pragma once
#include "../ptx/memory.cuh"
namespace kw {

// R rows of C columns of a 16-bit type, as panels of R rows of 128 bytes with the 128-byte swizzle:
// what the copy engine writes and wgmma reads. Where C is no multiple of 64, the panels are half as
// wide (64 bytes, with the 64-byte swizzle).
template <class T, int R, int C> struct alignas(1024) SharedTile {
  static_assert(sizeof(T) == 2 && C % 32 == 0 && R % 8 == 0, "a shared tile is panels of 64 or 32 columns");
  static constexpr int rows = R, columns = C, bytes = R * C * 2;
  static constexpr int panel = C % 64 == 0 ? 64 : 32, panels = C / panel;  // columns of one, how many
  static constexpr int pitch = panel * 2, panel_bytes = R * pitch;         // of a row, of a panel
  T data[R * C];
  KW_DEVICE u32 address() const { return ptx::shared_address(data); }
  // The 16-byte chunk `chunk` (8 columns) of row `row`, at its swizzled place: its number within the
  // row is exclusive-or'd with the number of the 128-byte line.
  KW_DEVICE u32 chunk(int row, int chunk) const {
    constexpr int chunks = panel / 8;
    return address() + chunk / chunks * panel_bytes + row * pitch +
           (((chunk % chunks) ^ (row * pitch / 128 % chunks)) << 4);
  }
};
// The same of e4m3, as it comes from memory: panels of R rows of 64 columns, one after the other. A
// thread reads what it has copied, 8 columns at a time; no product reads it.
template <int R, int C> struct alignas(1024) SharedTile<e4m3, R, C> {
  static_assert(C % 64 == 0 && R % 8 == 0, "panels of 64 columns");
  static constexpr int rows = R, columns = C, bytes = R * C, pitch = 64, panel_bytes = R * pitch;
  e4m3 data[R * C];
  KW_DEVICE u32 address() const { return ptx::shared_address(data); }
  // Columns 8 * chunk ... of a row of the first panel.
  KW_DEVICE u32 chunk(int row, int chunk) const { return address() + row * pitch + chunk * 8; }
};
// Floats: an accumulator as a warpgroup holds it, thread by thread in fours, so that threads store and the
// copy engine adds 16 bytes next to 16 bytes. No product reads it.
template <int R, int C> struct alignas(1024) SharedTile<float, R, C> {
  static_assert(R == 64 && C % 8 == 0, "a warpgroup's accumulator");
  static constexpr int rows = R, columns = C, bytes = R * C * 4;
  float data[R * C];
  KW_DEVICE u32 address() const { return ptx::shared_address(data); }
};
template <class Tile> struct Transposed {
  const Tile& tile;
};
template <class Tile> KW_DEVICE Transposed<Tile> transposed(const Tile& t) { return {t}; }

// 64 rows held by one warpgroup as wgmma leaves them: a thread has rows g and g+8 of its warp's
// 16, and columns 2c, 2c+1 of every 8 (PTX ISA 9.7.15.5.1, figure of the D fragment). The products
// that warps issue (mma) leave the same, and may have several times 64 rows, one after another.
template <class T, int R, int C> struct Accumulator {
  static_assert(R % 64 == 0, "a warpgroup holds 64 rows at a time");
  static constexpr int columns = C, count = R * C / 128;
  T x[R * C / 128];
  // Which of the thread's R / 32 rows x[n] is in; how far it is below and to the right of x[0]; and
  // where row r has its n-th element of C / 4.
  static constexpr KW_DEVICE int row(int n) { return n / (C / 2) * 2 + n / 2 % 2; }
  static constexpr KW_DEVICE int below(int n) { return n / (C / 2) * 64 + n / 2 % 2 * 8; }
  static constexpr KW_DEVICE int column(int n) { return n % (C / 2) / 4 * 8 + n % 2; }
  static constexpr KW_DEVICE int in_row(int r, int n) { return r / 2 * (C / 2) + n / 2 * 4 + r % 2 * 2 + n % 2; }
  static KW_DEVICE int thread_row() { return (threadIdx.x % 128) / 32 * 16 + threadIdx.x % 32 / 4; }
  static KW_DEVICE int thread_column() { return threadIdx.x % 4 * 2; }
};
// The same 64 rows as the left operand of a wgmma: columns 2n, 2n+1 of the accumulator's order
// packed into word n.
template <class T, int R, int C> struct Operand {
  static_assert(R % 64 == 0 && sizeof(T) == 2, "an operand is 64 rows at a time, of a 16-bit type");
  static constexpr int columns = C, count = R * C / 256;
  u32 x[R * C / 256];
};

// What data says by bools at the same 64 rows: a bit for each of the accumulator's x[n], a word for 128
// columns of one of the thread's rows.
template <int R, int C> struct Operand<bool, R, C> {
  static_assert(R % 64 == 0, "an operand is 64 rows at a time");
  using Tile = Accumulator<bool, R, C>;
  static constexpr int columns = C, words = (C + 127) / 128;  // of a row
  u32 x[R / 32 * words];
  // Where x[n] has its bit. Of 16 neighbouring columns a thread has four, which lie in pairs 8 apart.
  static constexpr KW_DEVICE int word(int n) { return Tile::row(n) * words + Tile::column(n) / 128; }
  static constexpr KW_DEVICE int bit(int n) {
    const int c = Tile::column(n);
    return c / 64 % 2 * 16 + c / 8 % 2 * 8 + c / 16 % 4 * 2 + c % 2;
  }
};

// One value a row; every lane of the row has it.
template <class T, int R> struct RowVector {
  T x[R / 32];
};
// One value for each distance j - i of a tile's column and row, which a warp holds for itself. In a square
// of 8 rows and 8 columns there are 15 distances, of which a thread needs two; squares along a diagonal
// have the same. x[k] holds those of three neighbouring diagonals of squares: lane l the distance 24 * k + l
// from the lowest.
template <class T, int R, int C> struct DiagonalVector {
  using Tile = Accumulator<T, R, C>;
  static constexpr int below = R / 8 - 7;                // how many squares a thread's last row is below its first
  static constexpr int squares = C / 8 + below;          // diagonals of squares
  T x[(squares + 2) / 3];
  // The lowest distance in a tile at `origin`: of the warp's last row and the tile's first column.
  static KW_DEVICE int lowest(int i0, int j0) {
    return j0 - i0 - (Tile::thread_row() - thread_row()) - 8 * below - 7;
  }
  static KW_DEVICE int thread_row() { return threadIdx.x % 32 / 4; }  // of a square
  // Which lane has what the thread needs for the left one of its columns in the first of three squares.
  static KW_DEVICE int lane() { return Tile::thread_column() - thread_row() + 7; }
};
// One value a column, which a warp holds for itself: lane l has every 32nd, from l on.
template <class T, int C> struct ColumnVector {
  T x[(C + 31) / 32];
};
// One value a row, spread over the row's four lanes: total() closes it to a RowVector.
template <class T, int R> struct LaneSum {
  T x[R / 32];
};

// A row of C columns in a warpgroup's registers. Thread t has columns 8t to 8t + 7 of every 1024, so that
// neighbouring threads read and write neighbouring 16 bytes. Of a 16-bit type a word holds two columns.
template <int C> struct LineLayout {
  static_assert(C % 8 == 0, "a thread has eight neighbours");
  static constexpr int columns = C, count = (C + 1023) / 1024 * 8;  // of the row; a thread's
  // The thread's n-th column, and whether every thread has it.
  static KW_DEVICE int column(int n) { return n / 8 * 1024 + threadIdx.x % 128 * 8 + n % 8; }
  static constexpr KW_DEVICE bool all(int n) { return n / 8 * 1024 + 1024 <= C; }
};
template <class T, int C> struct Line : LineLayout<C> {
  static_assert(sizeof(T) == 2, "a line holds a 16-bit type or reals");
  u32 x[LineLayout<C>::count / 2];
};
template <int C> struct Line<real, C> : LineLayout<C> {
  real x[LineLayout<C>::count];
};

// Global coordinates of a tile's first element, for maps that use them.
struct Origin {
  int i, j;
};

// Row vectors in shared memory, by which one warpgroup tells others: R values a slot, slots used in turn.
template <class T, int R> struct SharedRows {
  T x[R];
};
template <class T, int R, int N> struct RowRing {
  SharedRows<T, R> slot[N];
  KW_DEVICE SharedRows<T, R>& operator[](int t) { return slot[u32(t) % N]; }
};

template <class Tile, int N> struct Ring {
  Tile slot[N];
  KW_DEVICE Tile& operator[](int t) { return slot[u32(t) % N]; }
};

}  // namespace kw
