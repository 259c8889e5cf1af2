// A stand-in for libcupti: it takes callbacks, asks for a buffer on the thread that calls, writes one record of each kind in the layouts of cupti_activity.h (CUDA 13.0), and hands the
// buffer back on a thread of its own. -DOLD: a version that is too old. -DCUT: the last record is cut off.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Request)(uint8_t **, size_t *, size_t *);
typedef void (*Complete)(void *, uint32_t, uint8_t *, size_t, size_t);
static Request request;
static Complete complete;
static unsigned enabled;
static int threads;

int cuptiGetVersion(uint32_t *v) {
#ifdef OLD
	*v = 17;
#else
	*v = 130001;
#endif
	return 0;
}
int cuptiActivityRegisterCallbacks(Request r, Complete c) { request = r; complete = c; return 0; }
int cuptiSetThreadIdType(int t) { threads = t; return t == 1 ? 0 : 1; }
int cuptiActivityEnable(int kind) { if (kind > 60) return 1; enabled |= 1u << (kind % 32); return request ? 0 : 3; }
int cuptiActivityDisable(int kind) { enabled &= ~(1u << (kind % 32)); return 0; }
int cuptiActivityGetNumDroppedRecords(void *c, uint32_t s, size_t *n) { *n = 7; return 0; }
int cuptiGetResultString(int code, const char **s) { *s = "CUPTI_ERROR_INVALID_PARAMETER"; return 0; }
int cuptiGetCallbackName(int domain, uint32_t id, const char **s) {
	if (domain == 1 && id == 652) *s = "cuLaunchKernelEx";
	else if (domain == 2 && id == 211) *s = "cudaLaunchKernel";
	else return 1;
	return 0;
}

static size_t size_of(uint32_t kind) {
	switch (kind) {
	case 1: return 96;
	case 2: return 88;
	case 4: case 5: return 40;
	case 10: return 216;
	case 17: case 38: return 56;
	}
	return 64;
}
static uint8_t *at;
static void w8(int o, uint8_t v) { at[o] = v; }
static void w16(int o, uint16_t v) { memcpy(at + o, &v, 2); }
static void w32(int o, uint32_t v) { memcpy(at + o, &v, 4); }
static void w64(int o, uint64_t v) { memcpy(at + o, &v, 8); }
static void begin(uint32_t kind) { memset(at, 0, size_of(kind)); w32(0, kind); }
static void end(void) { uint32_t k; memcpy(&k, at, 4); at += size_of(k); }
static const uint64_t now = 1700000000000000000ull;

static void *fill(void *p) {
	uint8_t *buffer = p;
	at = buffer;
	begin(4); w32(4, 652); w64(8, now + 100); w64(16, now + 300); w32(28, 1234); w32(32, 77); end();
	begin(10); w16(6, 168); w64(16, now + 500); w64(24, now + 1500); w32(48, 13); w32(52, 132); w32(56, 1); w32(60, 1); w32(64, 384); w32(68, 1); w32(72, 1); w32(76, 8); w32(80, 1000); w32(92, 77);
	w64(104, (uint64_t)(uintptr_t)"gemm"); w64(144, 3ull << 32 | 2); end();
	begin(1); w8(4, 1); w64(8, 4096); w64(16, now + 2000); w64(24, now + 2100); w32(40, 13); w32(44, 78); end();
	begin(2); w64(8, 64); w64(16, now + 2200); w64(24, now + 2250); w32(40, 14); w32(44, 79); end();
	begin(5); w32(4, 211); w64(8, now); w64(16, now + 10); w32(28, 1235); w32(32, 80); w32(36, 9); end();
	begin(5); w32(4, 5000); w64(8, now); w64(16, now + 10); w32(28, 1235); w32(32, 81); end();
	begin(38); w32(4, 2); w64(8, now + 1); w64(16, now + 2); w32(24, 82); w32(32, 14); end();
	begin(38); w32(4, 3); w64(8, now + 1); w64(16, now + 2); end();   // the host waits: left to the driver call
	begin(17); w32(4, 1 << 16); w64(24, now + 5); w64(32, now + 25); end();
	begin(10); w64(16, now + 9); w64(24, now); end();                 // ends before it begins
	begin(33); end();                                                 // a kind nobody asked for
	size_t n = at - buffer;
#ifdef CUT
	n -= 30;
#endif
	complete(0, 0, buffer, 1 << 20, n);
	return 0;
}
int cuptiActivityFlushAll(uint32_t forced) {
	if (!forced || !request || threads != 1) return 1;
	uint8_t *buffer; size_t size, most;
	request(&buffer, &size, &most);
	if (size != 1 << 20 || most || (uintptr_t)buffer % 8) return 1;
	pthread_t t;
	pthread_create(&t, 0, fill, buffer);
	pthread_join(t, 0);
	return 0;
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
	uint8_t *next = buffer;
	if (*record) { uint32_t k; memcpy(&k, *record, 4); next = *record + size_of(k); }
	if (next >= buffer + valid) return 12;
	*record = next;
	return 0;
}
