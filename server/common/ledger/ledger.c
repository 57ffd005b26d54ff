/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/ledger.h"

#include "base/clock.h"
#include "server/common/base/integers.h"
#include "server/common/base/log.h"
#include "server/common/base/size_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Limits of one slot on the link. */
#define LINK_BYTES_MIN ((uint64_t)4 << 10)
#define LINK_BYTES_MAX ((uint64_t)1 << 20)

/* The C library's headers may lack it; since Linux 5.1. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Time after which a query counts as unanswered. */
#define ANSWER_NS UINT64_C(1000000000)
/* A tenant that needs more of the shared host memory gets more than it needs, by this part of all
 * of it, so that few charges need a query. */
#define HOST_GRANTS 64

/* A tenant's file: its part, then the parts of all sessions, of which only its own are used. */
#define TENANT_PART offsetof(struct gpd_ledger_tenant, bandwidth_max)
#define TENANT_PART_SIZE (sizeof(struct gpd_ledger_tenant) - TENANT_PART)
#define SESSION_PART offsetof(struct gpd_ledger_session, logged)
#define SESSION_PART_SIZE (sizeof(struct gpd_ledger_session) - SESSION_PART)
#define FILE_SIZE (TENANT_PART_SIZE + GPD_LEDGER_SESSIONS * SESSION_PART_SIZE)

/* The ledger that this process has attached, as a worker. */
static struct {
	struct gpd_ledger *ledger; /* NULL: none */
	gpd_ledger_send_query *send;
	pthread_mutex_t lock; /* held during a query */
	uint32_t serial;      /* of the last query; protected by lock */
	/* Files of the tenants, mapped for reading; valid if identities[i], the tenant's, is not 0.
	 * Written by the main thread before the tenant's first session in this process opens. */
	void *files[GPD_LEDGER_TENANTS];
	uint64_t identities[GPD_LEDGER_TENANTS];
} attached = { .lock = PTHREAD_MUTEX_INITIALIZER };

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

static bool
session_map(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int fd)
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
	attached.send = send;
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
	bool ok = file_has_size(fd, FILE_SIZE) && session_map(ledger, session, fd) &&
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

/* Sends the query and waits for its answer. Returns false if there is none. */
static bool
query_send_locked(const struct gpd_ledger_session *session, struct gpd_ledger_query *query)
{
	const _Atomic uint32_t *serial = &session->answer.serial;
	uint64_t until = gp_now_ns() + ANSWER_NS, now = 0;
	uint32_t seen;

	query->serial = ++attached.serial;
	if (!attached.send || !attached.send(atomic_load(&session->id), query))
		return false;
	while ((seen = atomic_load(serial)) != query->serial && (now = gp_now_ns()) < until) {
		const struct timespec left = { .tv_sec = (time_t)((until - now) / 1000000000),
					       .tv_nsec = (long)((until - now) % 1000000000) };

		(void)syscall(SYS_futex, serial, FUTEX_WAIT, seen, &left, NULL, 0);
	}
	return seen == query->serial;
}

static struct gpd_ledger_answer answer_compute(struct gpd_ledger *ledger,
					       struct gpd_ledger_session *session,
					       const struct gpd_ledger_query *query);

static struct gpd_ledger_answer
ledger_query(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
	     struct gpd_ledger_query query)
{
	struct gpd_ledger_answer answer = { 0 };

	if (!gpd_ledger_is_attached(ledger))
		return answer_compute((struct gpd_ledger *)ledger,
				      (struct gpd_ledger_session *)session, &query);
	if (atomic_load(&ledger->sessions_open) <= 1 && query.type != GPD_LEDGER_HOST)
		return answer;
	pthread_mutex_lock(&attached.lock);
	if (query_send_locked(session, &query)) {
		answer.result = session->answer.result;
		answer.reclaimable = session->answer.reclaimable;
	}
	pthread_mutex_unlock(&attached.lock);
	return answer;
}

