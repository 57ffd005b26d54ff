/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuLaunchHostFunc, cuStreamAddCallback: functions of the application that run between two
 * operations of a stream.
 *
 * They run in this process, one at a time, on a thread of the session that is started with the
 * first one, when the daemon says that their turn has come; it carries out what is behind them when
 * it has been told that they have returned.  When the session is over those of cuStreamAddCallback
 * are called with its error, the others are not called, as with NVIDIA's driver.
 */
#ifndef GPC_HOST_FUNCTION_H
#define GPC_HOST_FUNCTION_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_session;

/* The daemon's note; by who reads the connection.  false: there is no such function. */
bool gpc_host_function_turn(struct gpc_session *session, uint32_t id, CUresult result);

/* Whether this thread is inside one: CUDA calls are not permitted there. */
extern __thread bool gpc_in_host_function __attribute__((tls_model("initial-exec")));

#endif /* GPC_HOST_FUNCTION_H */
