// The coordinates that a map's lambda is given, i and j. A thread's elements stand at distances from
// its first one that the compiler knows, 0 to some 120 columns and 0 or 8 rows, or 64 more; only
// the first one's own coordinates are computed. Said as such pairs, `j < end` is one comparison with
// a constant for an element, since `end` less the first column is the same for all of a row, and a
// difference of reals is one addition; said as numbers, each takes two or three instructions more.
//
//   kw::Place        of map_at: an int, whose comparisons are of the second kind
//   kw::Coordinate   of map_real: a real, whose differences are, and whose multiples read two registers
#pragma once
#include "../scalar.cuh"
namespace kw {

// What a comparison of places says. In `a && b` both are asked: on a GPU the branch past b costs more,
// and registers for what must wait behind it.
struct Truth {
  bool value;
  KW_DEVICE operator bool() const { return value; }
  friend KW_DEVICE Truth operator&&(Truth a, Truth b) { return {bool(a.value & b.value)}; }
  friend KW_DEVICE Truth operator&&(bool a, Truth b) { return {bool(a & b.value)}; }
  friend KW_DEVICE Truth operator&&(Truth a, bool b) { return {bool(a.value & b)}; }
  friend KW_DEVICE Truth operator||(Truth a, Truth b) { return {bool(a.value | b.value)}; }
  friend KW_DEVICE Truth operator||(bool a, Truth b) { return {bool(a | b.value)}; }
  friend KW_DEVICE Truth operator||(Truth a, bool b) { return {bool(a.value | b)}; }
};

// first + away. Places are below 2^30 in size: no memory holds that many rows.
struct Place {
  int first, away;
  KW_DEVICE operator int() const { return first + away; }
  // How far b is from the first place; as far as it can matter, so that data may say any b.
  KW_DEVICE int reach(int b) const {
    constexpr int kFar = 1 << 30;
    return min(max(b, first - kFar), first + kFar - 1) - first;
  }
  friend KW_DEVICE Place operator+(Place a, int b) { return {a.first + b, a.away}; }
  friend KW_DEVICE Place operator+(int a, Place b) { return {a + b.first, b.away}; }
  friend KW_DEVICE Place operator-(Place a, int b) { return {a.first - b, a.away}; }
  friend KW_DEVICE Place operator-(int a, Place b) { return {a - b.first, -b.away}; }
  friend KW_DEVICE Place operator+(Place a, Place b) { return {a.first + b.first, a.away + b.away}; }
  friend KW_DEVICE Place operator-(Place a, Place b) { return {a.first - b.first, a.away - b.away}; }

  friend KW_DEVICE Truth operator<(Place a, int b) { return {a.away < a.reach(b)}; }
  friend KW_DEVICE Truth operator<=(Place a, int b) { return {a.away <= a.reach(b)}; }
  friend KW_DEVICE Truth operator>(Place a, int b) { return {a.away > a.reach(b)}; }
  friend KW_DEVICE Truth operator>=(Place a, int b) { return {a.away >= a.reach(b)}; }
  friend KW_DEVICE Truth operator==(Place a, int b) { return {a.away == a.reach(b)}; }
  friend KW_DEVICE Truth operator!=(Place a, int b) { return {a.away != a.reach(b)}; }
  friend KW_DEVICE Truth operator<(int a, Place b) { return b > a; }
  friend KW_DEVICE Truth operator<=(int a, Place b) { return b >= a; }
  friend KW_DEVICE Truth operator>(int a, Place b) { return b < a; }
  friend KW_DEVICE Truth operator>=(int a, Place b) { return b <= a; }
  friend KW_DEVICE Truth operator==(int a, Place b) { return b == a; }
  friend KW_DEVICE Truth operator!=(int a, Place b) { return b != a; }
  friend KW_DEVICE Truth operator<(Place a, Place b) { return a - b < 0; }
  friend KW_DEVICE Truth operator<=(Place a, Place b) { return a - b <= 0; }
  friend KW_DEVICE Truth operator>(Place a, Place b) { return a - b > 0; }
  friend KW_DEVICE Truth operator>=(Place a, Place b) { return a - b >= 0; }
  friend KW_DEVICE Truth operator==(Place a, Place b) { return a - b == 0; }
  friend KW_DEVICE Truth operator!=(Place a, Place b) { return a - b != 0; }
};

// A difference of two is one addition for an element, not three: what the first elements differ by,
// the compiler keeps for all.
struct Coordinate {
  real first;
  int away;
  KW_DEVICE operator real() const { return first + real(away); }
  friend KW_DEVICE Coordinate operator-(Coordinate a, Coordinate b) {
    return {a.first - b.first, a.away - b.away};
  }
  friend KW_DEVICE Coordinate operator-(Coordinate a) { return {-a.first, -a.away}; }
};

// by * of. `x + by * of` is an fma with the number `away` and an addition, which read two registers each,
// and no addition and an fma of three: beside products on the tensor cores, whose accumulators are
// read and written all the time, what a loop reads decides how fast it is.
struct Multiple {
  real by;
  Coordinate of;
  KW_DEVICE operator real() const { return fma(by, real(of.away), by * of.first); }
};
KW_DEVICE Multiple operator*(real by, Coordinate of) { return {by, of}; }
KW_DEVICE Multiple operator*(Coordinate of, real by) { return {by, of}; }
KW_DEVICE real operator*(Coordinate a, Coordinate b) { return real(a) * real(b); }

}  // namespace kw