void
gpd_ledger_answer(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
		  const struct gpd_ledger_query *query)
{
	struct gpd_ledger_answer answer = answer_compute(ledger, session, query);

	session->answer.result = answer.result;
	session->answer.reclaimable = answer.reclaimable;
	atomic_store(&session->answer.serial, query->serial);
	(void)syscall(SYS_futex, &session->answer.serial, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Chosen when the session opens, because the limit of a client cannot be lowered later. */
static uint64_t
choose_deferred_max(const struct gpd_ledger *ledger)
{
	uint64_t max = atomic_load(&ledger->host_max) / 2;
	uint64_t more = GP_DEFERRED_QUEUE_MAX - GPD_DEFERRED_QUEUE_MIN, total = 0;

	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));)
		total += s->deferred_max - GPD_DEFERRED_QUEUE_MIN;
	return max >= more && total <= max - more ? GP_DEFERRED_QUEUE_MAX : GPD_DEFERRED_QUEUE_MIN;
}

struct gpd_ledger_session *
gpd_ledger_open(struct gpd_ledger *ledger, uint64_t id, uint32_t tenant, int32_t worker)
{
	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		struct gpd_ledger_session *session = &ledger->sessions[i];

		if (atomic_load(&session->id) != 0)
			continue;
		/* Without a tenant's file, as in unit tests, the part is in the common file. */
		if (ledger->tenants[tenant].identity &&
		    !session_map(ledger, session, ledger->tenants[tenant].fd))
			return NULL;
		memset(session, 0, sizeof(*session));
		session->tenant = tenant;
		session->worker = worker;
		session->deferred_max = choose_deferred_max(ledger);
		for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
			atomic_init(&session->devices[d].allowed, 1);
			atomic_init(&session->devices[d].memory_max, GPD_NO_LIMIT);
		}
		atomic_init(&session->devices[GPD_LEDGER_CODE].memory_max, GPD_CODE_SESSION_MAX);
		atomic_init(&session->devices[GPD_LEDGER_PINNED].memory_max, GPD_NO_LIMIT);
		if (atomic_load(&ledger->sessions_used) <= (uint32_t)i)
			atomic_store(&ledger->sessions_used, (uint32_t)i + 1);
		atomic_store(&session->id, id);
		atomic_fetch_add(&ledger->sessions_open, 1);
		atomic_fetch_add(&ledger->tenants[tenant].sessions, 1);
		atomic_fetch_add(&ledger->tenants[tenant].sessions_total, 1);
		return session;
	}
	return NULL;
}

uint32_t
gpd_ledger_index(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session)
{
	return (uint32_t)(session - ledger->sessions);
}

struct gpd_ledger_session *
gpd_ledger_find(struct gpd_ledger *ledger, uint64_t id)
{
	struct gpd_ledger_session *session = gpd_ledger_next(ledger, NULL, GPD_LEDGER_ANY_WORKER);

	while (session && atomic_load(&session->id) != id)
		session = gpd_ledger_next(ledger, session, GPD_LEDGER_ANY_WORKER);
	return session;
}

void
gpd_ledger_summary(const struct gpd_ledger_session *session, char *text, size_t size)
{
	const struct gpd_ledger_counts *counts = &session->counts;
	char in[GPD_SIZE_TEXT_MAX], out[GPD_SIZE_TEXT_MAX], most[GPD_SIZE_TEXT_MAX];
	uint64_t peak = 0;

	for (int i = 0; i < GPD_LEDGER_DEVICES; i++)
		peak += atomic_load(&session->devices[i].memory_peak);
	snprintf(text, size, "%llu launches, %llu copies, %s in, %s out, at most %s of memory",
		 (unsigned long long)atomic_load(&counts->launches),
		 (unsigned long long)atomic_load(&counts->copies),
		 gpd_size_format(atomic_load(&counts->copied_in), in),
		 gpd_size_format(atomic_load(&counts->copied_out), out),
		 gpd_size_format(peak, most));
}

