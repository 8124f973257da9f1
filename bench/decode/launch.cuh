// The host's side of kernel.cu, in C: what decode.py calls. A plan is made once and launched often; lengths and the page
// table are read by the device at each launch. Functions return null, or what is wrong.
//
// L2 promotion is 128 B: with 256 B long caches are read 7 % slower (README.md). For D 64 the likely reason is that a row
// of 128 bytes then brings the neighbouring head's as well.
#include <new>

struct Problem {                                     // decode.py has it field by field
    const void *q, *k, *v, *lengths, *pages, *slopes;
    void *o, *lse, *workspace;                       // workspace: zeros, of decode_workspace bytes; one launch uses it at a time
    long blocks, rows;                               // of the cache [blocks, rows, key_heads, head_dim]; rows: of a sequence or a page
    int batch, key_heads, group, head_dim, table_width, score, window, groups, overlap;
    float scale, cap;
};
struct Kernel { void (*run)(Args); int shared; };
struct Plan { Args args; Kernel kernel; dim3 grid; int overlap; };

template <class C> Kernel kernel_of() {
    static_assert(sizeof(Shared<C>) <= 227 * 1024, "a CTA's shared memory");
    return {decode<C>, (int)sizeof(Shared<C>)};
}
template <int D, int ROWS, bool PAGED> Kernel kernel_of(int score) {
    return score == CAP     ? kernel_of<Config<D, ROWS, PAGED, CAP>>()
           : score == ALIBI ? kernel_of<Config<D, ROWS, PAGED, ALIBI>>()
           : score == WINDOW ? kernel_of<Config<D, ROWS, PAGED, WINDOW>>()
                             : kernel_of<Config<D, ROWS, PAGED, PLAIN>>();
}
template <int D, int ROWS> Kernel kernel_of(bool paged, int score) {
    return paged ? kernel_of<D, ROWS, true>(score) : kernel_of<D, ROWS, false>(score);
}
// D 64 has no kernel of 4 rows: its result is small as it is.
static int rows_of(const Problem& p) { return p.head_dim == 128 && p.group <= 4 ? 4 : 8; }
static Kernel kernel_of(const Problem& p) {
    const bool paged = p.pages != nullptr;
    if (p.head_dim == 64) return kernel_of<64, 8>(paged, p.score);
    return rows_of(p) == 4 ? kernel_of<128, 4>(paged, p.score) : kernel_of<128, 8>(paged, p.score);
}

static char message[256];
template <class... T> static const char* wrong(const char* format, T... values) {
    snprintf(message, sizeof message, format, values...);
    return message;
}
static const char* wrong_with(const Problem& p) {
    if (p.head_dim != 64 && p.head_dim != 128) return wrong("head_dim is %d, and there are kernels for 64 and 128", p.head_dim);
    if (p.batch < 1 || p.key_heads < 1) return wrong("batch %d and key_heads %d must be positive", p.batch, p.key_heads);
    if (p.group < 1 || p.group > 8) return wrong("%d query heads a key head, and the kernel has 1 to 8", p.group);
    if (p.pages && (p.rows < SMALLEST_PAGE || p.rows & (p.rows - 1)))
        return wrong("pages of %ld keys, and they must be a power of two of at least %d", p.rows, SMALLEST_PAGE);
    if (!p.pages && p.blocks < p.batch) return wrong("a cache of %ld sequences for a batch of %d", p.blocks, p.batch);
    if (p.score < PLAIN || p.score > WINDOW) return wrong("there is no score %d", p.score);
    if (p.score == CAP && !(p.cap > 0)) return wrong("a cap of %g must be positive", p.cap);
    if (p.score == WINDOW && p.window < 1) return wrong("a window of %d must have a key", p.window);
    if (p.score == ALIBI && !p.slopes) return wrong("ALiBi's slopes are missing");
    return nullptr;
}

