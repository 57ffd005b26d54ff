/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the fake CUDA driver of fake_session.h, which only counts them. */
#include "tests/unit/server/fake_driver.h"
#include "tests/unit/server/fake_session.h"

#include <stdint.h>

_Atomic int fake_driver_graphs, fake_driver_execs;
static uintptr_t last;

static CUresult
graph_create(CUgraph *graph, unsigned int flags)
{
	CUresult result = fake_driver_called("cuGraphCreate");

	if (result != CUDA_SUCCESS)
		return result;
	fake_driver_graphs++;
	*graph = (CUgraph)++last;
	return CUDA_SUCCESS;
}

static CUresult
graph_destroy(CUgraph graph)
{
	fake_driver_graphs--;
	return CUDA_SUCCESS;
}

static CUresult
add_empty(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
	*node = (CUgraphNode)++last;
	return fake_driver_called("cuGraphAddEmptyNode behind %zu", count);
}

static CUresult
add_fill(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
	 const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext ctx)
{
	*node = (CUgraphNode)++last;
	return fake_driver_called("cuGraphAddMemsetNode behind %zu: %zu x %zu", count, fill->width,
				  fill->height);
}

static CUresult
add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
	 const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
	*node = (CUgraphNode)++last;
	return fake_driver_called("cuGraphAddMemcpyNode behind %zu: %zu x %zu", count,
				  copy->WidthInBytes, copy->Height);
}

static CUresult
add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
	   const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	*node = (CUgraphNode)++last;
	return fake_driver_called("cuGraphAddKernelNode behind %zu: %s", count,
				  *(const char *const *)kernel->kern);
}

static CUresult
set_attribute(CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		return fake_driver_called("cuGraphKernelNodeSetAttribute priority %d",
					  value->priority);
	return fake_driver_called("cuGraphKernelNodeSetAttribute %d", (int)id);
}

static CUresult
instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	CUresult result = flags ? fake_driver_called("cuGraphInstantiate with %llu", flags)
				: fake_driver_called("cuGraphInstantiate");

	if (result != CUDA_SUCCESS)
		return result;
	fake_driver_execs++;
	*exec = (CUgraphExec)++last;
	return CUDA_SUCCESS;
}

static CUresult
exec_destroy(CUgraphExec exec)
{
	fake_driver_execs--;
	return fake_driver_called("cuGraphExecDestroy");
}

static CUresult
update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	return fake_driver_called("cuGraphExecUpdate");
}

static CUresult
upload(CUgraphExec exec, CUstream stream)
{
	return fake_driver_called("cuGraphUpload");
}

static CUresult
launch(CUgraphExec exec, CUstream stream)
{
	return fake_driver_called("cuGraphLaunch");
}

void
fake_driver_add_graphs(void)
{
	gpd_driver.cuGraphCreate = graph_create;
	gpd_driver.cuGraphDestroy = graph_destroy;
	gpd_driver.cuGraphAddEmptyNode = add_empty;
	gpd_driver.cuGraphAddMemsetNode = add_fill;
	gpd_driver.cuGraphAddMemcpyNode = add_copy;
	gpd_driver.cuGraphAddKernelNode_v2 = add_kernel;
	gpd_driver.cuGraphKernelNodeSetAttribute = set_attribute;
	gpd_driver.cuGraphInstantiateWithFlags = instantiate;
	gpd_driver.cuGraphExecDestroy = exec_destroy;
	gpd_driver.cuGraphExecUpdate_v2 = update;
	gpd_driver.cuGraphUpload = upload;
	gpd_driver.cuGraphLaunch = launch;
	fake_driver_graphs = fake_driver_execs = 0;
}
