/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the driver makes before all others, for functions whose implementation checks in
 * another order.
 *
 * Source: tests/apps/expected/wrongcalls.txt.
 *
 * The words are defined in vocabulary.h; codegen/README.md explains how to add a call.
 */

/* device.h */
GP_PRECHECK(cuDeviceGetLuid, INITIALIZED, VALUE(luid, deviceNodeMask))
GP_PRECHECK(cuDeviceGetTexture1DLinearMaxWidth, INITIALIZED, WITHIN(numChannels, 1, 4))
GP_PRECHECK(cuDeviceGetP2PAtomicCapabilities, INITIALIZED, VALUE(capabilities, operations, count))

/* context.h */
GP_PRECHECK(cuCtxCreate_v3, INITIALIZED, VALUE(pctx))
GP_PRECHECK(cuCtxDestroy, VALUE(ctx))
GP_PRECHECK(cuCtxDestroy_v2, VALUE(ctx))
GP_PRECHECK(cuCtxDetach, INITIALIZED, CONTEXT(ctx))
GP_PRECHECK(cuCtxPushCurrent, INITIALIZED, VALUE(ctx), LEGACY(ctx))
GP_PRECHECK(cuCtxPushCurrent_v2, INITIALIZED, VALUE(ctx))
GP_PRECHECK(cuCtxDisablePeerAccess, INITIALIZED, CONTEXT(peerContext))
GP_PRECHECK(cuCtxEnablePeerAccess, INITIALIZED, CONTEXT(peerContext))

/* green.h */
GP_PRECHECK(cuCtxFromGreenCtx, VALUE(pContext))
GP_PRECHECK(cuGreenCtxGetId, VALUE(greenCtxId))
GP_PRECHECK(cuGreenCtxRecordEvent, CONTEXT(hCtx))
GP_PRECHECK(cuGreenCtxStreamCreate, VALUE(phStream), CONTEXT(greenCtx))
GP_PRECHECK(cuGreenCtxWaitEvent, CONTEXT(hCtx))

/* stream.h */
GP_PRECHECK(cuStreamGetGreenCtx, CURRENT(hStream))
GP_PRECHECK(cuStreamAddCallback, WITHIN(flags, 0, 0))
GP_PRECHECK(cuStreamCopyAttributes, CURRENT(dstStream))
GP_PRECHECK(cuStreamCreate, WITHIN(Flags, CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING))
GP_PRECHECK(cuStreamCreateWithPriority, WITHIN(flags, CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING))
GP_PRECHECK(cuStreamDestroy, HANDLE(hStream))
GP_PRECHECK(cuStreamDestroy_v2, HANDLE(hStream))
GP_PRECHECK(cuStreamGetAttribute, CURRENT(hStream))
GP_PRECHECK(cuStreamGetCtx, CURRENT(hStream))
GP_PRECHECK(cuStreamGetCtx_v2, CURRENT(hStream))
GP_PRECHECK(cuStreamGetDevice, CURRENT(hStream))
GP_PRECHECK(cuStreamGetFlags, CURRENT(hStream))
GP_PRECHECK(cuStreamGetId, CURRENT(hStream))
GP_PRECHECK(cuStreamGetPriority, CURRENT(hStream))
GP_PRECHECK(cuStreamQuery, CURRENT(hStream))
GP_PRECHECK(cuStreamSetAttribute, CURRENT(hStream))
GP_PRECHECK(cuStreamSynchronize, CURRENT(hStream))
GP_PRECHECK(cuStreamWaitEvent, CURRENT(hStream))
GP_PRECHECK(cuStreamBatchMemOp, CURRENT(stream))
GP_PRECHECK(cuStreamBatchMemOp_v2, CURRENT(stream))
GP_PRECHECK(cuStreamWriteValue32, CURRENT(stream))
GP_PRECHECK(cuStreamWriteValue32_v2, CURRENT(stream))
GP_PRECHECK(cuStreamWriteValue64, CURRENT(stream))
GP_PRECHECK(cuStreamWriteValue64_v2, CURRENT(stream))
GP_PRECHECK(cuLaunchHostFunc, CURRENT(hStream))
GP_PRECHECK(cuStreamBeginCapture, CURRENT(hStream))
GP_PRECHECK(cuStreamBeginCapture_v2, CURRENT(hStream))
GP_PRECHECK(cuStreamBeginCaptureToGraph, VALUE(hGraph), CURRENT(hStream))
GP_PRECHECK(cuStreamEndCapture, CURRENT(hStream))
GP_PRECHECK(cuStreamGetCaptureInfo, CURRENT(hStream))
GP_PRECHECK(cuStreamGetCaptureInfo_v2, CURRENT(hStream))
GP_PRECHECK(cuStreamGetCaptureInfo_v3, CURRENT(hStream))
GP_PRECHECK(cuStreamIsCapturing, CURRENT(hStream))
GP_PRECHECK(cuStreamUpdateCaptureDependencies, CURRENT(hStream))
GP_PRECHECK(cuStreamUpdateCaptureDependencies_v2, CURRENT(hStream))
GP_PRECHECK(cuThreadExchangeStreamCaptureMode, INITIALIZED)

