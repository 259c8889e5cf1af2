// A stand-in for libcublas and libcublasLt: prototypes of the real functions, and a record of what they were handed.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// C [n, m] = B·Aᵀ in row-major terms; a test may give the calls a meaning.
int __attribute__((weak)) fake_gemm(int m, int n, int k, const void *A, const void *B, void *C);

char fake_log[1 << 14];
int fake_read(char *out, unsigned n) { snprintf(out, n, "%s", fake_log); return 0; }
int cublasCreate_v2(void **h) { *h = (void *)0xb1a5; return 0; }
int cublasSetStream_v2(void *h, void *s) { return 0; }
int cublasSetWorkspace_v2(void *h, void *p, size_t n) { return n == 32 << 20 ? 0 : 7; }
int cublasGetVersion_v2(void *h, int *v) { *v = 130101; return 0; }
int cublasGemmEx(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *A, int At, int lda, const void *B, int Bt, int ldb, const void *beta, void *C, int Ct, int ldc, int compute, int algo) {
	snprintf(fake_log, sizeof fake_log, "%p %d%d %d %d %d alpha %g A %p %d %d B %p %d %d beta %g C %p %d %d compute %d algo %d", h, ta, tb, m, n, k, *(float *)alpha, A, At, lda, B, Bt, ldb, *(float *)beta, C, Ct, ldc, compute, algo);
	if (fake_gemm) return fake_gemm(m, n, k, A, B, C);
	return m == 13 ? 15 : 0;
}
int cublasLtCreate(void **h) { *h = (void *)0x17; return 0; }
static int ops[2] = {-1, -1}, layouts, workspace;
int cublasLtMatmulDescCreate(void **d, int compute, int scale) { *d = (void *)0xd0; return compute == 68 && scale == 0 ? 0 : 7; }
int cublasLtMatmulDescSetAttribute(void *d, int a, const void *p, size_t n) { if (a < 3 || a > 4 || n != 4) return 7; ops[a - 3] = *(int *)p; return 0; }
int cublasLtMatrixLayoutCreate(void **l, int type, uint64_t rows, uint64_t cols, int64_t ld) { *l = (void *)(uintptr_t)(rows * 1000000 + cols * 1000 + ld); layouts++; return type == 14 ? 0 : 7; }
int cublasLtMatrixLayoutDestroy(void *l) { layouts--; return 0; }
int cublasLtMatmulDescDestroy(void *d) { return layouts; }
int cublasLtMatmulPreferenceCreate(void **p) { *p = (void *)0xf0; return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *p, int a, const void *v, size_t n) { workspace = a == 1 && n == 8 && *(uint64_t *)v == 32 << 20; return 0; }
typedef struct { uint64_t data[8]; } Algo;
typedef struct { Algo algo; size_t workspace; int state; float waves; int reserved[4]; } Result;
int cublasLtMatmulAlgoGetHeuristic(void *h, void *d, void *a, void *b, void *c, void *e, void *pref, int want, Result *r, int *got) {
	if (ops[0] < 0 || ops[1] < 0 || !workspace || want < 2 || c != e) return 7;
	for (int i = 0; i < 2; i++) r[i].algo.data[0] = 0xa0 + i;
	*got = 2;
	return 0;
}
int cublasLtMatmul(void *h, void *d, const void *alpha, const void *A, void *a, const void *B, void *b, const void *beta, const void *C, void *c, void *D, void *e, const Algo *algo, void *ws, size_t n, void *stream) {
	snprintf(fake_log, sizeof fake_log, "%p %p %d%d alpha %g A %p %zu B %p %zu beta %g C %p %zu D %p %zu algo %llx ws %p %zu stream %p", h, d, ops[0], ops[1], *(float *)alpha, A, (size_t)a, B, (size_t)b, *(float *)beta, C, (size_t)c, D, (size_t)e,
		(unsigned long long)algo->data[0], ws, n, stream);
	if (fake_gemm) return fake_gemm((size_t)a / 1000 % 1000, (size_t)b / 1000 % 1000, (size_t)a / 1000000, A, B, D);
	return 0;
}
