/* SPDX-License-Identifier: Apache-2.0 */
/* Launch attributes on their way to the wire, for launches and for the occupancy of clusters. */
#ifndef GPC_LAUNCH_H
#define GPC_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Encodes into memory (72 bytes for each attribute), to which bytes_p will point.  checked_p: the
 * driver must be asked before the application goes on.  CUDA_ERROR_NOT_SUPPORTED for attributes
 * that are not remoted.
 */
CUresult gpc_launch_attributes_encode(const CUlaunchAttribute *attributes, unsigned int count,
				      void *memory, size_t room, struct gp_bytes *bytes_p,
				      bool *checked_p);

#endif /* GPC_LAUNCH_H */
