/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's memory: files of the ledger and of tenants, and the parts that a worker maps. */
#include "server/common/base/log.h"
#include "server/common/ledger/ledger_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The C library's headers may lack it; since Linux 5.1. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* A tenant's file: its part, then the parts of all sessions, of which only its own are used. */
#define TENANT_PART offsetof(struct gpd_ledger_tenant, bandwidth_max)
#define TENANT_PART_SIZE (sizeof(struct gpd_ledger_tenant) - TENANT_PART)
#define SESSION_PART offsetof(struct gpd_ledger_session, logged)
#define SESSION_PART_SIZE (sizeof(struct gpd_ledger_session) - SESSION_PART)
#define FILE_SIZE (TENANT_PART_SIZE + GPD_LEDGER_SESSIONS * SESSION_PART_SIZE)

/* The ledger that this process has attached, as a worker. */
static struct {
	struct gpd_ledger *ledger; /* NULL: none */
	/* Files of the tenants, mapped for reading; valid if identities[i], the tenant's, is not 0.
	 * Written by the main thread before the tenant's first session in this process opens. */
	void *files[GPD_LEDGER_TENANTS];
	uint64_t identities[GPD_LEDGER_TENANTS];
} attached;

bool
gpd_ledger_is_attached(const struct gpd_ledger *ledger)
{
	return ledger == attached.ledger;
}

/* Creates a file that no process can truncate: others would get SIGBUS. */
static int
file_create(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool
file_has_size(int fd, size_t size)
{
	struct stat status;

	if (fstat(fd, &status) == 0 && (size_t)status.st_size == size)
		return true;
	errno = EINVAL;
	return false;
}

static off_t
session_get_offset(uint32_t entry)
{
	return (off_t)(TENANT_PART_SIZE + entry * SESSION_PART_SIZE);
}

/* Replaces the mapping of a part atomically, also while other threads use it. */
static bool
part_map(void *part, size_t size, int fd, off_t offset)
{
	return mmap(part, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset) !=
	       MAP_FAILED;
}

static bool
tenant_map(struct gpd_ledger_tenant *tenant, int fd)
{
	return part_map((char *)tenant + TENANT_PART, TENANT_PART_SIZE, fd, 0);
}

bool
gpd_ledger_map_session(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int fd)
{
	return part_map((char *)session + SESSION_PART, SESSION_PART_SIZE, fd,
			session_get_offset(gpd_ledger_index(ledger, session)));
}

/* Only the mapping that there is can be written afterwards. */
static void
file_seal(int fd)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0)
		return;
	gpd_warning("workers can write accounts of all tenants: the kernel is older than 5.1");
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
}

struct gpd_ledger *
gpd_ledger_create(int *fd_p)
{
	int fd = file_create("gpupool-ledger", sizeof(struct gpd_ledger));
	struct gpd_ledger *ledger = MAP_FAILED;

	if (fd >= 0)
		ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ledger != MAP_FAILED && !gpd_ledger_add_tenant(ledger, GPD_TENANT_DEFAULT, "default")) {
		gpd_ledger_destroy(ledger);
		ledger = MAP_FAILED;
	}
	*fd_p = -1;
	if (ledger == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	file_seal(fd);
	atomic_init(&ledger->host_max, GPD_NO_LIMIT);
	(void)!getrandom(&ledger->daemon, sizeof(ledger->daemon), 0);
	*fd_p = fd;
	return ledger;
}

bool
gpd_ledger_add_tenant(struct gpd_ledger *ledger, uint32_t index, const char *name)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[index];
	int fd = file_create("gpupool-tenant", FILE_SIZE);

	if (fd < 0 || !tenant_map(tenant, fd)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (tenant->identity)
		close(tenant->fd);
	memset(tenant, 0, TENANT_PART);
	tenant->fd = fd;
	atomic_init(&tenant->bandwidth_max, GPD_NO_LIMIT);
	for (int d = 0; d < GPD_LEDGER_LINES; d++) {
		atomic_init(&tenant->devices[d].memory_max, GPD_NO_LIMIT);
		atomic_init(&tenant->devices[d].weight, 100);
		atomic_init(&tenant->devices[d].limit, 100);
	}
	tenant->identity = ++ledger->tenant_identities;
	(void)snprintf(tenant->name, sizeof(tenant->name), "%s", name);
	return true;
}

static void
tenants_close(const struct gpd_ledger *ledger)
{
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (ledger->tenants[i].identity)
			close(ledger->tenants[i].fd);
	}
}

static void
ledger_detach(void)
{
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (attached.identities[i])
			(void)munmap(attached.files[i], FILE_SIZE);
		attached.identities[i] = 0;
	}
	attached.ledger = NULL;
}

void
gpd_ledger_destroy(struct gpd_ledger *ledger)
{
	if (!ledger)
		return;
	if (gpd_ledger_is_attached(ledger))
		ledger_detach();
	else
		tenants_close(ledger);
	(void)munmap(ledger, sizeof(*ledger));
}

struct gpd_ledger *
gpd_ledger_attach(int fd, gpd_ledger_send_query *send)
{
	struct gpd_ledger *ledger = MAP_FAILED;

	if (file_has_size(fd, sizeof(*ledger)))
		ledger = mmap(NULL, sizeof(*ledger), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (ledger == MAP_FAILED)
		return NULL;
	attached.ledger = ledger;
	gpd_ledger_set_query(send);
	return ledger;
}

/* Maps the tenant's part, unless it is mapped already, and the tenant's file for
 * gpd_ledger_read_line(). */
static bool
tenant_attach(struct gpd_ledger *ledger, uint32_t index, int fd)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[index];
	void *file;

	if (attached.identities[index] == tenant->identity)
		return true;
	file = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return false;
	if (!tenant_map(tenant, fd)) {
		(void)munmap(file, FILE_SIZE);
		return false;
	}
	/* The entry of a former tenant has been reused. */
	if (attached.identities[index])
		(void)munmap(attached.files[index], FILE_SIZE);
	attached.files[index] = file;
	attached.identities[index] = tenant->identity;
	return true;
}

bool
gpd_ledger_attach_session(struct gpd_ledger *ledger, uint32_t entry, int fd)
{
	struct gpd_ledger_session *session = &ledger->sessions[entry];
	uint32_t index = session->tenant;
	bool ok = file_has_size(fd, FILE_SIZE) && gpd_ledger_map_session(ledger, session, fd) &&
		  tenant_attach(ledger, index, fd);

	if (fd >= 0)
		close(fd);
	return ok;
}

int
gpd_ledger_share(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session)
{
	return fcntl(ledger->tenants[session->tenant].fd, F_DUPFD_CLOEXEC, 3);
}

void
gpd_ledger_read_line(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		     int device, struct gpd_ledger_line *line)
{
	const struct gpd_ledger_line *from = &session->devices[device];
	size_t offset = (size_t)session_get_offset(gpd_ledger_index(ledger, session)) +
			(size_t)((const char *)from - (const char *)session) - SESSION_PART;

	if (gpd_ledger_is_attached(ledger))
		from = (const struct gpd_ledger_line *)((const char *)
								attached.files[session->tenant] +
							offset);
	memcpy(line, from, sizeof(*line));
}

void
gpd_ledger_clear_session(struct gpd_ledger_session *session)
{
	(void)madvise((char *)session + SESSION_PART, SESSION_PART_SIZE, MADV_REMOVE);
}
