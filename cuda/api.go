package cuda

import (
	"fmt"

	"heddle/internal/dl"
)

// api is the part of the driver that we call, found once at Open.
type api struct {
	init, driverGetVersion, getErrorName, getErrorString                              dl.Func
	deviceGetCount, deviceGet, deviceGetName, deviceGetAttribute                      dl.Func
	deviceTotalMem, deviceGetPCIBusID, primaryCtxRetain, primaryCtxRelease            dl.Func
	ctxSetCurrent, ctxSynchronize                                                     dl.Func
	memGetInfo, memAlloc, memFree, memHostAlloc, memFreeHost, memHostGetDevicePointer dl.Func
	memcpyHtoD, memcpyDtoH, memcpyHtoDAsync, memcpyDtoHAsync, memcpyDtoDAsync         dl.Func
	memsetD8Async, memsetD32Async                                                     dl.Func
	streamCreate, streamDestroy, streamSynchronize, streamQuery, streamWaitEvent      dl.Func
	streamWaitValue32, streamWriteValue32                                             dl.Func
	eventCreate, eventDestroy, eventRecord, eventSynchronize, eventElapsedTime        dl.Func
	linkCreate, linkAddData, linkComplete, linkDestroy                                dl.Func
	moduleLoadData, moduleLoadDataEx, moduleUnload, moduleGetFunction                 dl.Func
	funcGetAttribute, funcSetAttribute, occupancyMaxActiveClusters, occupancyBlocks   dl.Func
	launchKernelEx, tensorMapEncodeTiled, tensorMapReplaceAddress                     dl.Func
	streamBeginCapture, streamEndCapture, graphInstantiate, graphUpload, graphLaunch  dl.Func
	graphExecUpdate, graphExecDestroy, graphDestroy, graphGetNodes                    dl.Func
	graphGetEdges                                                                     dl.Func // 0 before CUDA 12.3
}

type symbol struct {
	name string
	f    *dl.Func
}

// symbols pairs each field with the driver's name. The suffixes _v2 are the interfaces with 64-bit sizes that cuda.h maps the plain names to.
func (a *api) symbols() []symbol {
	return []symbol{
		{"cuInit", &a.init}, {"cuDriverGetVersion", &a.driverGetVersion},
		{"cuGetErrorName", &a.getErrorName}, {"cuGetErrorString", &a.getErrorString},
		{"cuDeviceGetCount", &a.deviceGetCount}, {"cuDeviceGet", &a.deviceGet},
		{"cuDeviceGetName", &a.deviceGetName}, {"cuDeviceGetAttribute", &a.deviceGetAttribute},
		{"cuDeviceTotalMem_v2", &a.deviceTotalMem}, {"cuDeviceGetPCIBusId", &a.deviceGetPCIBusID},
		{"cuDevicePrimaryCtxRetain", &a.primaryCtxRetain}, {"cuDevicePrimaryCtxRelease_v2", &a.primaryCtxRelease},
		{"cuCtxSetCurrent", &a.ctxSetCurrent}, {"cuCtxSynchronize", &a.ctxSynchronize},
		{"cuMemGetInfo_v2", &a.memGetInfo}, {"cuMemAlloc_v2", &a.memAlloc}, {"cuMemFree_v2", &a.memFree},
		{"cuMemHostAlloc", &a.memHostAlloc}, {"cuMemFreeHost", &a.memFreeHost},
		{"cuMemHostGetDevicePointer_v2", &a.memHostGetDevicePointer},
		{"cuMemcpyHtoD_v2", &a.memcpyHtoD}, {"cuMemcpyDtoH_v2", &a.memcpyDtoH},
		{"cuMemcpyHtoDAsync_v2", &a.memcpyHtoDAsync}, {"cuMemcpyDtoHAsync_v2", &a.memcpyDtoHAsync},
		{"cuMemcpyDtoDAsync_v2", &a.memcpyDtoDAsync},
		{"cuMemsetD8Async", &a.memsetD8Async}, {"cuMemsetD32Async", &a.memsetD32Async},
		{"cuStreamCreate", &a.streamCreate}, {"cuStreamDestroy_v2", &a.streamDestroy},
		{"cuStreamSynchronize", &a.streamSynchronize}, {"cuStreamQuery", &a.streamQuery},
		{"cuStreamWaitEvent", &a.streamWaitEvent},
		{"cuStreamWaitValue32_v2", &a.streamWaitValue32}, {"cuStreamWriteValue32_v2", &a.streamWriteValue32},
		{"cuEventCreate", &a.eventCreate}, {"cuEventDestroy_v2", &a.eventDestroy}, {"cuEventRecord", &a.eventRecord},
		{"cuEventSynchronize", &a.eventSynchronize}, {"cuEventElapsedTime", &a.eventElapsedTime},
		{"cuLinkCreate_v2", &a.linkCreate}, {"cuLinkAddData_v2", &a.linkAddData},
		{"cuLinkComplete", &a.linkComplete}, {"cuLinkDestroy", &a.linkDestroy},
		{"cuModuleLoadData", &a.moduleLoadData}, {"cuModuleUnload", &a.moduleUnload},
		{"cuModuleLoadDataEx", &a.moduleLoadDataEx}, {"cuModuleGetFunction", &a.moduleGetFunction},
		{"cuFuncGetAttribute", &a.funcGetAttribute}, {"cuFuncSetAttribute", &a.funcSetAttribute},
		{"cuOccupancyMaxActiveClusters", &a.occupancyMaxActiveClusters},
		{"cuOccupancyMaxActiveBlocksPerMultiprocessor", &a.occupancyBlocks},
		{"cuLaunchKernelEx", &a.launchKernelEx}, {"cuTensorMapEncodeTiled", &a.tensorMapEncodeTiled},
		{"cuTensorMapReplaceAddress", &a.tensorMapReplaceAddress},
		{"cuStreamBeginCapture_v2", &a.streamBeginCapture}, {"cuStreamEndCapture", &a.streamEndCapture},
		{"cuGraphInstantiateWithFlags", &a.graphInstantiate}, {"cuGraphUpload", &a.graphUpload},
		{"cuGraphLaunch", &a.graphLaunch}, {"cuGraphExecUpdate_v2", &a.graphExecUpdate},
		{"cuGraphExecDestroy", &a.graphExecDestroy}, {"cuGraphDestroy", &a.graphDestroy},
		{"cuGraphGetNodes", &a.graphGetNodes},
	}
}

// find fills a, or says what the driver lacks.
func (a *api) find(lib *dl.Library) error {
	for _, s := range a.symbols() {
		f, err := lib.Func(s.name)
		if err != nil {
			return &Absent{fmt.Sprintf("the driver is too old: it has no %s; hint: heddle needs CUDA %s, driver 525 or newer", s.name, dotted(MinVersion))}
		}
		*s.f = f
	}
	if f, err := lib.Func("cuGraphGetEdges_v2"); err == nil {
		a.graphGetEdges = f
	}
	return nil
}
