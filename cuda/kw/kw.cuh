// The device vocabulary: what a kernel includes. Nouns in tile/, verbs in ops/ (each function is one
// statement of the tile language), single instructions in ptx/. Nothing but the CUDA toolkit's
// built-in functions is used, so a kernel compiles with NVRTC in about a second.
#pragma once
#include "ops/async_copies.cuh"
#include "ops/barriers.cuh"
#include "ops/copies.cuh"
#include "ops/lines.cuh"
#include "ops/lists.cuh"
#include "ops/maps.cuh"
#include "ops/parts.cuh"
#include "ops/queue.cuh"
#include "ops/row_maps.cuh"
#ifndef KW_EXACT
#include "ops/sums.cuh"
#endif
#include "ops/turns.cuh"
#include "ops/warpgroups.cuh"
#ifdef KW_EXACT
#include "exact/products.cuh"
#include "exact/rows.cuh"
#else
#include "ops/wgmma.cuh"
#include "ops/mma.cuh"
#include "ops/rows.cuh"
#endif
#include "ops/totals.cuh"
#include "ops/combine.cuh"
