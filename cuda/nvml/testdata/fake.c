// A stand-in for libnvidia-ml: 500 W, an energy counter that steps every 20 ms, a clock of 1980 MHz.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { snprintf(s, n, "580.1"); return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **d) { *d = (void *)0x9; return strcmp(bus, "0000:01:00.0") ? 6 : 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 499000; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw) { *mw = 700000; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	unsigned long long ms = t.tv_sec * 1000ull + t.tv_nsec / 1000000;
	*mj = ms / 20 * 20 * 500;
	return d == (void *)0x9 ? 0 : 2;
}
int nvmlDeviceGetClockInfo(void *d, int type, unsigned *mhz) { *mhz = type == 1 ? 1980 : type == 2 ? 3201 : 0; return 0; }
int nvmlDeviceGetMaxClockInfo(void *d, int type, unsigned *mhz) { *mhz = 2000 + type; return 0; }
int nvmlDeviceGetCurrentClocksEventReasons(void *d, unsigned long long *r) { *r = 4; return 0; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *c) { *c = 41 + sensor; return 0; }