/* module.h */
GP_PRECHECK(cuLinkAddData, HANDLE(state))
GP_PRECHECK(cuLinkAddData_v2, HANDLE(state))
GP_PRECHECK(cuLinkAddFile, HANDLE(state))
GP_PRECHECK(cuLinkAddFile_v2, HANDLE(state))
GP_PRECHECK(cuLinkComplete, HANDLE(state))
GP_PRECHECK(cuLinkDestroy, HANDLE(state))
GP_PRECHECK(cuModuleEnumerateFunctions, HANDLE(mod))
GP_PRECHECK(cuModuleGetFunctionCount, HANDLE(mod))

/* library.h */
GP_PRECHECK(cuKernelGetAttribute, HANDLE(kernel))
GP_PRECHECK(cuKernelGetFunction, HANDLE(kernel))
GP_PRECHECK(cuKernelGetLibrary, HANDLE(kernel))
GP_PRECHECK(cuKernelGetName, VALUE(hfunc))
GP_PRECHECK(cuKernelGetParamInfo, VALUE(kernel), CURRENT)
GP_PRECHECK(cuKernelSetAttribute, HANDLE(kernel))
GP_PRECHECK(cuKernelSetCacheConfig, HANDLE(kernel))
GP_PRECHECK(cuLibraryEnumerateKernels, HANDLE(lib))
GP_PRECHECK(cuLibraryGetGlobal, HANDLE(library))
GP_PRECHECK(cuLibraryGetKernel, HANDLE(library))
GP_PRECHECK(cuLibraryGetKernelCount, HANDLE(lib))
GP_PRECHECK(cuLibraryGetManaged, HANDLE(library))
GP_PRECHECK(cuLibraryGetModule, HANDLE(library))
GP_PRECHECK(cuLibraryGetUnifiedFunction, INITIALIZED, HANDLE(library), VALUE(fptr))
GP_PRECHECK(cuLibraryUnload, HANDLE(library))

/* array.h */
GP_PRECHECK(cuArray3DGetDescriptor_v2, HANDLE(hArray))
GP_PRECHECK(cuArrayGetDescriptor_v2, HANDLE(hArray))
GP_PRECHECK(cuArrayGetMemoryRequirements, VALUE(array), INITIALIZED, DEVICE(device))
GP_PRECHECK(cuArrayGetPlane, HANDLE(hArray))
GP_PRECHECK(cuArrayGetSparseProperties, VALUE(array))
GP_PRECHECK(cuMemcpyAtoHAsync_v2, CURRENT(hStream))
GP_PRECHECK(cuMemcpyHtoAAsync_v2, CURRENT(hStream))
GP_PRECHECK(cuMipmappedArrayGetLevel, HANDLE(hMipmappedArray))
GP_PRECHECK(cuMipmappedArrayGetMemoryRequirements, VALUE(mipmap))
GP_PRECHECK(cuMipmappedArrayGetSparseProperties, VALUE(mipmap))

/* memory.h */
GP_PRECHECK(cuPointerSetAttribute,
        INITIALIZED, VALUE(ptr), WITHIN(attribute, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS))

/* copy.h */
GP_PRECHECK(cuMemcpy2DAsync_v2, CURRENT(hStream))
GP_PRECHECK(cuMemcpy3DAsync_v2, CURRENT(hStream))
GP_PRECHECK(cuMemcpy3DBatchAsync, VALUE(hStream), CURRENT(hStream))
GP_PRECHECK(cuMemcpy3DBatchAsync_v2, VALUE(hStream), CURRENT(hStream))
GP_PRECHECK(cuMemcpy3DPeerAsync, CURRENT(hStream))
GP_PRECHECK(cuMemcpyAsync, CURRENT(hStream))
GP_PRECHECK(cuMemcpyBatchAsync, VALUE(hStream), CURRENT(hStream))
GP_PRECHECK(cuMemcpyBatchAsync_v2, VALUE(hStream), CURRENT(hStream))
GP_PRECHECK(cuMemcpyDtoDAsync_v2, CURRENT(hStream))
GP_PRECHECK(cuMemcpyDtoHAsync_v2, CURRENT(hStream))
GP_PRECHECK(cuMemcpyHtoDAsync_v2, CURRENT(hStream))
GP_PRECHECK(cuMemcpyPeerAsync, CURRENT(hStream))
GP_PRECHECK(cuMemsetD16Async, CURRENT(hStream))
GP_PRECHECK(cuMemsetD2D16Async, CURRENT(hStream))
GP_PRECHECK(cuMemsetD2D32Async, CURRENT(hStream))
GP_PRECHECK(cuMemsetD2D8Async, CURRENT(hStream))
GP_PRECHECK(cuMemsetD32Async, CURRENT(hStream))
GP_PRECHECK(cuMemsetD8Async, CURRENT(hStream))

