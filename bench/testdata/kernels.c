// What the kernels of the bench do, on the CPU: linked to the stand-ins of the driver and of cuBLAS. -DWRONG: our kernel drops one k-block.
#include <math.h>
#include <stdint.h>
#include <string.h>

static float up(uint16_t b) { uint32_t u = (uint32_t)b << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t down(float f) { uint32_t u; memcpy(&u, &f, 4); return (u + 0x7fff + (u >> 16 & 1)) >> 16; }

// C [m, n] = A [m, k]·B [n, k]ᵀ from k0 on; rows of equal inputs are not assumed.
static int product(int m, int n, int k, int k0, const uint16_t *A, const uint16_t *B, uint16_t *C) {
	static float a[1024], b[264 * 264];
	for (int i = 0; i < n * k; i++) b[i] = up(B[i]);
	for (int i = 0; i < m; i++) {
		for (int x = 0; x < k; x++) a[x] = up(A[i * k + x]);
		for (int j = 0; j < n; j++) {
			float s[8] = {0};
			for (int x = k0; x < k; x += 8) for (int y = 0; y < 8; y++) s[y] += a[x + y] * b[j * k + x + y];
			C[i * n + j] = down(s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]);
		}
	}
	return 0;
}

int fake_gemm(int m, int n, int k, const void *A, const void *B, void *C) { return product(n, m, k, 0, B, A, C); }

static double uniform(uint64_t *s) { *s = *s * 6364136223846793005ull + 1442695040888963407ull; return ((*s >> 40) + 1) * 0x1p-24; }

int fake_kernel(const char *name, void **p) {
	if (!strcmp(name, "fill_normal")) {
		uint16_t *out = *(uint16_t **)p[0];
		uint64_t words = *(uint64_t *)p[1], seed = *(uint64_t *)p[2];
		for (uint64_t i = 0; i < 2 * words; i++) { double r = sqrt(-2 * log(uniform(&seed))); out[i] = down(r * cos(6.283185307 * uniform(&seed))); }
		return 0;
	}
	if (!strcmp(name, "delay")) return *(uint64_t *)p[0] > 1000 ? 0 : 1;
	if (!strcmp(name, "empty")) return 0;
	if (!strcmp(name, "zero")) { memset(*(void **)p[0], 0, *(uint32_t *)p[1] * 16ull); return 0; }
	if (!strcmp(name, "differ")) {
		uint32_t *x = *(void **)p[0], *y = *(void **)p[1], *count = *(void **)p[2];
		for (uint32_t i = 0; i < *(uint32_t *)p[3]; i++) *count += x[i] != y[i];
		return 0;
	}
	int k0 = 0;
#ifdef WRONG
	k0 = 64;
#endif
	if (!strcmp(name, "gemm")) { // the built kernel: maps of A, B and D, as the driver's stand-in writes them
		uint64_t *a = p[0], *b = p[1], *d = p[2];
		return product(d[2], d[1], a[1], k0, (void *)a[0], (void *)b[0], (void *)d[0]);
	}
	return product(*(uint32_t *)p[3], *(uint32_t *)p[4], *(uint32_t *)p[5], k0, *(void **)p[0], *(void **)p[1], *(void **)p[2]);
}
