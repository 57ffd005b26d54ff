/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices used by connections, and the memory registered with them. */
#include "base/lock.h"
#include "transport/private_fd.h"
#include "transport/rdma/rdma.h"
#include "transport/rdma/registered_memory.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maximum number of daemons of a program, with a margin for those reached through two devices. */
#define DEVICES_MAX 32
#define READS_MAX 16
/* Vendor IDs of Soft-RoCE, Soft-iWARP, Omni-Path and its predecessor. */
static const uint32_t kernel_post_vendors[] = { 0xffffff, 0x626d74, 0x1175 };

/* Registrations of each device, [0] for this end's use only, [1] with a key for the peer. */
struct gp_memory_registrations {
	struct ibv_mr *mr[DEVICES_MAX][2];
	bool failed[DEVICES_MAX][2];
};

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_rdma_device *devices GP_GUARDED_BY(devices_lock);
static const struct gp_rdma_device *device_at[DEVICES_MAX] GP_GUARDED_BY(devices_lock);
static unsigned int device_count GP_GUARDED_BY(devices_lock);

static struct gp_rdma_device *
device_create(struct ibv_context *verbs, const struct sockaddr_storage *peer)
	GP_LOCKED(devices_lock)
{
	struct gp_rdma_device *device = calloc(1, sizeof(*device));
	struct ibv_device_attr attr;

	if (!device)
		return NULL;
	device->verbs = verbs;
	device->peer = *peer;
	device->process = getpid();
	device->pd = gp_rdma_lib.ibv_alloc_pd(verbs);
	if (!device->pd || gp_rdma_lib.ibv_query_device(verbs, &attr)) {
		if (device->pd)
			(void)gp_rdma_lib.ibv_dealloc_pd(device->pd);
		free(device);
		return NULL;
	}
	for (size_t i = 0; i < sizeof(kernel_post_vendors) / sizeof(kernel_post_vendors[0]); i++)
		device->posts_by_kernel |= attr.vendor_id == kernel_post_vendors[i];
	gp_fd_guard_mark(verbs->cmd_fd);
	gp_fd_guard_mark(verbs->async_fd);
	device_at[device_count] = device;
	device->index = device_count++;
	device->reads_max = attr.max_qp_rd_atom < 1           ? 1
			    : attr.max_qp_rd_atom > READS_MAX ? READS_MAX
							      : (unsigned int)attr.max_qp_rd_atom;
	device->next = devices;
	devices = device;
	return device;
}

/* Returns NULL if there is none. *forked_p: the device was opened by a parent process. */
static struct gp_rdma_device *
device_find(struct ibv_context *verbs, const struct sockaddr_storage *peer, bool *forked_p)
	GP_LOCKED(devices_lock)
{
	struct gp_rdma_device *found = NULL;

	*forked_p = false;
	for (struct gp_rdma_device *d = devices; d; d = d->next) {
		if (d->verbs != verbs)
			continue;
		*forked_p |= d->process != getpid();
		if (memcmp(&d->peer, peer, sizeof(*peer)) == 0)
			found = d;
	}
	return found;
}

int
gp_rdma_device_get(struct ibv_context *verbs, const struct sockaddr *peer,
		   struct gp_rdma_device **device_p, char *detail, size_t size)
{
	struct sockaddr_storage address;
	struct gp_rdma_device *device;
	bool forked;

	memset(&address, 0, sizeof(address));
	if (peer)
		memcpy(&address, peer,
		       peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in));
	pthread_mutex_lock(&devices_lock);
	device = device_find(verbs, &address, &forked);
	if (!device && !forked && device_count < DEVICES_MAX)
		device = device_create(verbs, &address);
	pthread_mutex_unlock(&devices_lock);
	*device_p = device;
	/* libibverbs does not handle forks: it would continue to write to descriptors that are
	 * closed here. */
	if (forked) {
		(void)snprintf(detail, size,
			       "this process was forked by one that uses the RDMA device");
		return -EOPNOTSUPP;
	}
	if (device && !gp_rdma_device_is_usable(device)) {
		(void)snprintf(detail, size, "the program has closed the RDMA device's descriptor");
		return -EBADF;
	}
	if (device)
		return 0;
	(void)snprintf(detail, size, "the RDMA device cannot be used");
	return -ENODEV;
}

