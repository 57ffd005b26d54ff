/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loader for libibverbs and librdmacm with dlopen(), so that a program without RDMA does not depend
 * on them. Their functions that are not inline are called through gp_rdma_lib, after
 * gp_rdma_lib_load() has returned 0.
 *
 * Ownership: the libraries stay loaded until the process ends.
 * Threads: any; gp_rdma_lib is constant after loading.
 */
#ifndef GP_RDMA_LIB_H
#define GP_RDMA_LIB_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

/* The header defines a macro of the same name as the function. */
#undef ibv_reg_mr

/* Functions of libibverbs and of librdmacm that are loaded. */
#define GP_RDMA_VERBS(X)                                                                           \
	X(ibv_ack_cq_events)                                                                       \
	X(ibv_alloc_pd)                                                                            \
	X(ibv_create_comp_channel)                                                                 \
	X(ibv_create_cq)                                                                           \
	X(ibv_dealloc_pd)                                                                          \
	X(ibv_dereg_mr)                                                                            \
	X(ibv_destroy_comp_channel)                                                                \
	X(ibv_destroy_cq)                                                                          \
	X(ibv_fork_init)                                                                           \
	X(ibv_get_cq_event)                                                                        \
	X(ibv_query_device)                                                                        \
	X(ibv_reg_mr)                                                                              \
	X(ibv_wc_status_str)
#define GP_RDMA_CM(X)                                                                              \
	X(rdma_accept)                                                                             \
	X(rdma_ack_cm_event)                                                                       \
	X(rdma_bind_addr)                                                                          \
	X(rdma_connect)                                                                            \
	X(rdma_create_event_channel)                                                               \
	X(rdma_create_id)                                                                          \
	X(rdma_create_qp)                                                                          \
	X(rdma_destroy_event_channel)                                                              \
	X(rdma_destroy_id)                                                                         \
	X(rdma_destroy_qp)                                                                         \
	X(rdma_disconnect)                                                                         \
	X(rdma_event_str)                                                                          \
	X(rdma_get_cm_event)                                                                       \
	X(rdma_get_src_port)                                                                       \
	X(rdma_listen)                                                                             \
	X(rdma_migrate_id)                                                                         \
	X(rdma_reject)                                                                             \
	X(rdma_resolve_addr)                                                                       \
	X(rdma_resolve_route)

/* Addresses of the libraries' functions. */
struct gp_rdma_lib {
	/* NULL in libraries before 2021, whose headers do not declare it. */
	struct ibv_mr *(*ibv_reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					    uint64_t iova, int fd, int access);
#define GP_RDMA_MEMBER(name) __typeof__(name) *name;
	GP_RDMA_VERBS(GP_RDMA_MEMBER)
	GP_RDMA_CM(GP_RDMA_MEMBER)
#undef GP_RDMA_MEMBER
};

extern struct gp_rdma_lib gp_rdma_lib;

/* Loads the libraries on the first call; may wait for the dynamic loader. Returns 0, or -EOPNOTSUPP
 * with the reason in detail (`size` bytes); the result never changes. */
int gp_rdma_lib_load(char *detail, size_t size);

#endif /* GP_RDMA_LIB_H */
