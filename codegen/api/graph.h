/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: graphs that the application builds and queries. Graphs are objects of the client
 * (docs/graphs.md); no call here is on the wire.
 *
 * The words are defined in vocabulary.h; codegen/README.md explains how to add a call.
 */

GP_KIND(graph, TYPES(CUgraph))
GP_KIND(graph_node, TYPES(CUgraphNode))
GP_KIND(user_object, TYPES(CUuserObject))
GP_KIND(graph_exec, TYPES(CUgraphExec))
/* A set of nodes from which the daemon has created a graph of the driver. */
GP_KIND(graph_plan, TYPES(gp_graph_plan), COST(4096), ORDERED)
/* A graph of the driver that has conditional handles; sets with such conditional nodes are created
 * in it. */
GP_KIND(graph_root, TYPES(gp_graph_root), COST(4096))

GP_LOCAL()
CUresult cuGraphCreate(
        OUT CUgraph *phGraph,
        unsigned int flags);

GP_LOCAL()
CUresult cuGraphDestroy(
        CUgraph hGraph);

GP_LOCAL()
CUresult cuGraphClone(
        OUT CUgraph *phGraphClone,
        CUgraph originalGraph);

GP_LOCAL()
CUresult cuGraphNodeFindInClone(
        OUT CUgraphNode *phNode,
        CUgraphNode hOriginalNode,
        CUgraph hClonedGraph);

GP_LOCAL()
CUresult cuGraphDestroyNode(
        CUgraphNode hNode);

GP_LOCAL()
CUresult cuGraphNodeGetType(
        CUgraphNode hNode,
        OUT FIELD(params.type) CUgraphNodeType *type);

GP_LOCAL()
CUresult cuGraphGetNodes(
        CUgraph hGraph,
        BY_HOOK CUgraphNode *nodes,
        BY_HOOK size_t *numNodes);

GP_LOCAL()
CUresult cuGraphGetRootNodes(
        CUgraph hGraph,
        BY_HOOK CUgraphNode *rootNodes,
        BY_HOOK size_t *numRootNodes);

GP_LOCAL(FORWARD(cuGraphGetEdges_v2, hGraph, from, to, NULL, numEdges))
CUresult cuGraphGetEdges(
        CUgraph hGraph,
        BY_HOOK CUgraphNode *from,
        BY_HOOK CUgraphNode *to,
        BY_HOOK size_t *numEdges);

GP_LOCAL()
CUresult cuGraphGetEdges_v2(
        CUgraph hGraph,
        BY_HOOK CUgraphNode *from,
        BY_HOOK CUgraphNode *to,
        BY_HOOK CUgraphEdgeData *edgeData,
        BY_HOOK size_t *numEdges);

GP_LOCAL(FORWARD(cuGraphNodeGetDependencies_v2, hNode, dependencies, NULL, numDependencies))
CUresult cuGraphNodeGetDependencies(
        CUgraphNode hNode,
        BY_HOOK CUgraphNode *dependencies,
        BY_HOOK size_t *numDependencies);

GP_LOCAL()
CUresult cuGraphNodeGetDependencies_v2(
        CUgraphNode hNode,
        BY_HOOK CUgraphNode *dependencies,
        BY_HOOK CUgraphEdgeData *edgeData,
        BY_HOOK size_t *numDependencies);

GP_LOCAL(FORWARD(cuGraphNodeGetDependentNodes_v2, hNode, dependentNodes, NULL, numDependentNodes))
CUresult cuGraphNodeGetDependentNodes(
        CUgraphNode hNode,
        BY_HOOK CUgraphNode *dependentNodes,
        BY_HOOK size_t *numDependentNodes);

GP_LOCAL()
CUresult cuGraphNodeGetDependentNodes_v2(
        CUgraphNode hNode,
        BY_HOOK CUgraphNode *dependentNodes,
        BY_HOOK CUgraphEdgeData *edgeData,
        BY_HOOK size_t *numDependentNodes);

GP_LOCAL(FORWARD(cuGraphAddDependencies_v2, hGraph, from, to, NULL, numDependencies))
CUresult cuGraphAddDependencies(
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *from,
        IN_N(numDependencies) OPT const CUgraphNode *to,
        size_t numDependencies);

GP_LOCAL()
CUresult cuGraphAddDependencies_v2(
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *from,
        IN_N(numDependencies) OPT const CUgraphNode *to,
        IN_N(numDependencies) OPT const CUgraphEdgeData *edgeData,
        size_t numDependencies);

