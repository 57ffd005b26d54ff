/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of unsupported features, on standard error and in the error history (log_history.h), with
 * an alternative. A value of enum gpc_unsupported_feature is reported once per process. Nothing is
 * reported if GPUPOOL_LOG contains quiet.
 *
 * Threads: any thread, at any time.
 */
#ifndef GPC_UNSUPPORTED_FEATURE_H
#define GPC_UNSUPPORTED_FEATURE_H

#include <cuda.h>

/* Unsupported parts of calls that are supported otherwise, and exceeded limits.
 * unsupported_feature.c has the text of each. */
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

/* Reports the feature unless it was reported before in this process. Always returns
 * CUDA_ERROR_NOT_SUPPORTED. */
CUresult gpc_not_supported(enum gpc_unsupported_feature feature);

/* Reports that `what`, the subject of the printed sentence, is not supported, on each call, by
 * gpc_log_always() (log.h). instead: an alternative; NULL: none. The strings are used only during
 * the call. */
void gpc_not_supported_report(const char *what, const char *instead);

#endif /* GPC_UNSUPPORTED_FEATURE_H */