/* clang-format off */
#define ADD(name) gpd_ledger_count(&to->name, from->name);
/* clang-format on */

static void
tenant_add_counts(struct gpd_ledger_tenant *tenant, const struct gpd_ledger_session *session)
{
	const struct gpd_ledger_counts *from = &session->counts;
	struct gpd_ledger_counts *to = &tenant->ended;

	GPD_LEDGER_EACH_COUNT(ADD)
	for (int d = 0; d < GPD_LEDGER_DEVICES; d++)
		gpd_ledger_count(&tenant->devices[d].gpu_ns, session->devices[d].gpu_ns);
}

/* Only later reservations start earlier; existing ones keep their start. The limit still holds,
 * because the returned time is in the future. */
static void
link_refund(struct gpd_ledger_tenant *tenant, uint64_t ns)
{
	uint64_t before = atomic_load(&tenant->link_free_ns);

	while (ns && !atomic_compare_exchange_weak(&tenant->link_free_ns, &before,
						   before > ns ? before - ns : 0))
		;
}

void
gpd_ledger_close(struct gpd_ledger *ledger, struct gpd_ledger_session *session)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	bool last;

	for (int d = 0; d < GPD_LEDGER_LINES; d++) {
		gpd_ledger_uncharge(ledger, session, d, atomic_load(&session->devices[d].memory));
		gpd_ledger_set_allowance(ledger, session, d, 0, 0);
	}
	gpd_ledger_uncharge_host(ledger, session, atomic_load(&session->host));
	/* Non-zero only if the worker was killed; otherwise it has released its slots. */
	link_refund(tenant, atomic_exchange(&session->link_ns, 0));
	tenant_add_counts(tenant, session);
	atomic_store(&session->ended, 0);
	atomic_store(&session->id, 0);
	atomic_fetch_sub(&ledger->sessions_open, 1);
	/* Returns the pages, which are zeros afterwards. */
	(void)madvise((char *)session + SESSION_PART, SESSION_PART_SIZE, MADV_REMOVE);
	last = atomic_fetch_sub(&tenant->sessions, 1) == 1;
	/* A worker that was killed in the middle of a charge has left the sum too high. */
	for (int d = 0; last && d < GPD_LEDGER_LINES; d++) {
		atomic_store(&tenant->devices[d].memory, 0);
		atomic_store(&tenant->devices[d].allowance, 0);
	}
	if (last)
		atomic_store(&tenant->host, 0);
}

struct gpd_ledger_session *
gpd_ledger_next(const struct gpd_ledger *ledger, const struct gpd_ledger_session *after,
		int32_t worker)
{
	const struct gpd_ledger_session *end =
		ledger->sessions + atomic_load(&ledger->sessions_used);

	for (after = after ? after + 1 : ledger->sessions; after < end; after++) {
		if (atomic_load(&after->id) &&
		    (worker == GPD_LEDGER_ANY_WORKER || after->worker == worker))
			return (struct gpd_ledger_session *)after;
	}
	return NULL;
}

void
gpd_ledger_close_worker(struct gpd_ledger *ledger, int32_t worker)
{
	for (struct gpd_ledger_session *s = NULL; (s = gpd_ledger_next(ledger, s, worker));)
		gpd_ledger_close(ledger, s);
}

static bool
counter_try_add(_Atomic uint64_t *used, uint64_t max, uint64_t bytes)
{
	uint64_t before = atomic_load(used);

	do {
		if (bytes > max || before > max - bytes)
			return false;
	} while (!atomic_compare_exchange_weak(used, &before, before + bytes));
	return true;
}

static void
line_raise_peak(struct gpd_ledger_line *line)
{
	uint64_t now = GPD_LEDGER_IN_USE(line);
	uint64_t peak = atomic_load(&line->memory_peak);

	while (peak < now && !atomic_compare_exchange_weak(&line->memory_peak, &peak, now))
		continue;
}

