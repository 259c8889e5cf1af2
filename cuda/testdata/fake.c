// A stand-in for libcuda: the prototypes and structs of the driver API, host memory for device memory, and a record of what launches and encodings were handed.
// -DNO_GPU: cuInit finds no device. -DOLD: a driver without cuLaunchKernelEx. -DANCIENT: a driver of CUDA 11.4.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction, *CUgraph, *CUgraphExec, *CUlinkState;
typedef union { char pad[64]; struct { unsigned x, y, z; } clusterDim; int programmaticStreamSerializationAllowed; } CUlaunchAttributeValue;
typedef struct { unsigned id; char pad[8 - sizeof(unsigned)]; CUlaunchAttributeValue value; } CUlaunchAttribute;
typedef struct { unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes; CUstream hStream; CUlaunchAttribute *attrs; unsigned numAttrs; } CUlaunchConfig;
typedef struct { _Alignas(64) uint64_t opaque[16]; } CUtensorMap;

char fake_log[1 << 16]; // the last launch or encoding, as text
static int capturing, captured, early, replays;

CUresult fake_read(char *out, unsigned n) { snprintf(out, n, "%s", fake_log); return 0; }
#ifdef NO_GPU
CUresult cuInit(unsigned flags) { return 100; }
#else
CUresult cuInit(unsigned flags) { return flags ? 1 : 0; }
#endif
#ifdef ANCIENT
CUresult cuDriverGetVersion(int *v) { *v = 11040; return 0; }
#else
CUresult cuDriverGetVersion(int *v) { *v = 13000; return 0; }
#endif
CUresult cuGetErrorName(CUresult e, const char **s) { *s = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : e == 1 ? "CUDA_ERROR_INVALID_VALUE" : e == 218 ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_OTHER"; return 0; }
CUresult cuGetErrorString(CUresult e, const char **s) { *s = e == 2 ? "out of memory" : "other"; return 0; }
CUresult cuDeviceGetCount(int *n) { *n = 2; return 0; }
CUresult cuDeviceGet(CUdevice *d, int i) { *d = i; return 0; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) { snprintf(s, n, "Fake %d", d); return 0; }
CUresult cuDeviceGetPCIBusId(char *s, int n, CUdevice d) { snprintf(s, n, "0000:0%d:00.0", d); return 0; }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { *n = 141ull << 30; return 0; }
CUresult cuDeviceGetAttribute(int *v, int id, CUdevice d) { *v = id == 97 ? 232448 : id * 1000 + d; return 0; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { *c = (void *)(uintptr_t)(0xc0 + d); return 0; }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) { return 0; }
CUresult cuCtxSetCurrent(CUcontext c) { snprintf(fake_log, sizeof fake_log, "current %p", c); return 0; }
CUresult cuCtxSynchronize(void) { return 0; }
CUresult cuMemGetInfo_v2(size_t *f, size_t *t) { *f = 1000; *t = 2000; return 0; }
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) { if (n > 1ull << 32) return 2; *p = (CUdeviceptr)(uintptr_t)aligned_alloc(1024, (n + 1023) & ~1023ull); return 0; }
CUresult cuMemFree_v2(CUdeviceptr p) { free((void *)(uintptr_t)p); return 0; }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) { if (flags != 3) return 1; *p = malloc(n); return 0; }
CUresult cuMemFreeHost(void *p) { free(p); return 0; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned flags) { *d = (CUdeviceptr)(uintptr_t)p; return 0; }
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) { memcpy((void *)(uintptr_t)d, s, n); return 0; }
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) { memcpy(d, (void *)(uintptr_t)s, n); return 0; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream st) { return st ? cuMemcpyHtoD_v2(d, s, n) : 1; }
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream st) { return st ? cuMemcpyDtoH_v2(d, s, n) : 1; }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st) { memcpy((void *)(uintptr_t)d, (void *)(uintptr_t)s, n); return st ? 0 : 1; }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char b, size_t n, CUstream st) { memset((void *)(uintptr_t)d, b, n); return st ? 0 : 1; }
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned w, size_t n, CUstream st) { for (size_t i = 0; i < n; i++) ((unsigned *)(uintptr_t)d)[i] = w; return st ? 0 : 1; }
CUresult cuStreamCreate(CUstream *s, unsigned flags) { if (flags != 1) return 1; *s = (void *)0x57; return 0; }
CUresult cuStreamDestroy_v2(CUstream s) { return 0; }
CUresult cuStreamSynchronize(CUstream s) { return 0; }
static int busy;
CUresult cuStreamQuery(CUstream s) { return busy++ % 2 ? 0 : 600; }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) { return 0; }
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr p, uint32_t v, unsigned flags) { snprintf(fake_log, sizeof fake_log, "wait %u", v); return flags ? 1 : 0; }
CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr p, uint32_t v, unsigned flags) { *(uint32_t *)(uintptr_t)p = v; return 0; }
CUresult cuEventCreate(CUevent *e, unsigned flags) { *e = calloc(1, 8); return 0; }
CUresult cuEventDestroy_v2(CUevent e) { free(e); return 0; }
static double now;
CUresult cuEventRecord(CUevent e, CUstream s) { *(double *)e = now += 1.5; return 0; }
CUresult cuEventSynchronize(CUevent e) { return 0; }
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { *ms = *(double *)b - *(double *)a; return 0; }
struct link { int *names; void **values; unsigned n; char *text; };
static void *option(struct link *l, int name) { for (unsigned i = 0; i < l->n; i++) if (l->names[i] == name) return l->values[i]; return 0; }
CUresult cuLinkCreate_v2(unsigned n, int *names, void **values, CUlinkState *s) { struct link *l = calloc(1, sizeof *l); l->names = names; l->values = values; l->n = n; *s = l; return 0; }
CUresult cuLinkAddData_v2(CUlinkState s, int type, void *data, size_t n, const char *name, unsigned opts, int *o, void **v) {
	struct link *l = s;
	if (type != 1 || ((char *)data)[n - 1] || strlen(data) != n - 1 || opts) return 1;
	if (strstr(data, "bad")) { snprintf(option(l, 5), (size_t)option(l, 6), "line 1: bad thing in %s", name); return 218; }
	l->text = strdup(data); return 0;
}
CUresult cuLinkComplete(CUlinkState s, void **out, size_t *n) { struct link *l = s; *out = l->text; *n = strlen(l->text); snprintf(option(l, 3), (size_t)option(l, 4), "Used 7 registers"); return 0; }
CUresult cuLinkDestroy(CUlinkState s) { free(((struct link *)s)->text); free(s); return 0; }
CUresult cuModuleLoadData(CUmodule *m, const void *image) { *m = (void *)image; return 0; }
CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *names, void **values) {
	struct link l = {names, values, n};
	if (strstr(image, "bad")) { snprintf(option(&l, 5), (size_t)option(&l, 6), "line 2: bad thing"); return 218; }
	snprintf(option(&l, 3), (size_t)option(&l, 4), "Used 168 registers");
	*m = strdup(image); return 0;
}
CUresult cuModuleUnload(CUmodule m) { return 0; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) { if (!strcmp(name, "missing")) return 500; *f = strdup(name); return 0; }
CUresult cuFuncGetAttribute(int *v, int a, CUfunction f) { *v = a == 0 ? 384 : a * 10; return 0; }
CUresult cuFuncSetAttribute(CUfunction f, int a, int v) { snprintf(fake_log, sizeof fake_log, "%s attribute %d = %d", (char *)f, a, v); return a == 8 || a == 14 ? 0 : 1; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared) { *n = threads > 1024 ? 0 : shared > 100000 ? 1 : 2; return 0; }
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *c) { *n = c->gridDimX / 2; return 0; }
int __attribute__((weak)) fake_kernel(const char *name, void **params); // a test may give kernels a meaning
#ifndef OLD
// Kernel "k" takes (u32, u64, f32, map).
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **extra) {
	int n = snprintf(fake_log, sizeof fake_log, "%s grid %u %u %u block %u %u %u shared %u stream %p", (char *)f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream);
	for (unsigned i = 0; i < c->numAttrs; i++) {
		CUlaunchAttribute *a = &c->attrs[i];
		if (a->id == 4) n += snprintf(fake_log + n, sizeof fake_log - n, " cluster %u %u %u", a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
		if (a->id == 6 && capturing && captured) early++;
		if (a->id == 6) n += snprintf(fake_log + n, sizeof fake_log - n, " pdl %d", a->value.programmaticStreamSerializationAllowed);
	}
	if (p && !fake_kernel) snprintf(fake_log + n, sizeof fake_log - n, " args %u %llu %g %llx", *(uint32_t *)p[0], *(unsigned long long *)p[1], *(float *)p[2], *(unsigned long long *)p[3]);
	captured += capturing;
	if (fake_kernel) return fake_kernel(f, p);
	return extra ? 1 : !strcmp(f, "fails") ? 719 : 0;
}
#endif
CUresult cuTensorMapEncodeTiled(CUtensorMap *m, int type, uint32_t rank, void *addr, const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int l2, int oob) {
	if ((uintptr_t)m % 64) return 1;
	memset(m, 0xab, sizeof *m);
	if (fake_kernel) { m->opaque[0] = (uint64_t)addr; m->opaque[1] = dims[0]; m->opaque[2] = dims[1]; }
	snprintf(fake_log, sizeof fake_log, "type %d rank %u addr %p dims %llu %llu stride %llu box %u %u steps %u %u interleave %d swizzle %d l2 %d oob %d", type, rank, addr, (unsigned long long)dims[0], (unsigned long long)dims[1],
		(unsigned long long)strides[0], box[0], box[1], steps[0], steps[1], interleave, swizzle, l2, oob);
	return 0;
}
CUresult cuTensorMapReplaceAddress(CUtensorMap *m, void *addr) { if ((uintptr_t)m % 64 || (uintptr_t)addr % 16) return 1; m->opaque[0] = (uint64_t)addr; return 0; }
CUresult cuStreamBeginCapture_v2(CUstream s, int mode) { capturing = 1; captured = early = 0; return mode == 2 ? 0 : 1; }
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) { capturing = 0; *g = (void *)(uintptr_t)(captured + 1); return 0; }
CUresult cuGraphGetNodes(CUgraph g, void **nodes, size_t *n) { *n = (uintptr_t)g - 1; return 0; }
CUresult cuGraphGetEdges_v2(CUgraph g, void **from, void **to, unsigned char (*data)[8], size_t *n) {
	size_t edges = captured ? captured - 1 : 0; // a chain, of which the last so many are programmatic
	if (data) { if (*n != edges) return 1; memset(data, 0, 8 * edges); for (int i = 0; i < early; i++) data[edges - 1 - i][0] = data[edges - 1 - i][2] = 1; }
	*n = edges;
	return 0;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long flags) { *e = (void *)0xe; return flags ? 1 : 0; }
CUresult cuGraphUpload(CUgraphExec e, CUstream s) { return 0; }
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) { snprintf(fake_log, sizeof fake_log, "replay %d of %p on %p", ++replays, e, s); return 0; }
CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, void *info) { memset(info, 0, 24); return 0; }
CUresult cuGraphExecDestroy(CUgraphExec e) { return 0; }
CUresult cuGraphDestroy(CUgraph g) { return 0; }
