/* SPDX-License-Identifier: Apache-2.0 */
/* NVLink queries that other NVML functions of this library use. Threads: any; may wait for a reply
 * of the daemon. */
#ifndef GPN_LINK_H
#define GPN_LINK_H

/* Implements nvmlDeviceGetNvLinkState: sets *state to GPN_LINK_UP or GPN_LINK_DOWN. Returns enum
 * gpn_result (nvml.h): GPN_INVALID_ARGUMENT for an invalid handle, a `link` of GP_STATE_LINKS
 * (protocol/device_state.h) or more, or state NULL; GPN_NOT_SUPPORTED if the program has no other
 * device, or the device lacks peer access to one of them, or the daemon does not report the link;
 * or an error of gpn_get_value() (pool.h). *state is written only with GPN_SUCCESS. */
int gpn_nvmlDeviceGetNvLinkState(void *handle, unsigned int link, unsigned int *state);

#endif /* GPN_LINK_H */