GP_LOCAL(FORWARD(cuGraphRemoveDependencies_v2, hGraph, from, to, NULL, numDependencies))
CUresult cuGraphRemoveDependencies(
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *from,
        IN_N(numDependencies) OPT const CUgraphNode *to,
        size_t numDependencies);

GP_LOCAL()
CUresult cuGraphRemoveDependencies_v2(
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *from,
        IN_N(numDependencies) OPT const CUgraphNode *to,
        IN_N(numDependencies) OPT const CUgraphEdgeData *edgeData,
        size_t numDependencies);

GP_LOCAL()
CUresult cuGraphAddEmptyNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, childGraph))
CUresult cuGraphAddChildGraphNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        CONVERT(gpc_generic_params_child) CUgraph childGraph);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_GRAPH))
CUresult cuGraphChildGraphNodeGetGraph(
        CUgraphNode hNode,
        OUT FIELD(params.child->handle.token) CUgraph *phGraph);

GP_LOCAL()
CUresult cuGraphDebugDotPrint(
        CUgraph hGraph,
        IN_STRING const char *path,
        unsigned int flags);

/* Memory that graphs allocate and free. */
GP_LOCAL(VIA(gpMemoryMap))
CUresult cuGraphAddMemAllocNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        BY_HOOK CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_MEM_ALLOC))
CUresult cuGraphMemAllocNodeGetParams(
        CUgraphNode hNode,
        OUT COMPUTE(gpc_node_get_alloc_params) CUDA_MEM_ALLOC_NODE_PARAMS *params_out);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, dptr))
CUresult cuGraphAddMemFreeNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        CONVERT(gpc_generic_params_free) CUdeviceptr dptr);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_MEM_FREE))
CUresult cuGraphMemFreeNodeGetParams(
        CUgraphNode hNode,
        OUT COMPUTE(gpc_node_get_memory_address) CUdeviceptr *dptr_out);

GP_LOCAL()
CUresult cuDeviceGraphMemTrim(
        CUdevice device);

GP_LOCAL()
CUresult cuDeviceGetGraphMemAttribute(
        CUdevice device,
        CUgraphMem_attribute attr,
        BY_HOOK void *value);

GP_LOCAL()
CUresult cuDeviceSetGraphMemAttribute(
        CUdevice device,
        CUgraphMem_attribute attr,
        BY_HOOK void *value);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, event))
CUresult cuGraphAddEventRecordNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        CONVERT(gpc_generic_params_event, CU_GRAPH_NODE_TYPE_EVENT_RECORD) CUevent event);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_EVENT_RECORD))
CUresult cuGraphEventRecordNodeGetEvent(
        CUgraphNode hNode,
        OUT FIELD(params.event) CUevent *event_out);

GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, event))
CUresult cuGraphEventRecordNodeSetEvent(
        CUgraphNode hNode,
        CONVERT(gpc_generic_params_event, CU_GRAPH_NODE_TYPE_EVENT_RECORD) CUevent event);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, event))
CUresult cuGraphAddEventWaitNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        CONVERT(gpc_generic_params_event, CU_GRAPH_NODE_TYPE_WAIT_EVENT) CUevent event);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_WAIT_EVENT))
CUresult cuGraphEventWaitNodeGetEvent(
        CUgraphNode hNode,
        OUT FIELD(params.event) CUevent *event_out);

GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, event))
CUresult cuGraphEventWaitNodeSetEvent(
        CUgraphNode hNode,
        CONVERT(gpc_generic_params_event, CU_GRAPH_NODE_TYPE_WAIT_EVENT) CUevent event);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams))
CUresult cuGraphAddHostNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        IN CONVERT(gpc_generic_params_host) const CUDA_HOST_NODE_PARAMS *nodeParams);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_HOST))
CUresult cuGraphHostNodeGetParams(
        CUgraphNode hNode,
        OUT FIELD(params.host) CUDA_HOST_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, nodeParams))
CUresult cuGraphHostNodeSetParams(
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_host) const CUDA_HOST_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, copyParams))
CUresult cuGraphAddMemcpyNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        IN CONVERT(gpc_generic_params_copy, ctx) const CUDA_MEMCPY3D *copyParams,
        CUcontext ctx);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_MEMCPY))
CUresult cuGraphMemcpyNodeGetParams(
        CUgraphNode hNode,
        OUT FIELD(params.copy) CUDA_MEMCPY3D *nodeParams);

/* A node's context cannot change. */
GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, nodeParams))
CUresult cuGraphMemcpyNodeSetParams(
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_copy, NULL) const CUDA_MEMCPY3D *nodeParams);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams))
CUresult cuGraphAddBatchMemOpNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        IN CONVERT(gpc_generic_params_mem_ops) const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP))
CUresult cuGraphBatchMemOpNodeGetParams(
        CUgraphNode hNode,
        OUT FIELD(params.ops->given) CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out);

GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, nodeParams))
CUresult cuGraphBatchMemOpNodeSetParams(
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_mem_ops) const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, memsetParams))
CUresult cuGraphAddMemsetNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        IN CONVERT(gpc_generic_params_memset, ctx) const CUDA_MEMSET_NODE_PARAMS *memsetParams,
        CUcontext ctx);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_MEMSET))
CUresult cuGraphMemsetNodeGetParams(
        CUgraphNode hNode,
        OUT FIELD(params.fill) CUDA_MEMSET_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, nodeParams))
CUresult cuGraphMemsetNodeSetParams(
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_memset, NULL) const CUDA_MEMSET_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams))
CUresult cuGraphAddKernelNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        IN CONVERT(gpc_generic_params_kernel_v1) const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams))
CUresult cuGraphAddKernelNode_v2(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        IN CONVERT(gpc_generic_params_kernel) const CUDA_KERNEL_NODE_PARAMS *nodeParams);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_KERNEL))
CUresult cuGraphKernelNodeGetParams(
        CUgraphNode hNode,
        OUT COMPUTE(gpc_node_get_kernel_params_v1) CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_KERNEL))
CUresult cuGraphKernelNodeGetParams_v2(
        CUgraphNode hNode,
        OUT COMPUTE(gpc_node_get_kernel_params) CUDA_KERNEL_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, nodeParams))
CUresult cuGraphKernelNodeSetParams(
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_kernel_v1) const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams);

GP_LOCAL(FORWARD(cuGraphNodeSetParams, hNode, nodeParams))
CUresult cuGraphKernelNodeSetParams_v2(
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_kernel) const CUDA_KERNEL_NODE_PARAMS *nodeParams);

GP_LOCAL()
CUresult cuGraphKernelNodeCopyAttributes(
        CUgraphNode dst,
        CUgraphNode src);

GP_LOCAL(REQUIRE(params.type, CU_GRAPH_NODE_TYPE_KERNEL))
CUresult cuGraphKernelNodeGetAttribute(
        CUgraphNode hNode,
        CUkernelNodeAttrID attr,
        OUT COMPUTE(gpc_node_get_kernel_attribute, attr) CUkernelNodeAttrValue *value_out);

GP_LOCAL(VIA(gpGraphRoot, gpGraphNode))
CUresult cuGraphKernelNodeSetAttribute(
        CUgraphNode hNode,
        CUkernelNodeAttrID attr,
        IN const CUkernelNodeAttrValue *value);

GP_LOCAL(FORWARD(cuGraphAddNode_v2, phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams))
CUresult cuGraphAddNode(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        size_t numDependencies,
        BY_HOOK CUgraphNodeParams *nodeParams);

GP_LOCAL()
CUresult cuGraphAddNode_v2(
        OUT CUgraphNode *phGraphNode,
        CUgraph hGraph,
        IN_N(numDependencies) OPT const CUgraphNode *dependencies,
        IN_N(numDependencies) OPT const CUgraphEdgeData *dependencyData,
        size_t numDependencies,
        BY_HOOK CUgraphNodeParams *nodeParams);

GP_LOCAL()
CUresult cuGraphNodeSetParams(
        CUgraphNode hNode,
        BY_HOOK CUgraphNodeParams *nodeParams);

/* An object that is destroyed with the last graph that references it, by a function of the
 * application. */
GP_LOCAL()
CUresult cuUserObjectCreate(
        OUT CUuserObject *object_out,
        BY_HOOK void *ptr,
        CUhostFn destroy,
        unsigned int initialRefcount,
        unsigned int flags);

GP_LOCAL()
CUresult cuUserObjectRetain(
        CUuserObject object,
        unsigned int count);

GP_LOCAL()
CUresult cuUserObjectRelease(
        CUuserObject object,
        unsigned int count);

GP_LOCAL()
CUresult cuGraphRetainUserObject(
        CUgraph graph,
        CUuserObject object,
        unsigned int count,
        unsigned int flags);

GP_LOCAL()
CUresult cuGraphReleaseUserObject(
        CUgraph graph,
        CUuserObject object,
        unsigned int count);

