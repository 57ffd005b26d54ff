/* SPDX-License-Identifier: Apache-2.0 */
/* The RDMA device of a process: which connections share it, and which may not. */
#include "tests/fake_rdma.h"
#include "tests/test.h"
#include "transport/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_mr region = { .lkey = 1, .rkey = 1 };
static struct ibv_pd *registered_in;
static struct ibv_pd domains[8];
static unsigned int domain_count, given_back;
static bool unusable;

static struct ibv_pd *
alloc_pd(struct ibv_context *of)
{
	struct ibv_pd *made = &domains[domain_count++ % 8];

	*made = (struct ibv_pd){ .context = of };
	return made;
}

static int
dealloc_pd(struct ibv_pd *of)
{
	given_back++;
	return 0;
}

static int
query_device(struct ibv_context *of, struct ibv_device_attr *attr)
{
	if (unusable)
		return EIO;
	*attr = (struct ibv_device_attr){ .max_qp_rd_atom = 4 };
	return 0;
}

static struct ibv_mr *
reg_mr(struct ibv_pd *of, void *address, size_t length, int access)
{
	registered_in = of;
	return &region;
}

static int
dereg_mr(struct ibv_mr *mr)
{
	return 0;
}

static int
set_up(void **state)
{
	fake_rdma_set_up();
	gp_rdma_lib.ibv_alloc_pd = alloc_pd;
	gp_rdma_lib.ibv_dealloc_pd = dealloc_pd;
	gp_rdma_lib.ibv_query_device = query_device;
	gp_rdma_lib.ibv_reg_mr = reg_mr;
	gp_rdma_lib.ibv_dereg_mr = dereg_mr;
	return 0;
}

UNIT_TEST(nothing_is_kept_of_a_device_that_cannot_be_used)
{
	struct ibv_context broken = { .device = NULL };
	struct gp_rdma_device *found;
	char detail[160] = "";

	unusable = true;
	for (unsigned int i = 1; i <= 3; i++) {
		assert_int_equal(gp_rdma_device_get(&broken, NULL, &found, detail, sizeof(detail)),
				 -ENODEV);
		assert_null(found);
		assert_int_equal(given_back, i);
	}
	unusable = false;
}

static struct gp_rdma_device *
device_of(const char *host, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct gp_rdma_device *found;
	char detail[160];

	assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
	assert_int_equal(gp_rdma_device_get(&fake_rdma.verbs, (struct sockaddr *)&address, &found,
					    detail, sizeof(detail)),
			 0);
	return found;
}

/* Memory that is registered for one daemon is not accessible to another one, even with the key. */
UNIT_TEST(each_daemon_has_a_protection_domain_of_its_own)
{
	struct gp_rdma_device *a = device_of("10.0.0.1", 4833), *b = device_of("10.0.0.2", 4833);
	static uint8_t memory[65536];

	assert_ptr_equal(device_of("10.0.0.1", 4833), a);
	assert_ptr_not_equal(a, b);
	assert_ptr_not_equal(a->pd, b->pd);
	assert_ptr_not_equal(device_of("10.0.0.1", 4834)->pd, a->pd);
	gp_memory_register(memory, sizeof(memory));
	assert_ptr_equal(gp_rdma_get_registration(b, memory, sizeof(memory), true), &region);
	assert_ptr_equal(registered_in, b->pd);
	assert_ptr_equal(gp_rdma_get_registration(a, memory, sizeof(memory), true), &region);
	assert_ptr_equal(registered_in, a->pd);
	gp_memory_unregister(memory);
}

UNIT_TEST(the_child_of_a_fork_does_not_use_its_parents_device)
{
	union {
		struct sockaddr_in in;
		struct sockaddr address;
	} new = { .in = { .sin_family = AF_INET, .sin_port = 17 } };
	struct gp_rdma_device *found, *again;
	char detail[160] = "";
	pid_t child;
	int status;

	assert_int_equal(gp_rdma_device_get(&fake_rdma.verbs, NULL, &found, detail, sizeof(detail)),
			 0);
	assert_int_equal(gp_rdma_device_get(&fake_rdma.verbs, NULL, &again, detail, sizeof(detail)),
			 0);
	assert_ptr_equal(again, found);
	child = fork();
	if (child == 0)
		_exit(gp_rdma_device_get(&fake_rdma.verbs, NULL, &again, detail, sizeof(detail)) ==
					      -EOPNOTSUPP &&
				      strstr(detail, "forked") &&
				      /* Nor for a daemon that its parent does not know. */
				      gp_rdma_device_get(&fake_rdma.verbs, &new.address, &again,
							 detail, sizeof(detail)) == -EOPNOTSUPP
			      ? 0
			      : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

UNIT_TEST_MAIN(set_up, NULL)
