/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An RDMA device that is the test's, for connections of the transport: libraries and kernel are
 * left out.  What posts, polls, registers or tells of events, the test puts into verbs.ops and
 * gp_rdma_lib behind fake_rdma_set_up(); all else does nothing, and succeeds.  One connection at a
 * time.
 */
#ifndef TESTS_FAKE_RDMA_H
#define TESTS_FAKE_RDMA_H

#include "transport/rdma/rdma.h"

struct fake_rdma {
	struct ibv_context verbs;
	struct ibv_qp qp;
	struct ibv_comp_channel channel; /* an eventfd, while there is a connection */
	struct gp_rdma_device device;
};

extern struct fake_rdma fake_rdma;

/* Puts its functions into gp_rdma_lib; again: as they were. */
void fake_rdma_set_up(void);

/* A connection on it, as rdma_cm would have made one; gp_conn_destroy() ends it.  NULL: no memory
 * or descriptors. */
struct gp_rdma_conn *fake_rdma_create(bool server);

#endif /* TESTS_FAKE_RDMA_H */