GP_DRIVER_OPTIONAL(cuCtxFromGreenCtx)
GP_DRIVER_OPTIONAL(cuGraphAddDependencies_v2)
GP_DRIVER_OPTIONAL(cuGraphAddEmptyNode)
GP_DRIVER_OPTIONAL(cuGraphAddKernelNode_v2)
GP_DRIVER_OPTIONAL(cuGraphAddMemcpyNode)
GP_DRIVER_OPTIONAL(cuGraphAddMemsetNode)
GP_DRIVER_OPTIONAL(cuGraphAddNode_v2)
GP_DRIVER_OPTIONAL(cuGraphConditionalHandleCreate)
GP_DRIVER_OPTIONAL(cuGraphCreate)
GP_DRIVER_OPTIONAL(cuGraphDestroy)
GP_DRIVER_OPTIONAL(cuGraphDestroyNode)
GP_DRIVER_OPTIONAL(cuGraphExecDestroy)
GP_DRIVER_OPTIONAL(cuGraphExecUpdate_v2)
GP_DRIVER_OPTIONAL(cuGraphGetNodes)
GP_DRIVER_OPTIONAL(cuGraphInstantiateWithFlags)
GP_DRIVER_OPTIONAL(cuGraphKernelNodeGetAttribute)
GP_DRIVER_OPTIONAL(cuGraphKernelNodeSetAttribute)
GP_DRIVER_OPTIONAL(cuGraphKernelNodeSetParams_v2)
GP_DRIVER_OPTIONAL(cuGraphLaunch)
GP_DRIVER_OPTIONAL(cuGraphRemoveDependencies_v2)
GP_DRIVER_OPTIONAL(cuGraphUpload)

/* Executables. Each set of nodes is the bulk tail (protocol/graph_plan.h). */
GP_MESSAGE(0x0a01, WAIT, SERVER_HOOK, BULK_IN, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpGraphMake(
        gp_context context,
        NEW gp_graph_plan plan);

/* gpGraphMake without a reply: each launch reports the error of the set. */
GP_MESSAGE(0x0a0b, POST, SERVER_HOOK, BULK_IN, CHARGES_NOTHING, NO_DTOH_WAIT, INVALIDATES_CHECKS)
void gpGraphPut(
        gp_context context,
        NEW gp_graph_plan plan);

/* Replaces the nodes of the set; the handle stays. */
GP_MESSAGE(0x0a02, POST, SERVER_HOOK, BULK_IN, NO_DTOH_WAIT)
void gpGraphRemake(
        gp_graph_plan plan);

GP_MESSAGE(0x0a03, POST, SERVER_HOOK, LAUNCHES, NO_DTOH_WAIT, UNBOUNDED, INVALIDATES_CHECKS, TRACE_NAME("graph"))
void gpGraphLaunch(
        gp_graph_plan plan,
        CUstream stream);

GP_MESSAGE(0x0a04, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpGraphDrop(
        DROP gp_graph_plan plan);

/* The root graph of conditional nodes: the driver's handles belong to one graph. */
GP_MESSAGE(0x0a05, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpGraphRoot(
        gp_context context,
        NEW gp_graph_root root);

/* cuGraphConditionalHandleCreate: device code uses the driver's value. */
GP_MESSAGE(0x0a06, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpGraphHandle(
        gp_graph_root root,
        unsigned int value,
        unsigned int flags,
        OUT unsigned long long *handle);

/* Destroys the root graph. The client has destroyed all sets with its conditional handles. */
GP_MESSAGE(0x0a07, POST, SERVER_HOOK, AFTER_ALL)
void gpGraphRootDrop(
        DROP gp_graph_root root);

/* gpGraphMake for a graph that kernels may launch: device code uses the driver's value of the
 * executable. */
GP_MESSAGE(0x0a08, WAIT, SERVER_HOOK, BULK_IN, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpGraphMakeLaunchable(
        gp_context context,
        NEW gp_graph_plan plan,
        OUT unsigned long long *exec);

/* A kernel node that kernels change: device code uses the driver's value. The bulk tail is a plan
 * with this node. */
GP_MESSAGE(0x0a0a, WAIT, SERVER_HOOK, BULK_IN, NO_DTOH_WAIT, OWN_RESULT)
void gpGraphNode(
        gp_graph_root root,
        OUT unsigned long long *node);

/* Uploads a graph that kernels launch to the device, in stream order. */
GP_MESSAGE(0x0a09, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpGraphUpload(
        gp_graph_plan plan,
        CUstream stream);

GP_LOCAL(VIA(gpGraphRoot, gpGraphHandle))
CUresult cuGraphConditionalHandleCreate(
        OUT CUgraphConditionalHandle *pHandle_out,
        CUgraph hGraph,
        CUcontext ctx,
        unsigned int defaultLaunchValue,
        unsigned int flags);

GP_LOCAL(VIA(gpGraphPut, gpGraphMake, gpGraphMakeLaunchable))
CUresult cuGraphInstantiateWithFlags(
        OUT CUgraphExec *phGraphExec,
        CUgraph hGraph,
        unsigned long long flags);

GP_LOCAL(ALIAS(cuGraphInstantiate), VIA(gpGraphPut, gpGraphMake, gpGraphMakeLaunchable))
CUresult cuGraphInstantiate_v2(
        OUT CUgraphExec *phGraphExec,
        CUgraph hGraph,
        OUT CUgraphNode *phErrorNode,
        BY_HOOK char *logBuffer,
        size_t bufferSize);

GP_LOCAL(VIA(gpGraphPut, gpGraphMake, gpGraphMakeLaunchable))
CUresult cuGraphInstantiateWithParams(
        OUT CUgraphExec *phGraphExec,
        CUgraph hGraph,
        BY_HOOK CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams);

GP_LOCAL(VIA(gpGraphDrop))
CUresult cuGraphExecDestroy(
        CUgraphExec hGraphExec);

GP_LOCAL()
CUresult cuGraphExecGetFlags(
        CUgraphExec hGraphExec,
        OUT COMPUTE(gpc_exec_flags) cuuint64_t *flags);

GP_LOCAL(VIA(gpGraphLaunch, gpGraphRemake), CAPTURE(refused), QUICK)
CUresult cuGraphLaunch(
        CUgraphExec hGraphExec,
        CUstream hStream);

GP_LOCAL(VIA(gpGraphUpload, gpGraphRemake), CAPTURE(unaffected))
CUresult cuGraphUpload(
        CUgraphExec hGraphExec,
        CUstream hStream);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, nodeParams), VIA(gpGraphRemake))
CUresult cuGraphExecKernelNodeSetParams(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_kernel_v1) const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, nodeParams), VIA(gpGraphRemake))
CUresult cuGraphExecKernelNodeSetParams_v2(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_kernel) const CUDA_KERNEL_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, copyParams), VIA(gpGraphRemake))
CUresult cuGraphExecMemcpyNodeSetParams(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_copy, ctx) const CUDA_MEMCPY3D *copyParams,
        CUcontext ctx);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, memsetParams), VIA(gpGraphRemake))