// Columns are in panels of 64, 128 bytes, as the swizzle has them; a box is all panels of its rows.
static const char* make_map(CUtensorMap* map, const void* data, const Problem& p, int box) {
    static PFN_cuTensorMapEncodeTiled_v12000 encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (!encode && cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&encode, 12000, cudaEnableDefault, &found))
        return wrong("the driver has no cuTensorMapEncodeTiled");
    const cuuint64_t D = p.head_dim, row = 2 * D * p.key_heads;
    const cuuint64_t sizes[5] = {64, (cuuint64_t)p.rows, D / 64, (cuuint64_t)p.key_heads, (cuuint64_t)p.blocks};
    const cuuint64_t strides[4] = {row, 128, 2 * D, row * p.rows};
    const cuuint32_t boxes[5] = {64, (cuuint32_t)box, (cuuint32_t)D / 64, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
    const CUresult result = encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 5, (void*)data, sizes, strides, boxes, steps,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result ? wrong("cuTensorMapEncodeTiled returns %d for a cache at %p", (int)result, data) : nullptr;
}

static int groups_of(const Problem& p) {             // parts of the line: one CTA an SM
    int device = 0, sms = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    return p.groups > 0 ? p.groups : sms > p.key_heads ? sms / p.key_heads : 1;
}
static long round_up(long bytes) { return (bytes + 127) / 128 * 128; }
static long arrival_bytes(const Problem& p) { return round_up(4l * groups_of(p) * p.key_heads); }
static long slots(const Problem& p) { return 2l * groups_of(p) * p.key_heads * rows_of(p); }

extern "C" long decode_workspace(const Problem* p) { return arrival_bytes(*p) + slots(*p) * (4 * p->head_dim + 8); }

extern "C" const char* decode_plan(const Problem* problem, Plan** to) {
    const Problem& p = *problem;
    if (const char* error = wrong_with(p)) return error;
    Plan* plan = new (std::align_val_t(64)) Plan();
    Args& a = plan->args;
    a.q = (const bf16*)p.q, a.o = (bf16*)p.o, a.lse = (float*)p.lse;
    a.lengths = (const int*)p.lengths, a.pages = (const int*)p.pages, a.slopes = (const float*)p.slopes;
    a.arrivals = (unsigned*)p.workspace;
    a.part = (float*)((char*)p.workspace + arrival_bytes(p));
    a.part_state = (float2*)(a.part + slots(p) * p.head_dim);
    a.batch = p.batch, a.key_heads = p.key_heads, a.group = p.group, a.table_width = p.table_width, a.window = p.window;
    while (p.pages && (1l << a.page_bits) < p.rows) ++a.page_bits;
    a.scale_log2 = p.scale * LOG2E, a.cap_log2 = p.cap * LOG2E, a.to_cap = p.cap > 0 ? p.scale / p.cap : 0;
    plan->kernel = kernel_of(p), plan->grid = dim3(p.key_heads, groups_of(p)), plan->overlap = p.overlap;
    const int box = p.pages ? SMALLEST_PAGE : TILE_BYTES / (2 * p.head_dim);
    const char* error = make_map(&a.k, p.k, p, box);
    if (!error) error = make_map(&a.v, p.v, p, box);
    const cudaError_t failed = error ? cudaSuccess
        : cudaFuncSetAttribute((const void*)plan->kernel.run, cudaFuncAttributeMaxDynamicSharedMemorySize, plan->kernel.shared);
    if (failed) error = wrong("%d bytes of shared memory: %s", plan->kernel.shared, cudaGetErrorString(failed));
    *to = plan;
    return error;
}

// overlap: may begin while the launch before it ends (programmatic dependent launch).
extern "C" const char* decode_launch(Plan* plan, void* stream) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = plan->grid, config.blockDim = dim3(THREADS), config.dynamicSmemBytes = plan->kernel.shared;
    config.stream = (cudaStream_t)stream, config.attrs = &attribute, config.numAttrs = plan->overlap ? 1 : 0;
    void* args[] = {&plan->args};
    const cudaError_t failed = cudaLaunchKernelExC(&config, (const void*)plan->kernel.run, args);
    return failed ? cudaGetErrorString(failed) : nullptr;
}

extern "C" void decode_free(Plan* plan) { operator delete(plan, std::align_val_t(64)); }
