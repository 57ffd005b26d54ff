/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pool lacks: the user is told once of each thing, and what the program may do instead,
 * unless GPUPOOL_LOG says quiet.  Any thread, at any time.
 */
#ifndef GPC_LACKS_H
#define GPC_LACKS_H

#include <cuda.h>

/* Parts of calls that work otherwise; and what is too much. */
enum gpc_unsupported_feature {
	GPC_UNSUPPORTED_CONTEXTS_IN_GRAPH,
	GPC_UNSUPPORTED_HOST_COPY_IN_BODY,
	GPC_UNSUPPORTED_CONDITIONS_OF_SEVERAL,
	GPC_UNSUPPORTED_NESTED_UPDATABLE,
	GPC_UNSUPPORTED_SEMAPHORE_NODE,
	GPC_UNSUPPORTED_LAUNCH_ATTRIBUTE,
	GPC_UNSUPPORTED_STREAM_PRIORITY,
	GPC_UNSUPPORTED_CORE_DUMP,
	GPC_UNSUPPORTED_SEVERAL_DEVICES,
	GPC_UNSUPPORTED_ARRAYS_OF_DAEMONS,
	GPC_UNSUPPORTED_MORE_NODES,
	GPC_UNSUPPORTED_COUNT,
};

/* Always CUDA_ERROR_NOT_SUPPORTED. */
CUresult gpc_not_supported(enum gpc_unsupported_feature feature);

/* The line itself; instead: or NULL. */
void gpc_not_supported_report(const char *what, const char *instead);

#endif /* GPC_LACKS_H */