/* pool.h */
GP_PRECHECK(cuDeviceGetMemPool, INITIALIZED, DEVICE(dev))
GP_PRECHECK(cuDeviceSetMemPool, INITIALIZED, DEVICE(dev))
GP_PRECHECK(cuMemAllocAsync, CURRENT(hStream))
GP_PRECHECK(cuMemAllocFromPoolAsync, CURRENT(hStream))
GP_PRECHECK(cuMemFreeAsync, CURRENT(hStream))

/* event.h */
GP_PRECHECK(cuEventDestroy, HANDLE(hEvent))
GP_PRECHECK(cuEventDestroy_v2, HANDLE(hEvent))
GP_PRECHECK(cuEventElapsedTime, HANDLE(hStart, hEnd))
GP_PRECHECK(cuEventElapsedTime_v2, HANDLE(hStart, hEnd))
GP_PRECHECK(cuEventQuery, HANDLE(hEvent))
GP_PRECHECK(cuEventRecord, CURRENT(hStream))
GP_PRECHECK(cuEventRecordWithFlags, CURRENT(hStream))
GP_PRECHECK(cuEventSynchronize, HANDLE(hEvent))

/* function.h */
GP_PRECHECK(cuFuncGetAttribute, HANDLE(hfunc))
GP_PRECHECK(cuFuncGetModule, INITIALIZED, VALUE(hfunc))
GP_PRECHECK(cuFuncGetName, VALUE(hfunc))
GP_PRECHECK(cuFuncGetParamInfo, VALUE(func))
GP_PRECHECK(cuFuncIsLoaded, HANDLE(function))
GP_PRECHECK(cuFuncLoad, HANDLE(function))
GP_PRECHECK(cuLaunchCooperativeKernel, CURRENT(hStream))
GP_PRECHECK(cuLaunchKernel, CURRENT(hStream))

/* reference.h */
GP_PRECHECK(cuParamSetTexRef, CURRENT)