bool
gpd_ledger_charge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
		  uint64_t bytes)
{
	struct gpd_ledger_tenant_line *tenant = &ledger->tenants[session->tenant].devices[device];
	struct gpd_ledger_line *line = &session->devices[device];
	uint64_t there_is = atomic_load(&ledger->device_memory[device]);

	/* Otherwise an allocation that can never succeed would be charged for a moment against
	 * other sessions with the same quota. */
	if (there_is && bytes > there_is)
		return false;
	if (!counter_try_add(&tenant->memory, atomic_load(&tenant->memory_max), bytes))
		return false;
	if (!counter_try_add(&line->memory, atomic_load(&line->memory_max), bytes)) {
		atomic_fetch_sub(&tenant->memory, bytes);
		return false;
	}
	line_raise_peak(line);
	return true;
}

/* Iterates over the other sessions, of all tenants or of the same. */
static struct gpd_ledger_session *
next_other_session(const struct gpd_ledger *ledger, const struct gpd_ledger_session *after,
		   const struct gpd_ledger_session *session, bool of_tenant)
{
	struct gpd_ledger_session *other = gpd_ledger_next(ledger, after, GPD_LEDGER_ANY_WORKER);

	while (other && (other == session || (of_tenant && other->tenant != session->tenant)))
		other = gpd_ledger_next(ledger, other, GPD_LEDGER_ANY_WORKER);
	return other;
}

void
gpd_ledger_set_closing(struct gpd_ledger *ledger, struct gpd_ledger_session *session)
{
	(void)ledger;
	atomic_store(&session->ended, 1);
}

static bool
others_are_closing(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session)
{
	for (const struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, false));) {
		if (atomic_load(&other->ended))
			return true;
	}
	return false;
}

bool
gpd_ledger_has_closing(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_CLOSING })
		.result;
}

static bool
others_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session, bool of_tenant)
{
	bool any = false;

	for (struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, of_tenant));) {
		uint32_t cache_state = GPD_CACHE_FILLED;

		if (atomic_load(&other->cache_state) != GPD_CACHE_FILLED)
			continue;
		atomic_store(&other->recalled_ns, gp_now_ns());
		atomic_store(&other->recall_extension_ns, 0);
		any = atomic_compare_exchange_strong(&other->cache_state, &cache_state,
						     GPD_CACHE_RECALLED) ||
		      any;
	}
	return any;
}

bool
gpd_ledger_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		  bool of_tenant)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_RECALL,
						       .of_tenant = of_tenant })
		.result;
}

/* Returns whether `other` belongs to another tenant that was marked slow (at slow_ns) before
 * requested_ns, less than GPD_SLOW_NS ago. */
static bool
is_excluded_as_slow(uint64_t slow_ns, const struct gpd_ledger_session *other,
		    const struct gpd_ledger_session *session, uint64_t requested_ns, uint64_t now)
{
	return other->tenant != session->tenant && slow_ns && slow_ns <= requested_ns &&
	       now - slow_ns < GPD_SLOW_NS;
}

/* Keeps the first time of several: recalls made before it do not wait much longer anyway. */
static void
set_tenant_slow(_Atomic uint64_t *slow_ns, uint64_t now)
{
	uint64_t before = atomic_load(slow_ns);

	if (!before || now - before >= GPD_SLOW_NS)
		(void)atomic_compare_exchange_strong(slow_ns, &before, now);
}

uint32_t
gpd_ledger_free_begin(struct gpd_ledger_session *session)
{
	uint32_t epoch = atomic_load(&session->pending_epoch);

	atomic_fetch_add(&session->pending_frees[epoch], 1);
	return epoch;
}

void
gpd_ledger_free_end(struct gpd_ledger_session *session, uint32_t epoch)
{
	atomic_fetch_sub(&session->pending_frees[epoch], 1);
}

