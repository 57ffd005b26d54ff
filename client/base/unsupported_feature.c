/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/unsupported_feature.h"

#include "client/base/log.h"

#include <stdatomic.h>

static const struct {
	const char *what, *instead;
} texts[GPC_UNSUPPORTED_COUNT] = {
	[GPC_UNSUPPORTED_CONTEXTS_IN_GRAPH] = { "a node of another context or device in the body "
						"of a "
						"condition",
						"such a node outside of conditions" },
	[GPC_UNSUPPORTED_HOST_COPY_IN_BODY] = { "a copy of host memory, or between devices, in the "
						"body of a condition",
						"a copy before the condition, to device memory" },
	[GPC_UNSUPPORTED_CONDITIONS_OF_SEVERAL] = { "a graph with conditions of several graphs, or "
						    "with "
						    "a step of the program between them",
						    "a graph for each" },
	[GPC_UNSUPPORTED_NESTED_UPDATABLE] = { "a node that kernels change, in a child or a body",
					       "such a node in the outermost graph" },
	[GPC_UNSUPPORTED_SEMAPHORE_NODE] = { "a node for semaphores",
					     "events, as the other API is on "
					     "another machine than the GPU" },
	[GPC_UNSUPPORTED_LAUNCH_ATTRIBUTE] = { "an attribute of a launch that is new, or for "
					       "graphs",
					       "a launch without it" },
	[GPC_UNSUPPORTED_STREAM_PRIORITY] = { "another priority for an existing stream",
					      "cuStreamCreateWithPriority" },
	[GPC_UNSUPPORTED_CORE_DUMP] = { "a core dump of the GPU",
					"the daemon's log, which names the kernel of a fault" },
	[GPC_UNSUPPORTED_SEVERAL_DEVICES] = { "a cooperative launch on several devices",
					      "a launch on each" },
	[GPC_UNSUPPORTED_MORE_NODES] = { "a program with more than a million nodes of graphs, "
					 "those of "
					 "clones and executables among them",
					 "destroying graphs that are not used any more" },
	[GPC_UNSUPPORTED_ARRAYS_OF_DAEMONS] = { "a copy between arrays of two daemons",
						"two copies, through host memory" },
};

void
gpc_not_supported_report(const char *what, const char *instead)
{
	if (gpc_log_is_enabled(GPC_LOG_QUIET))
		return;
	gpc_log_always("%s is not supported%s%s (GPUPOOL_LOG=quiet hides this message)", what,
		       instead ? "; instead: " : "", instead ? instead : "");
}

CUresult
gpc_not_supported(enum gpc_unsupported_feature feature)
{
	static atomic_bool reported[GPC_UNSUPPORTED_COUNT];

	if (!atomic_exchange(&reported[feature], true))
		gpc_not_supported_report(texts[feature].what, texts[feature].instead);
	return CUDA_ERROR_NOT_SUPPORTED;
}
