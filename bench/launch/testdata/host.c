// The launches of host.go from C: a kernel that does nothing, with a GEMM's parameters. Each line on stdin asks for one batch a way; the answer is a line of ns a launch,
// for cuLaunchKernelEx without attributes and with the PDL attribute. Arguments: the driver's library, a file of PTX whose kernel is named "empty", launches a batch.
//
//	cc -O2 -o host host.c -ldl
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct { unsigned id, pad; unsigned value[16]; } Attribute;
typedef struct { unsigned grid[3], block[3], shared; void *stream; Attribute *attributes; unsigned count; } Config;

static void *library;
static void *find(const char *name) {
	void *f = dlsym(library, name);
	if (!f) { fprintf(stderr, "host: the driver has no %s\n", name); exit(1); }
	return f;
}
static void must(const char *what, int code) {
	if (code) { fprintf(stderr, "host: %s: %d\n", what, code); exit(1); }
}
static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
	if (argc != 4) { fprintf(stderr, "usage: host LIBRARY PTX LAUNCHES\n"); return 2; }
	library = dlopen(argv[1], RTLD_NOW);
	if (!library) { fprintf(stderr, "host: %s\n", dlerror()); return 1; }
	static char text[1 << 16];
	FILE *f = fopen(argv[2], "r");
	if (!f || fread(text, 1, sizeof text - 1, f) == 0) { fprintf(stderr, "host: cannot read %s\n", argv[2]); return 1; }
	int launches = atoi(argv[3]), device;
	void *context, *stream, *module, *function;
	must("cuInit", ((int (*)(unsigned))find("cuInit"))(0));
	must("cuDeviceGet", ((int (*)(int *, int))find("cuDeviceGet"))(&device, 0));
	must("cuDevicePrimaryCtxRetain", ((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context, device));
	must("cuCtxSetCurrent", ((int (*)(void *))find("cuCtxSetCurrent"))(context));
	must("cuStreamCreate", ((int (*)(void **, unsigned))find("cuStreamCreate"))(&stream, 1));
	must("cuModuleLoadData", ((int (*)(void **, const void *))find("cuModuleLoadData"))(&module, text));
	must("cuModuleGetFunction", ((int (*)(void **, void *, const char *))find("cuModuleGetFunction"))(&function, module, "empty"));
	int (*launch)(const Config *, void *, void **, void **) = (int (*)(const Config *, void *, void **, void **))find("cuLaunchKernelEx");
	int (*wait)(void *) = (int (*)(void *))find("cuStreamSynchronize");
	static _Alignas(64) char maps[3][128];
	unsigned scalars[3] = {1, 2, 3};
	void *params[6] = {maps[0], maps[1], maps[2], &scalars[0], &scalars[1], &scalars[2]};
	Attribute pdl = {6, 0, {1}};
	Config plain = {{1, 1, 1}, {32, 1, 1}, 0, stream, 0, 0}, early = plain;
	early.attributes = &pdl;
	early.count = 1;
	const Config *ways[2] = {&plain, &early};
	char line[16];
	while (fgets(line, sizeof line, stdin)) {
		for (int w = 0; w < 2; w++) {
			double begin = now();
			for (int i = 0; i < launches; i++) must("cuLaunchKernelEx", launch(ways[w], function, params, 0));
			printf("%.1f%c", (now() - begin) / launches, w ? '\n' : ' ');
			must("cuStreamSynchronize", wait(stream));
		}
		fflush(stdout);
	}
	return 0;
}
