/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA backend of a build without libibverbs and librdmacm: all operations report that RDMA is not
 * supported. */
#include "transport/backend.h"
#include "transport/rdma/registered_memory.h"

#include <errno.h>
#include <stdio.h>

static int
absent_connect(const struct gp_transport_ops *ops, const struct gp_url *url, int timeout_ms,
	       struct gp_conn **conn_p, char *detail, size_t detail_size)
{
	(void)snprintf(detail, detail_size,
		       "gpupool was built without RDMA (meson -Drdma=enabled)");
	return -EOPNOTSUPP;
}

static int
absent_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
	      struct gp_listener **listener_p, char *detail, size_t detail_size)
{
	(void)snprintf(detail, detail_size,
		       "gpupool was built without RDMA (meson -Drdma=enabled)");
	return -EOPNOTSUPP;
}

void
gp_memory_destroy_registrations(struct gp_memory_registrations *registrations)
{
}

const struct gp_transport_ops gp_rdma_ops = {
	.scheme = "rdma",
	.connect = absent_connect,
	.listen = absent_listen,
};
