/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: streams. The words are defined in vocabulary.h; codegen/README.md explains how
 * to add a call. */

GP_CALL(0x0401, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
CUresult cuStreamCreateWithPriority(
        OUT NEW CUstream *phStream,
        unsigned int flags,
        int priority);

GP_LOCAL(FORWARD(cuStreamCreateWithPriority, phStream, Flags, 0), VIA(cuStreamCreateWithPriority))
CUresult cuStreamCreate(
        OUT CUstream *phStream,
        unsigned int Flags);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetPriority(
        CUstream hStream,
        OUT FIELD(priority) int *priority);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetDevice(
        CUstream hStream,
        OUT FIELD(context->device->ordinal) CUdevice *device);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetFlags(
        CUstream hStream,
        OUT FIELD(flags) unsigned int *flags);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetId(
        CUstream hStream,
        OUT FIELD(number) unsigned long long *streamId);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetCtx(
        CUstream hStream,
        OUT COMPUTE(gpc_stream_get_context) CUcontext *pctx);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetCtx_v2(
        CUstream hStream,
        OUT OPT FIELD(context->handle.token) CUcontext *pCtx,
        OUT OPT COMPUTE(gpc_stream_get_green) CUgreenCtx *pGreenCtx);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetGreenCtx(
        CUstream hStream,
        OUT COMPUTE(gpc_stream_get_green) CUgreenCtx *phCtx);

/* Streams have no attributes that could differ and be copied. */
GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamCopyAttributes(
        CUstream dstStream,
        CUstream srcStream);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetAttribute(
        CUstream hStream,
        CUstreamAttrID attr,
        OUT CUstreamAttrValue *value);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamSetAttribute(
        CUstream hStream,
        CUstreamAttrID attr,
        IN const CUstreamAttrValue *param);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected), QUICK)
CUresult cuStreamIsCapturing(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus);

GP_LOCAL(FORWARD(cuStreamGetCaptureInfo_v3, hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out), CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetCaptureInfo_v2(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus_out,
        OUT cuuint64_t *id_out,
        OUT CUgraph *graph_out,
        BY_HOOK const CUgraphNode **dependencies_out,
        OUT size_t *numDependencies_out);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected), QUICK)
CUresult cuStreamGetCaptureInfo_v3(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus_out,
        OUT cuuint64_t *id_out,
        OUT CUgraph *graph_out,
        BY_HOOK const CUgraphNode **dependencies_out,
        BY_HOOK const CUgraphEdgeData **edgeData_out,
        OUT size_t *numDependencies_out);

GP_LOCAL(FORWARD(cuStreamBeginCapture_v2, hStream, CU_STREAM_CAPTURE_MODE_GLOBAL), CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamBeginCapture(
        CUstream hStream);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamBeginCapture_v2(
        CUstream hStream,
        CUstreamCaptureMode mode);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamBeginCaptureToGraph(
        CUstream hStream,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        IN_N(numDependencies) OPT const CUgraphEdgeData *dependencyData,
        size_t numDependencies,
        CUstreamCaptureMode mode);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamEndCapture(
        CUstream hStream,
        OUT CUgraph *phGraph);

GP_LOCAL(FORWARD(cuStreamUpdateCaptureDependencies_v2, hStream, dependencies, NULL, numDependencies, flags), CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamUpdateCaptureDependencies(
        CUstream hStream,
        BY_HOOK CUgraphNode *dependencies,
        size_t numDependencies,
        unsigned int flags);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamUpdateCaptureDependencies_v2(
        CUstream hStream,
        BY_HOOK CUgraphNode *dependencies,
        IN_N(numDependencies) OPT const CUgraphEdgeData *dependencyData,
        size_t numDependencies,
        unsigned int flags);

GP_LOCAL(FORWARD(cuStreamGetCaptureInfo_v3, hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL), CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamGetCaptureInfo(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus_out,
        OUT cuuint64_t *id_out);

GP_LOCAL(QUICK)
CUresult cuThreadExchangeStreamCaptureMode(
        INOUT CUstreamCaptureMode *mode);

GP_CALL(0x0402, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT, UNBOUNDED, CAPTURE(node), QUICK)
CUresult cuStreamWaitEvent(
        CUstream hStream,
        CUevent hEvent,
        unsigned int Flags);

GP_CALL(0x0403, WAIT, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, QUERY, AWAITS_STREAM, CAPTURE(refused), QUICK)
CUresult cuStreamQuery(
        CUstream hStream);

GP_CALL(0x0404, WAIT, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, AWAITS_STREAM, CAPTURE(refused), QUICK)
CUresult cuStreamSynchronize(
        CUstream hStream);

GP_CALL(0x0405, POST, CLIENT_HOOK, SERVER_HOOK, ALIAS(cuStreamDestroy), CHARGES_NOTHING, CAPTURE(node))
CUresult cuStreamDestroy_v2(
        DROP CUstream hStream);

GP_LOCAL(VIA(gpHostFunction, gpHostFunctionDone), CAPTURE(node))
CUresult cuLaunchHostFunc(
        CUstream hStream,
        CUhostFn fn,
        BY_HOOK void *userData);

GP_LOCAL(VIA(gpHostFunction, gpHostFunctionDone), CAPTURE(refused))
CUresult cuStreamAddCallback(
        CUstream hStream,
        CUstreamCallback callback,
        BY_HOOK void *userData,
        unsigned int flags);

/* Memory values that streams write, and wait for (docs/streams.md). */

GP_LOCAL(VIA(gpStreamWait), CAPTURE(node))
CUresult cuStreamWaitValue32_v2(
        CUstream stream,
        CUdeviceptr addr,
        cuuint32_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWrite), CAPTURE(node))
CUresult cuStreamWriteValue32_v2(
        CUstream stream,
        CUdeviceptr addr,
        cuuint32_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWait), CAPTURE(node))
CUresult cuStreamWaitValue64_v2(
        CUstream stream,
        CUdeviceptr addr,
        cuuint64_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWrite), CAPTURE(node))
CUresult cuStreamWriteValue64_v2(
        CUstream stream,
        CUdeviceptr addr,
        cuuint64_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWait, gpStreamWrite), CAPTURE(node))
CUresult cuStreamBatchMemOp_v2(
        CUstream stream,
        unsigned int count,
        BY_HOOK CUstreamBatchMemOpParams *paramArray,
        unsigned int flags);

/* The versions before CUDA 12, for devices that report CAN_USE_STREAM_MEM_OPS_V1. */

GP_LOCAL(VIA(gpStreamWait), CAPTURE(refused))
CUresult cuStreamWaitValue32(
        CUstream stream,
        CUdeviceptr addr,
        cuuint32_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWrite), CAPTURE(refused))
CUresult cuStreamWriteValue32(
        CUstream stream,
        CUdeviceptr addr,
        cuuint32_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWait), CAPTURE(refused))
CUresult cuStreamWaitValue64(
        CUstream stream,
        CUdeviceptr addr,
        cuuint64_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWrite), CAPTURE(refused))
CUresult cuStreamWriteValue64(
        CUstream stream,
        CUdeviceptr addr,
        cuuint64_t value,
        unsigned int flags);

GP_LOCAL(VIA(gpStreamWait, gpStreamWrite), CAPTURE(refused))
CUresult cuStreamBatchMemOp(
        CUstream stream,
        unsigned int count,
        BY_HOOK CUstreamBatchMemOpParams *paramArray,
        unsigned int flags);