/* Returns whether a free takes too long. Only waiters read the clock: once all frees of the
 * previous epoch have ended, the epochs are swapped, and those that began until now are timed. */
static bool
frees_are_late(struct gpd_ledger_session *session, uint64_t now)
{
	uint32_t epoch = atomic_load(&session->pending_epoch);
	uint64_t since = atomic_load(&session->pending_epoch_ns);

	if (atomic_load(&session->pending_frees[!epoch]))
		return now > since && now - since > GPD_FREE_LATE_NS;
	if (atomic_compare_exchange_strong(&session->pending_epoch_ns, &since, now))
		atomic_store(&session->pending_epoch, !epoch);
	return false;
}

static bool
others_have_pending_frees(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			  bool of_tenant, uint64_t waited_ns)
{
	uint64_t now = gp_now_ns();
	bool any = false;

	for (struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, of_tenant));) {
		_Atomic uint64_t *slow_ns = &ledger->tenants[other->tenant].frees_slow_ns;

		if (!atomic_load(&other->pending_frees[0]) &&
		    !atomic_load(&other->pending_frees[1]))
			continue;
		if (frees_are_late(other, now)) {
			atomic_store(&other->frees_slow, 1);
			set_tenant_slow(slow_ns, now);
			continue;
		}
		if (waited_ns <= GPD_FREE_SLOW_NS ||
		    (!atomic_load(&other->frees_slow) &&
		     !is_excluded_as_slow(atomic_load(slow_ns), other, session, now, now)))
			any = true;
	}
	return any;
}

bool
gpd_ledger_has_pending_frees(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			     bool of_tenant, uint64_t waited_ns)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_PENDING_FREES,
						       .of_tenant = of_tenant,
						       .amount = waited_ns })
		.result;
}

/* Returns whether the recall has taken longer than a well-behaved client needs. */
static bool
recall_is_late(const struct gpd_ledger_session *session, uint64_t now)
{
	return atomic_load(&session->cache_state) == GPD_CACHE_RECALLED &&
	       now - atomic_load(&session->recalled_ns) >
		       GPD_RECALL_LATE_NS + atomic_load(&session->recall_extension_ns);
}

/* Returns whether the other session has been recalled and may still release its cache in time. */
static bool
recall_is_pending(const struct gpd_ledger *ledger, const struct gpd_ledger_session *other,
		  const struct gpd_ledger_session *session, uint64_t now)
{
	uint64_t recalled_ns = atomic_load(&other->recalled_ns);

	return atomic_load(&other->cache_state) == GPD_CACHE_RECALLED &&
	       !atomic_load(&other->slow) && now - recalled_ns < GPD_RECALL_NS &&
	       !is_excluded_as_slow(atomic_load(&ledger->tenants[other->tenant].slow_ns), other,
				    session, recalled_ns, now);
}

/* Returns whether the other session would release its cached memory in time. */
static bool
session_can_release(const struct gpd_ledger *ledger, const struct gpd_ledger_session *other,
		    const struct gpd_ledger_session *session, uint64_t now)
{
	return (atomic_load(&other->cache_state) == GPD_CACHE_FILLED &&
		!atomic_load(&other->slow) &&
		!is_excluded_as_slow(atomic_load(&ledger->tenants[other->tenant].slow_ns), other,
				     session, now, now)) ||
	       recall_is_pending(ledger, other, session, now);
}

void
gpd_ledger_set_cached(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
		      bool cache_state)
{
	uint64_t now = gp_now_ns();

	if (recall_is_late(session, now)) {
		atomic_store(&session->slow, 1);
		set_tenant_slow(&ledger->tenants[session->tenant].slow_ns, now);
	}
	atomic_store(&session->cache_state, cache_state ? GPD_CACHE_FILLED : GPD_CACHE_EMPTY);
}

void
gpd_ledger_extend_recall(struct gpd_ledger_session *session, uint64_t ns)
{
	atomic_fetch_add(&session->recall_extension_ns, ns);
}