bool
gp_rdma_device_is_usable(const struct gp_rdma_device *device)
{
	return gp_fd_guard_is_marked(device->verbs->cmd_fd);
}

void
gp_rdma_device_abandon(struct gp_rdma_device *device) GP_LOCK_UNCHECKED
{
	if (!device->abandoned) {
		gp_fd_guard_close(device->verbs->cmd_fd);
		gp_fd_guard_close(device->verbs->async_fd);
	}
	device->abandoned = true;
	/* Without the lock: this is the only thread, and another thread of the parent may have held
	 * it. */
	for (struct gp_rdma_device *d = devices; d; d = d->next) {
		if (d->verbs == device->verbs)
			d->abandoned = true;
	}
}

static struct ibv_mr *
mr_register(struct gp_rdma_device *device, void *base, size_t size, bool remote)
{
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (!gp_rdma_device_is_usable(device)) {
		errno = EBADF;
		return NULL;
	}
	if (remote)
		access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	return gp_rdma_lib.ibv_reg_mr(device->pd, base, size, access);
}

int
gp_rdma_memory_alloc(struct gp_rdma_device *device, size_t size, bool remote, uint8_t **memory_p,
		     struct ibv_mr **mr_p)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (memory == MAP_FAILED)
		return -ENOMEM;
	*mr_p = mr_register(device, memory, size, remote);
	if (*mr_p) {
		*memory_p = memory;
		return 0;
	}
	r = errno ? -errno : -ENOMEM;
	(void)munmap(memory, size);
	return r;
}

void
gp_rdma_memory_free(uint8_t *memory, size_t size, struct ibv_mr *mr)
{
	if (mr)
		(void)gp_rdma_lib.ibv_dereg_mr(mr);
	if (memory)
		(void)munmap(memory, size);
}

int
gp_rdma_register_range(struct gp_rdma_device *device, void *base, size_t size, int dma_buf)
{
	struct gp_memory_registrations *registrations;
	struct ibv_mr *mr;

	if (dma_buf >= 0 && !gp_rdma_lib.ibv_reg_dmabuf_mr)
		return GP_E_UNSUPPORTED;
	registrations = calloc(1, sizeof(*registrations));
	if (!registrations)
		return -ENOMEM;
	errno = 0;
	mr = dma_buf >= 0 ? gp_rdma_lib.ibv_reg_dmabuf_mr(device->pd, 0, size, (uintptr_t)base,
							  dma_buf, IBV_ACCESS_LOCAL_WRITE)
			  : mr_register(device, base, size, false);
	if (!mr) {
		free(registrations);
		return errno ? -errno : -EIO;
	}
	registrations->mr[device->index][false] = mr;
	if (gp_memory_register_fixed(base, size, registrations))
		return 0;
	gp_memory_destroy_registrations(registrations);
	return -EEXIST;
}

struct ibv_mr *
gp_rdma_get_registration(struct gp_rdma_device *device, const void *base, size_t size, bool remote)
{
	struct gp_memory *memory = gp_memory_acquire(base, size);
	struct ibv_mr *mr = NULL;

	if (!memory)
		return NULL;
	if (!memory->registrations && !memory->has_fixed_registrations)
		memory->registrations = calloc(1, sizeof(*memory->registrations));
	if (memory->registrations) {
		mr = memory->registrations->mr[device->index][remote];
		if (!mr && !memory->has_fixed_registrations &&
		    !memory->registrations->failed[device->index][remote]) {
			mr = mr_register(device, memory->base, memory->size, remote);
			memory->registrations->mr[device->index][remote] = mr;
			memory->registrations->failed[device->index][remote] = !mr;
		}
	}
	gp_memory_release();
	return mr;
}

void
gp_memory_destroy_registrations(struct gp_memory_registrations *registrations) GP_LOCK_UNCHECKED
{
	for (unsigned int i = 0; registrations && i < DEVICES_MAX; i++) {
		for (int remote = 0; remote < 2; remote++) {
			/* The registration's device was created before it and is never freed. */
			if (registrations->mr[i][remote] && gp_rdma_device_is_usable(device_at[i]))
				(void)gp_rdma_lib.ibv_dereg_mr(registrations->mr[i][remote]);
		}
	}
	free(registrations);
}
