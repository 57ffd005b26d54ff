/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pool lacks: the user is told once of each thing, and what the program may do instead,
 * unless GPUPOOL_LOG says quiet.  Any thread, at any time.
 */
#ifndef GPC_LACKS_H
#define GPC_LACKS_H

#include <cuda.h>

/* Parts of calls that work otherwise; and what is too much. */
enum gpc_lack {
	GPC_LACK_CONTEXTS_IN_GRAPH,
	GPC_LACK_HOST_COPY_IN_BODY,
	GPC_LACK_CONDITIONS_OF_SEVERAL,
	GPC_LACK_UPDATABLE_INSIDE,
	GPC_LACK_SEMAPHORE_NODE,
	GPC_LACK_LAUNCH_ATTRIBUTE,
	GPC_LACK_STREAM_PRIORITY,
	GPC_LACK_CORE_DUMP,
	GPC_LACK_SEVERAL_DEVICES,
	GPC_LACK_ARRAYS_OF_DAEMONS,
	GPC_LACK_MORE_NODES,
	GPC_LACKS,
};

/* Always CUDA_ERROR_NOT_SUPPORTED. */
CUresult gpc_lacks(enum gpc_lack lack);

/* The line itself; instead: or NULL. */
void gpc_lacks_tell(const char *what, const char *instead);

#endif /* GPC_LACKS_H */