CUresult cuGraphExecMemsetNodeSetParams(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_memset, ctx) const CUDA_MEMSET_NODE_PARAMS *memsetParams,
        CUcontext ctx);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, nodeParams), VIA(gpGraphRemake))
CUresult cuGraphExecBatchMemOpNodeSetParams(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_mem_ops) const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, nodeParams), VIA(gpGraphRemake))
CUresult cuGraphExecHostNodeSetParams(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        IN CONVERT(gpc_generic_params_host) const CUDA_HOST_NODE_PARAMS *nodeParams);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, event), VIA(gpGraphRemake))
CUresult cuGraphExecEventRecordNodeSetEvent(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        CONVERT(gpc_generic_params_event, CU_GRAPH_NODE_TYPE_EVENT_RECORD) CUevent event);

GP_LOCAL(FORWARD(cuGraphExecNodeSetParams, hGraphExec, hNode, event), VIA(gpGraphRemake))
CUresult cuGraphExecEventWaitNodeSetEvent(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        CONVERT(gpc_generic_params_event, CU_GRAPH_NODE_TYPE_WAIT_EVENT) CUevent event);

GP_LOCAL(VIA(gpGraphRemake))
CUresult cuGraphExecChildGraphNodeSetParams(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        CUgraph childGraph);

GP_LOCAL(VIA(gpGraphRemake))
CUresult cuGraphExecNodeSetParams(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        BY_HOOK CUgraphNodeParams *nodeParams);

GP_LOCAL(VIA(gpGraphRemake))
CUresult cuGraphNodeSetEnabled(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        unsigned int isEnabled);

GP_LOCAL()
CUresult cuGraphNodeGetEnabled(
        CUgraphExec hGraphExec,
        CUgraphNode hNode,
        OUT unsigned int *isEnabled);

GP_LOCAL(VIA(gpGraphRemake))
CUresult cuGraphExecUpdate(
        CUgraphExec hGraphExec,
        CUgraph hGraph,
        OUT CUgraphNode *hErrorNode_out,
        OUT CUgraphExecUpdateResult *updateResult_out);

GP_LOCAL(VIA(gpGraphRemake))
CUresult cuGraphExecUpdate_v2(
        CUgraphExec hGraphExec,
        CUgraph hGraph,
        OUT CUgraphExecUpdateResultInfo *resultInfo);
