"""Host API names and what each call does: the one table every analysis asks.

A *launch* puts work on a stream. Names are those that runtimes and drivers of CUDA, HIP, XPU (Level Zero
and SYCL), MTIA and PrivateUse1 back ends write into Kineto traces. Suffixes that only mark an ABI variant
(``_v2``, ``_ptsz``, ``_ptds``, ``_spt``, a version such as ``_v3020``) are ignored. A call that is not in
the table still links to its device rows by correlation; it is then reported by its own name as unknown.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class ApiClass(IntEnum):
    """What a host call does, as far as timing is concerned."""

    OTHER = 0
    KERNEL_LAUNCH = 1
    GRAPH_LAUNCH = 2
    MEMCPY = 3
    MEMSET = 4
    SYNC_DEVICE = 5
    SYNC_STREAM = 6
    SYNC_EVENT = 7
    STREAM_WAIT = 8
    EVENT_RECORD = 9
    MODULE_LOAD = 10
    MEMORY = 11
    CAPTURE_BEGIN = 12
    CAPTURE_END = 13


LAUNCHES = frozenset({ApiClass.KERNEL_LAUNCH, ApiClass.GRAPH_LAUNCH, ApiClass.MEMCPY, ApiClass.MEMSET})
SYNCS = frozenset({ApiClass.SYNC_DEVICE, ApiClass.SYNC_STREAM, ApiClass.SYNC_EVENT})

_BY_CLASS: dict[ApiClass, str] = {
    ApiClass.KERNEL_LAUNCH: """
        cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel cudaLaunchCooperativeKernelMultiDevice
        cudaLaunch
        cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel cuLaunchCooperativeKernelMultiDevice
        cuLaunch cuLaunchGrid cuLaunchGridAsync
        hipLaunchKernel hipLaunchKernelExC hipExtLaunchKernel hipLaunchCooperativeKernel
        hipLaunchCooperativeKernelMultiDevice hipExtLaunchMultiKernelMultiDevice hipLaunchByPtr
        hipModuleLaunchKernel hipModuleLaunchKernelEx hipExtModuleLaunchKernel hipHccModuleLaunchKernel
        hipModuleLaunchCooperativeKernel hipModuleLaunchCooperativeKernelMultiDevice hipDrvLaunchKernelEx
        zeCommandListAppendLaunchKernel zeCommandListAppendLaunchCooperativeKernel
        zeCommandListAppendLaunchKernelIndirect zeCommandListAppendLaunchMultipleKernelsIndirect
        zeCommandListAppendLaunchKernelWithArguments zeCommandListAppendLaunchKernelWithParameters
        urEnqueueKernelLaunch urEnqueueKernelLaunchCustomExp urEnqueueCooperativeKernelLaunchExp
        urEnqueueKernelLaunchWithArgsExp piEnqueueKernelLaunch piextEnqueueKernelLaunchCustom
        piextEnqueueCooperativeKernelLaunch clEnqueueNDRangeKernel
        runFunction\N{NO-BREAK SPACE}-\N{NO-BREAK SPACE}job_prep_and_submit_for_execution
        privateuse1LaunchKernel PrivateUse1LaunchKernel LaunchKernel aclrtLaunchKernel
        aclrtLaunchKernelWithConfig aclrtLaunchKernelWithHostArgs aclopExecute
        musaLaunchKernel musaLaunchCooperativeKernel muLaunchKernel cnInvokeKernel cnrtInvokeKernel
    """,
    ApiClass.GRAPH_LAUNCH: """
        cudaGraphLaunch cuGraphLaunch hipGraphLaunch musaGraphLaunch muGraphLaunch
        zeCommandQueueExecuteCommandLists zeCommandListImmediateAppendCommandListsExp
        urEnqueueCommandBufferExp urCommandBufferEnqueueExp aclmdlRIExecuteAsync
    """,
    ApiClass.MEMCPY: """
        cudaMemcpy cudaMemcpyAsync cudaMemcpy2D cudaMemcpy2DAsync cudaMemcpy3D cudaMemcpy3DAsync
        cudaMemcpyPeer cudaMemcpyPeerAsync cudaMemcpy3DPeer cudaMemcpy3DPeerAsync cudaMemcpyToSymbol
        cudaMemcpyToSymbolAsync cudaMemcpyFromSymbol cudaMemcpyFromSymbolAsync cudaMemcpyToArray
        cudaMemcpyFromArray cudaMemcpy2DToArray cudaMemcpy2DToArrayAsync cudaMemcpy2DFromArray
        cudaMemcpy2DFromArrayAsync cudaMemcpyBatchAsync cudaMemcpy3DBatchAsync cudaMemPrefetchAsync
        cuMemcpy cuMemcpyAsync cuMemcpyHtoD cuMemcpyHtoDAsync cuMemcpyDtoH cuMemcpyDtoHAsync cuMemcpyDtoD
        cuMemcpyDtoDAsync cuMemcpyPeer cuMemcpyPeerAsync cuMemcpy2D cuMemcpy2DAsync cuMemcpy2DUnaligned
        cuMemcpy3D cuMemcpy3DAsync cuMemcpy3DPeer cuMemcpy3DPeerAsync cuMemPrefetchAsync cuMemcpyBatchAsync
        hipMemcpy hipMemcpyAsync hipMemcpyWithStream hipMemcpy2D hipMemcpy2DAsync hipMemcpy3D
        hipMemcpy3DAsync hipMemcpyPeer hipMemcpyPeerAsync hipMemcpyHtoD hipMemcpyHtoDAsync hipMemcpyDtoH
        hipMemcpyDtoHAsync hipMemcpyDtoD hipMemcpyDtoDAsync hipMemcpyToSymbol hipMemcpyToSymbolAsync
        hipMemcpyFromSymbol hipMemcpyFromSymbolAsync hipMemcpyParam2D hipMemcpyParam2DAsync
        hipDrvMemcpy3D hipDrvMemcpy3DAsync hipMemPrefetchAsync
        zeCommandListAppendMemoryCopy zeCommandListAppendMemoryCopyRegion urEnqueueUSMMemcpy
        urEnqueueUSMMemcpy2D urEnqueueMemBufferRead urEnqueueMemBufferWrite urEnqueueMemBufferCopy
        piextUSMEnqueueMemcpy piextUSMEnqueueMemcpy2D aclrtMemcpy aclrtMemcpyAsync musaMemcpy musaMemcpyAsync
    """,
    ApiClass.MEMSET: """
        cudaMemset cudaMemsetAsync cudaMemset2D cudaMemset2DAsync cudaMemset3D cudaMemset3DAsync
        cuMemsetD8 cuMemsetD8Async cuMemsetD16 cuMemsetD16Async cuMemsetD32 cuMemsetD32Async
        cuMemsetD2D8 cuMemsetD2D8Async cuMemsetD2D16 cuMemsetD2D16Async cuMemsetD2D32 cuMemsetD2D32Async
        hipMemset hipMemsetAsync hipMemset2D hipMemset2DAsync hipMemset3D hipMemset3DAsync
        hipMemsetD8 hipMemsetD8Async hipMemsetD16 hipMemsetD16Async hipMemsetD32 hipMemsetD32Async
        zeCommandListAppendMemoryFill urEnqueueUSMFill urEnqueueUSMFill2D urEnqueueMemBufferFill
        piextUSMEnqueueFill piextUSMEnqueueMemset aclrtMemset aclrtMemsetAsync musaMemset musaMemsetAsync
    """,
    ApiClass.SYNC_DEVICE: """
        cudaDeviceSynchronize cudaThreadSynchronize cuCtxSynchronize hipDeviceSynchronize hipCtxSynchronize
        zeCommandQueueSynchronize zeDeviceSynchronize urQueueFinish piQueueFinish aclrtSynchronizeDevice
        aclrtSynchronizeDeviceWithTimeout musaDeviceSynchronize
    """,
    ApiClass.SYNC_STREAM: """
        cudaStreamSynchronize cuStreamSynchronize hipStreamSynchronize zeCommandListHostSynchronize
        aclrtSynchronizeStream aclrtSynchronizeStreamWithTimeout musaStreamSynchronize
    """,
    ApiClass.SYNC_EVENT: """
        cudaEventSynchronize cuEventSynchronize hipEventSynchronize zeEventHostSynchronize zeFenceHostSynchronize
        urEventWait piEventsWait aclrtSynchronizeEvent musaEventSynchronize
    """,
    ApiClass.STREAM_WAIT: """
        cudaStreamWaitEvent cuStreamWaitEvent hipStreamWaitEvent zeCommandListAppendWaitOnEvents
        zeCommandListAppendBarrier urEnqueueEventsWait urEnqueueEventsWaitWithBarrier aclrtStreamWaitEvent
        musaStreamWaitEvent
    """,
    ApiClass.EVENT_RECORD: """
        cudaEventRecord cudaEventRecordWithFlags cuEventRecord cuEventRecordWithFlags hipEventRecord
        hipEventRecordWithFlags zeCommandListAppendSignalEvent aclrtRecordEvent musaEventRecord
    """,
    ApiClass.MODULE_LOAD: """
        cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuLibraryLoadData
        cuLibraryLoadFromFile cuModuleGetFunction cuLibraryGetKernel cuKernelGetFunction
        cuLinkCreate cuLinkAddData cuLinkComplete cudaLibraryLoadData
        hipModuleLoad hipModuleLoadData hipModuleLoadDataEx zeModuleCreate urProgramBuild urProgramCompile
        urProgramLink aclrtBinaryLoad
    """,
    ApiClass.MEMORY: """
        cudaMalloc cudaFree cudaMallocHost cudaFreeHost cudaHostAlloc cudaMallocManaged cudaMallocPitch
        cudaMalloc3D cudaMallocAsync cudaFreeAsync cudaMallocFromPoolAsync cudaHostRegister cudaHostUnregister
        cuMemAlloc cuMemFree cuMemAllocPitch cuMemAllocHost cuMemHostAlloc cuMemFreeHost cuMemAllocManaged
        cuMemAllocAsync cuMemFreeAsync cuMemCreate cuMemMap cuMemUnmap cuMemRelease cuMemSetAccess
        cuMemAddressReserve cuMemAddressFree
        hipMalloc hipFree hipHostMalloc hipHostFree hipExtMallocWithFlags hipMallocManaged hipMallocAsync
        hipFreeAsync hipMallocPitch hipHostAlloc hipHostRegister hipHostUnregister hipMemCreate hipMemMap
        hipMemUnmap hipMemRelease zeMemAllocDevice zeMemAllocHost zeMemAllocShared zeMemFree
        urUSMDeviceAlloc urUSMHostAlloc urUSMSharedAlloc urUSMFree aclrtMalloc aclrtFree musaMalloc musaFree
    """,
    ApiClass.CAPTURE_BEGIN: """
        cudaStreamBeginCapture cudaStreamBeginCaptureToGraph cuStreamBeginCapture cuStreamBeginCaptureToGraph
        hipStreamBeginCapture hipStreamBeginCaptureToGraph
    """,
    ApiClass.CAPTURE_END: "cudaStreamEndCapture cuStreamEndCapture hipStreamEndCapture",
}

API_CLASSES: dict[str, ApiClass] = {
    name.replace("\N{NO-BREAK SPACE}", " "): api_class
    for api_class, names in _BY_CLASS.items()
    for name in re.split(r"[ \n]+", names)
    if name
}
"""Every known host API name with its class."""

_VARIANT = re.compile(r"(?:_v\d+|_ptsz|_ptds|_spt)+\Z")


@lru_cache(maxsize=4096)
def classify_api(name: str) -> ApiClass:
    """Return what the host call of that name does; :attr:`ApiClass.OTHER` when it is not in the table."""
    found = API_CLASSES.get(name)
    if found is None:
        found = API_CLASSES.get(_VARIANT.sub("", name), ApiClass.OTHER)
    return found
