/* SPDX-License-Identifier: Apache-2.0 */
/* NVLink queries that other NVML functions of this library use. Threads: any; may wait for a reply
 * of the daemon. */
#ifndef GPN_LINK_H
#define GPN_LINK_H

/* Implements nvmlDeviceGetNvLinkState: sets *state to GPN_LINK_UP or GPN_LINK_DOWN. Returns enum
 * gpn_result; GPN_NOT_SUPPORTED if the device lacks peer access to any other device of the program.
 * *state is written only with GPN_SUCCESS. */
int gpn_nvmlDeviceGetNvLinkState(void *handle, unsigned int link, unsigned int *state);

#endif /* GPN_LINK_H */
