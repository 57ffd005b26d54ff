/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake RDMA device for connections of the transport, without an RDMA library, kernel module or
 * hardware.
 *
 * A test replaces functions of the verbs (fake_rdma.verbs.ops) and of the RDMA library
 * (gp_rdma_lib) after fake_rdma_set_up(), for example to post, poll, register memory or report
 * events. All other functions do nothing and succeed; waits for events find none.
 * Ownership: the device is static.
 * Threads: one connection at a time, used by one thread.
 */
#ifndef TESTS_FAKE_RDMA_H
#define TESTS_FAKE_RDMA_H

#include "transport/rdma/rdma.h"

/* The objects that a connection refers to. */
struct fake_rdma {
	struct ibv_context verbs;
	struct ibv_qp qp;
	struct ibv_comp_channel channel; /* its fd is an eventfd while a connection exists */
	struct gp_rdma_device device;
};

extern struct fake_rdma fake_rdma;

/* Writes the fake's functions to gp_rdma_lib. Another call restores them after a test has replaced
 * some. */
void fake_rdma_set_up(void);

/* Returns a new connection on the fake device, in the state that rdma_cm would create it in. The
 * caller destroys it with gp_conn_destroy(). NULL: no memory or descriptors. */
struct gp_rdma_conn *fake_rdma_create(bool server);

#endif /* TESTS_FAKE_RDMA_H */
