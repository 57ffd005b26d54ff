/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: streams. */

GP_CALL(0x0401, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, PASSES_COPIES)
CUresult cuStreamCreateWithPriority(
        OUT NEW CUstream *phStream,
        unsigned int flags,
        int priority);

GP_LOCAL(VIA(cuStreamCreateWithPriority))
CUresult cuStreamCreate(
        OUT CUstream *phStream,
        unsigned int Flags);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetPriority(
        CUstream hStream,
        OUT int *priority);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetDevice(
        CUstream hStream,
        OUT CUdevice *device);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetFlags(
        CUstream hStream,
        OUT unsigned int *flags);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetId(
        CUstream hStream,
        OUT unsigned long long *streamId);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetCtx(
        CUstream hStream,
        OUT CUcontext *pctx);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamCopyAttributes(
        CUstream dstStream,
        CUstream srcStream);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetAttribute(
        CUstream hStream,
        CUstreamAttrID attr,
        OUT CUstreamAttrValue *value);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamSetAttribute(
        CUstream hStream,
        CUstreamAttrID attr,
        IN const CUstreamAttrValue *param);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamIsCapturing(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetCaptureInfo_v2(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus_out,
        OUT cuuint64_t *id_out,
        OUT CUgraph *graph_out,
        BY_HOOK const CUgraphNode **dependencies_out,
        OUT size_t *numDependencies_out);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetCaptureInfo_v3(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus_out,
        OUT cuuint64_t *id_out,
        OUT CUgraph *graph_out,
        BY_HOOK const CUgraphNode **dependencies_out,
        BY_HOOK const CUgraphEdgeData **edgeData_out,
        OUT size_t *numDependencies_out);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamBeginCapture(
        CUstream hStream);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamBeginCapture_v2(
        CUstream hStream,
        CUstreamCaptureMode mode);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamBeginCaptureToGraph(
        CUstream hStream,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        IN_N(numDependencies) OPT const CUgraphEdgeData *dependencyData,
        size_t numDependencies,
        CUstreamCaptureMode mode);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamEndCapture(
        CUstream hStream,
        OUT CUgraph *phGraph);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamUpdateCaptureDependencies(
        CUstream hStream,
        BY_HOOK CUgraphNode *dependencies,
        size_t numDependencies,
        unsigned int flags);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamUpdateCaptureDependencies_v2(
        CUstream hStream,
        BY_HOOK CUgraphNode *dependencies,
        IN_N(numDependencies) OPT const CUgraphEdgeData *dependencyData,
        size_t numDependencies,
        unsigned int flags);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuStreamGetCaptureInfo(
        CUstream hStream,
        OUT CUstreamCaptureStatus *captureStatus_out,
        OUT cuuint64_t *id_out);

GP_LOCAL()
CUresult cuThreadExchangeStreamCaptureMode(
        OUT CUstreamCaptureMode *mode);

GP_CALL(0x0402, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, PASSES_COPIES, CAPTURE(node))
CUresult cuStreamWaitEvent(
        CUstream hStream,
        CUevent hEvent,
        unsigned int Flags);

GP_CALL(0x0403, WAIT, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, ASKS, AWAITS_STREAM, CAPTURE(refused))
CUresult cuStreamQuery(
        CUstream hStream);

GP_CALL(0x0404, WAIT, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, AWAITS_STREAM, CAPTURE(refused))
CUresult cuStreamSynchronize(
        CUstream hStream);

GP_CALL(0x0405, POST, CLIENT_HOOK, SERVER_HOOK, ALIAS(cuStreamDestroy), CHARGES_NOTHING, CAPTURE(refused))
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
