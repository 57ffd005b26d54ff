/* SPDX-License-Identifier: Apache-2.0 */
/* Links between GPUs, as other functions of NVML tell of them, too.  Any thread. */
#ifndef GPN_LINK_H
#define GPN_LINK_H

int gpn_nvmlDeviceGetNvLinkState(void *handle, unsigned int link, unsigned int *state);

#endif /* GPN_LINK_H */