static bool
others_have_pending_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			   bool of_tenant)
{
	uint64_t now = gp_now_ns();
	bool any = false;

	for (struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, of_tenant));) {
		if (!recall_is_pending(ledger, other, session, now) || atomic_load(&other->waiting))
			continue;
		any = true;
		/* The other session may end before it responds; gpd_ledger_set_cached() would not
		 * run then. */
		if (recall_is_late(other, now))
			set_tenant_slow(&ledger->tenants[other->tenant].slow_ns, now);
	}
	return any;
}

bool
gpd_ledger_has_pending_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			      bool of_tenant)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_PENDING_RECALL,
						       .of_tenant = of_tenant })
		.result;
}

static struct gpd_ledger_reclaimable
others_reclaimable(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		   int device)
{
	struct gpd_ledger_reclaimable cached = { 0 };
	uint64_t now = gp_now_ns();

	for (const struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, false));) {
		const struct gpd_ledger_line *line = &other->devices[device];
		uint64_t bytes;

		if (!session_can_release(ledger, other, session, now))
			continue;
		bytes = gpd_u64_min(atomic_load(&line->cached), GPD_LEDGER_IN_USE(line));
		cached.of_device += bytes + atomic_load(&line->allowance_backing);
		if (other->tenant == session->tenant)
			cached.of_tenant += bytes + atomic_load(&line->allowance);
	}
	return cached;
}

struct gpd_ledger_reclaimable
gpd_ledger_reclaimable(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		       int device)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_RECLAIMABLE,
						       .device = device })
		.reclaimable;
}

void
gpd_ledger_set_allowance(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
			 uint64_t bytes, uint64_t allowance_backing)
{
	struct gpd_ledger_tenant_line *tenant = &ledger->tenants[session->tenant].devices[device];
	struct gpd_ledger_line *line = &session->devices[device];

	/* The difference is modulo 2^64, so this subtracts as well. */
	atomic_fetch_add(&tenant->allowance, bytes - atomic_exchange(&line->allowance, bytes));
	atomic_store(&line->allowance_backing, allowance_backing);
	line_raise_peak(line);
}

void
gpd_ledger_uncharge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
		    uint64_t bytes)
{
	atomic_fetch_sub(&session->devices[device].memory, bytes);
	atomic_fetch_sub(&ledger->tenants[session->tenant].devices[device].memory, bytes);
}

/* The tenant's sum does not change. The order matters: if the worker is killed in between, the sum
 * is too high, which is corrected when the tenant's last session closes. */
void
gpd_ledger_move_charge(struct gpd_ledger_session *from, struct gpd_ledger_session *to, int device,
		       uint64_t bytes)
{
	atomic_fetch_sub(&from->devices[device].memory, bytes);
	atomic_fetch_add(&to->devices[device].memory, bytes);
	line_raise_peak(&to->devices[device]);
}

/* Returns the part that counts against the limit shared with other sessions. */
static uint64_t
host_excess(uint64_t bytes)
{
	return bytes > GPD_HOST_MIN ? bytes - GPD_HOST_MIN : 0;
}

/* Grants the tenant more of the limit, and withdraws what other tenants have not used. A worker may
 * charge to a grant while it is withdrawn: the sum then exceeds the limit by these bytes. */
static bool
host_grant(struct gpd_ledger *ledger, struct gpd_ledger_tenant *tenant, uint64_t bytes)
{
	uint64_t max = atomic_load(&ledger->host_max) / 2, others = 0;
	uint64_t used = atomic_load(&tenant->host), more;

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		struct gpd_ledger_tenant *other = &ledger->tenants[i];
		uint64_t granted = atomic_load(&other->host_granted);

		if (other == tenant || !granted)
			continue;
		granted = gpd_u64_min(granted, atomic_load(&other->host));
		atomic_store(&other->host_granted, granted);
		others += granted;
	}
	if (others > max || used > max - others || bytes > max - others - used)
		return false;
	more = gpd_u64_min(max - others - used, bytes + max / HOST_GRANTS);
	atomic_store(&tenant->host_granted, used + more);
	return true;
}