/* graph.h */
GP_PRECHECK(cuGraphAddBatchMemOpNode, VALUE(hGraph))
GP_PRECHECK(cuGraphAddDependencies, VALUE(hGraph))
GP_PRECHECK(cuGraphAddDependencies_v2, VALUE(hGraph))
GP_PRECHECK(cuGraphAddEmptyNode, VALUE(hGraph))
GP_PRECHECK(cuGraphAddEventRecordNode, VALUE(hGraph))
GP_PRECHECK(cuGraphAddEventWaitNode, VALUE(hGraph))
GP_PRECHECK(cuGraphAddHostNode, VALUE(hGraph))
GP_PRECHECK(cuGraphAddMemcpyNode, INITIALIZED, VALUE(hGraph))
GP_PRECHECK(cuGraphBatchMemOpNodeGetParams, VALUE(hNode))
GP_PRECHECK(cuGraphBatchMemOpNodeSetParams, VALUE(hNode))
GP_PRECHECK(cuGraphConditionalHandleCreate, VALUE(hGraph))
GP_PRECHECK(cuGraphDebugDotPrint, VALUE(hGraph))
GP_PRECHECK(cuGraphEventRecordNodeGetEvent, VALUE(hNode))
GP_PRECHECK(cuGraphEventRecordNodeSetEvent, VALUE(hNode))
GP_PRECHECK(cuGraphEventWaitNodeGetEvent, VALUE(hNode))
GP_PRECHECK(cuGraphEventWaitNodeSetEvent, VALUE(hNode))
GP_PRECHECK(cuGraphExecBatchMemOpNodeSetParams, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecChildGraphNodeSetParams, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecEventRecordNodeSetEvent, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecEventWaitNodeSetEvent, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecHostNodeSetParams, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecKernelNodeSetParams, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecKernelNodeSetParams_v2, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecMemcpyNodeSetParams, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecMemsetNodeSetParams, VALUE(hGraphExec))
GP_PRECHECK(cuGraphExecNodeSetParams, VALUE(hGraphExec))
GP_PRECHECK(cuGraphHostNodeGetParams, VALUE(hNode))
GP_PRECHECK(cuGraphHostNodeSetParams, VALUE(hNode))
GP_PRECHECK(cuGraphInstantiate, CURRENT)
GP_PRECHECK(cuGraphInstantiate_v2, CURRENT)
GP_PRECHECK(cuGraphInstantiateWithFlags, VALUE(hGraph))
GP_PRECHECK(cuGraphInstantiateWithParams, CURRENT)
GP_PRECHECK(cuGraphKernelNodeGetParams, VALUE(hNode))
GP_PRECHECK(cuGraphKernelNodeGetParams_v2, VALUE(hNode))
GP_PRECHECK(cuGraphKernelNodeSetParams, VALUE(hNode))
GP_PRECHECK(cuGraphKernelNodeSetParams_v2, VALUE(hNode))
GP_PRECHECK(cuGraphLaunch, CURRENT(hStream))
GP_PRECHECK(cuGraphMemAllocNodeGetParams, VALUE(hNode))
GP_PRECHECK(cuGraphMemFreeNodeGetParams, VALUE(hNode))
GP_PRECHECK(cuGraphMemcpyNodeSetParams, VALUE(hNode))
GP_PRECHECK(cuGraphMemsetNodeSetParams, VALUE(hNode))
GP_PRECHECK(cuGraphNodeGetEnabled, VALUE(hGraphExec))
GP_PRECHECK(cuGraphNodeSetEnabled, VALUE(hGraphExec))
GP_PRECHECK(cuGraphNodeSetParams, VALUE(hNode))
GP_PRECHECK(cuGraphReleaseUserObject, VALUE(graph))
GP_PRECHECK(cuGraphRemoveDependencies, VALUE(hGraph))
GP_PRECHECK(cuGraphRemoveDependencies_v2, VALUE(hGraph))
GP_PRECHECK(cuGraphRetainUserObject, VALUE(graph))
GP_PRECHECK(cuGraphUpload, CURRENT(hStream))
GP_PRECHECK(cuUserObjectCreate, WITHIN(flags, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC))
GP_PRECHECK(cuUserObjectRelease, VALUE(object))
GP_PRECHECK(cuUserObjectRetain, VALUE(object))

/* occupancy.h */
GP_PRECHECK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        CURRENT, WITHIN(flags, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
GP_PRECHECK(cuOccupancyMaxActiveClusters, VALUE(func))
GP_PRECHECK(cuOccupancyMaxPotentialBlockSizeWithFlags, CURRENT, WITHIN(flags, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
GP_PRECHECK(cuOccupancyMaxPotentialClusterSize, VALUE(func))

/* texture.h */
GP_PRECHECK(cuTexObjectGetResourceDesc, CURRENT, VALUE(texObject))
GP_PRECHECK(cuTexObjectGetResourceViewDesc, CURRENT, VALUE(texObject))
GP_PRECHECK(cuTexObjectGetTextureDesc, CURRENT, VALUE(texObject))
GP_PRECHECK(cuSurfObjectGetResourceDesc, CURRENT, VALUE(surfObject))

/* tensor.h */
GP_PRECHECK(cuTensorMapEncodeIm2col, CURRENT)
GP_PRECHECK(cuTensorMapEncodeIm2colWide, CURRENT)
GP_PRECHECK(cuTensorMapEncodeTiled, CURRENT)
GP_PRECHECK(cuTensorMapReplaceAddress, CURRENT)

/* ipc.h */
GP_PRECHECK(cuIpcGetEventHandle, VALUE(event), CURRENT)
GP_PRECHECK(cuIpcGetMemHandle, VALUE(dptr))

/* graphics.h */
GP_PRECHECK(cuGraphicsMapResources, INITIALIZED, VALUE(count), HANDLE(hStream), CURRENT(hStream))
GP_PRECHECK(cuGraphicsUnmapResources, INITIALIZED, VALUE(count), HANDLE(hStream), CURRENT(hStream))

/* error.h */
GP_PRECHECK(cuCoredumpGetAttributeGlobal, WITHIN(attrib, CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_GENERATION_FLAGS))
GP_PRECHECK(cuCoredumpGetAttribute, WITHIN(attrib, CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_GENERATION_FLAGS))
GP_PRECHECK(cuCoredumpSetAttribute, WITHIN(attrib, CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_GENERATION_FLAGS))
GP_PRECHECK(cuCoredumpSetAttributeGlobal, WITHIN(attrib, CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_GENERATION_FLAGS))
