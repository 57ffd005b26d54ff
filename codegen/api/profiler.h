/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: profiler control. No tool can be attached, so the calls have no effect. */

GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_SUCCESS))
CUresult cuProfilerStart(void);

GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_SUCCESS))
CUresult cuProfilerStop(void);