void
gpd_ledger_set_host_max(struct gpd_ledger *ledger, uint64_t bytes)
{
	if (atomic_exchange(&ledger->host_max, bytes) == bytes)
		return;
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		struct gpd_ledger_tenant *tenant = &ledger->tenants[i];

		atomic_store(&tenant->host_granted,
			     gpd_u64_min(atomic_load(&tenant->host), bytes / 2));
	}
}

/* Adds to the tenant's use of the host memory that all sessions share. */
static bool
host_try_add(struct gpd_ledger *ledger, const struct gpd_ledger_session *session, uint64_t bytes)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	struct gpd_ledger_query query = { .type = GPD_LEDGER_HOST, .amount = bytes };

	if (atomic_load(&ledger->host_max) == GPD_NO_LIMIT)
		return counter_try_add(&tenant->host, GPD_NO_LIMIT, bytes);
	/* Other threads may use the grant first. */
	while (!counter_try_add(&tenant->host, atomic_load(&tenant->host_granted), bytes)) {
		if (!ledger_query(ledger, session, query).result)
			return false;
	}
	return true;
}

bool
gpd_ledger_charge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
		       uint64_t bytes)
{
	uint64_t before = atomic_load(&session->host);

	for (;;) {
		uint64_t more = host_excess(before + bytes) - host_excess(before);

		if (more && !host_try_add(ledger, session, more))
			return false;
		if (atomic_compare_exchange_weak(&session->host, &before, before + bytes))
			return true;
		/* Another thread of the session changed the value first. */
		atomic_fetch_sub(&ledger->tenants[session->tenant].host, more);
	}
}

void
gpd_ledger_uncharge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			 uint64_t bytes)
{
	uint64_t before = atomic_fetch_sub(&session->host, bytes);

	atomic_fetch_sub(&ledger->tenants[session->tenant].host,
			 host_excess(before) - host_excess(before - bytes));
}

static struct gpd_ledger_answer
answer_compute(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
	       const struct gpd_ledger_query *query)
{
	struct gpd_ledger_answer answer = { 0 };

	switch (query->type) {
	case GPD_LEDGER_RECALL:
		answer.result = others_recall(ledger, session, query->of_tenant);
		break;
	case GPD_LEDGER_PENDING_RECALL:
		answer.result = others_have_pending_recall(ledger, session, query->of_tenant);
		break;
	case GPD_LEDGER_PENDING_FREES:
		answer.result =
			others_have_pending_frees(ledger, session, query->of_tenant, query->amount);
		break;
	case GPD_LEDGER_CLOSING:
		answer.result = others_are_closing(ledger, session);
		break;
	case GPD_LEDGER_RECLAIMABLE:
		if (query->device >= 0 && query->device < GPD_LEDGER_LINES)
			answer.reclaimable = others_reclaimable(ledger, session, query->device);
		break;
	case GPD_LEDGER_HOST:
		answer.result =
			host_grant(ledger, &ledger->tenants[session->tenant], query->amount);
		break;
	}
	return answer;
}

static uint64_t
quota_left(uint64_t max, uint64_t used)
{
	if (max == GPD_NO_LIMIT)
		return GPD_NO_LIMIT;
	return used < max ? max - used : 0;
}

