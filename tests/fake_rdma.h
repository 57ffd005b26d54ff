/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake RDMA device for connections of the transport, without an RDMA library, kernel module or
 * hardware.
 *
 * A test replaces functions of the verbs (fake_rdma.verbs.ops) and of the RDMA library
 * (gp_rdma_lib) after fake_rdma_set_up(), for example to post, poll, register memory or report
 * events. All other functions do nothing and succeed.
 * Threads: one connection at a time, used by one thread.
 */
#ifndef TESTS_FAKE_RDMA_H
#define TESTS_FAKE_RDMA_H

#include "transport/rdma/rdma.h"

struct fake_rdma {
	struct ibv_context verbs;
	struct ibv_qp qp;
	struct ibv_comp_channel channel; /* an eventfd while a connection exists */
	struct gp_rdma_device device;
};

extern struct fake_rdma fake_rdma;

/* Puts the fake's functions into gp_rdma_lib. A further call undoes what a test has replaced
 * there. */
void fake_rdma_set_up(void);

/* Returns a new connection on the fake device, as rdma_cm would create it, or NULL without memory
 * or descriptors. The caller destroys it with gp_conn_destroy(). */
struct gp_rdma_conn *fake_rdma_create(bool server);

#endif /* TESTS_FAKE_RDMA_H */
