/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: profiler control. No tool can be attached, so the calls have no effect. The
 * words are defined in vocabulary.h; codegen/README.md explains how to add a call. */

GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_SUCCESS))
CUresult cuProfilerStart(void);

GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_SUCCESS))
CUresult cuProfilerStop(void);