struct gpd_ledger_headroom
gpd_ledger_headroom(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		    int device, uint64_t cached)
{
	const struct gpd_ledger_tenant_line *tenant =
		&ledger->tenants[session->tenant].devices[device];
	const struct gpd_ledger_line *line = &session->devices[device];
	uint64_t tenant_max = atomic_load(&tenant->memory_max);
	uint64_t session_max = atomic_load(&line->memory_max);
	uint64_t tenant_memory = atomic_load(&tenant->memory);
	uint64_t tenant_left =
		quota_left(tenant_max, tenant_memory > cached ? tenant_memory - cached : 0);
	uint64_t session_left = quota_left(session_max, atomic_load(&line->memory));

	return (struct gpd_ledger_headroom){
		.max = tenant_max < session_max ? tenant_max : session_max,
		.left = tenant_left < session_left ? tenant_left : session_left,
	};
}

/* Small enough that an unused slot does not matter, large enough that the cost of reserving does
 * not either. */
static uint64_t
link_slot_bytes(uint64_t max)
{
	uint64_t bytes = max / (1000000000 / GPD_LEDGER_LINK_SLOT_NS);

	if (bytes < LINK_BYTES_MIN)
		return LINK_BYTES_MIN;
	return bytes < LINK_BYTES_MAX ? bytes : LINK_BYTES_MAX;
}

static uint64_t
link_cost(uint64_t bytes, uint64_t max)
{
	return (uint64_t)((double)bytes * 1e9 / (double)max);
}

/* Occupies the link for cost_ns, starting now or when the link becomes free. Returns the start. */
static uint64_t
link_occupy(struct gpd_ledger_tenant *tenant, uint64_t cost_ns, uint64_t now_ns)
{
	uint64_t before = atomic_load(&tenant->link_free_ns), start;

	do
		start = before > now_ns ? before : now_ns;
	while (!atomic_compare_exchange_weak(&tenant->link_free_ns, &before, start + cost_ns));
	return start;
}

struct gpd_ledger_link_slot
gpd_ledger_link_acquire(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			uint64_t bytes, uint64_t now_ns)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	/* Read link_limit before the limit: a slot computed with the previous limit is then
	 * recognized as outdated. */
	struct gpd_ledger_link_slot slot = { .bytes = bytes,
					     .limit = atomic_load(&tenant->link_limit) };
	uint64_t max = atomic_load(&tenant->bandwidth_max);
	uint64_t most;

	if (__builtin_expect(max == GPD_NO_LIMIT || max == 0, 1))
		return slot;
	most = link_slot_bytes(max);
	slot.bytes = bytes < most ? bytes : most;
	slot.cost_ns = link_cost(slot.bytes, max);
	slot.start_ns = link_occupy(tenant, slot.cost_ns, now_ns);
	if (slot.start_ns > now_ns)
		atomic_fetch_add(&session->link_ns, slot.cost_ns);
	return slot;
}

bool
gpd_ledger_link_is_current(const struct gpd_ledger *ledger,
			   const struct gpd_ledger_session *session,
			   const struct gpd_ledger_link_slot *slot)
{
	return atomic_load(&ledger->tenants[session->tenant].link_limit) == slot->limit;
}

void
gpd_ledger_link_release(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			const struct gpd_ledger_link_slot *slot, uint64_t now_ns)
{
	atomic_fetch_sub(&session->link_ns, slot->cost_ns);
	if (now_ns < slot->start_ns && gpd_ledger_link_is_current(ledger, session, slot))
		link_refund(&ledger->tenants[session->tenant], slot->cost_ns);
}

void
gpd_ledger_link_charge(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		       uint64_t bytes, uint64_t now_ns)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	uint64_t max = atomic_load(&tenant->bandwidth_max);

	if (max != GPD_NO_LIMIT && max != 0)
		(void)link_occupy(tenant, link_cost(bytes, max), now_ns);
}

void
gpd_ledger_set_bandwidth(struct gpd_ledger_tenant *tenant, uint64_t bytes_per_second)
{
	if (atomic_exchange(&tenant->bandwidth_max, bytes_per_second) == bytes_per_second)
		return;
	atomic_store(&tenant->link_free_ns, 0);
	/* Last, so that callers with an older slot reserve again. */
	atomic_fetch_add(&tenant->link_limit, 1);
}
