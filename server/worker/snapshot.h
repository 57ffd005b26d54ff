/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker knows of its devices when it starts, as the part of Welcome that holds for all
 * sessions: the client answers device queries from it.  Packed by the worker, kept by the
 * supervisor.
 */
#ifndef GPD_SNAPSHOT_H
#define GPD_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

/* A malloc'ed packed Gpupool__Welcome; rdma_port: where lanes may come over RDMA, 0: nowhere.
 * 0, or -1 with one line in error. */
int gpd_snapshot_pack(uint16_t rdma_port, void **data_p, size_t *size_p, char *error,
		      size_t error_size);

#endif /* GPD_SNAPSHOT_H */
