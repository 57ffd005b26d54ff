/* SPDX-License-Identifier: Apache-2.0 */
/* The admin socket with a handler of the test: framing, limits, and when connections are closed. */
#include "server/common/base/log.h"
#include "server/supervisor/admin/admin_socket.h"
#include "server/supervisor/workers/worker_process.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LATER ((int64_t)3600 * 1000)

static struct gpd_admin admin;
static char folder[64], path[108];
static int64_t now_ms;
/* The requests that the handler received, and its replies. */
static int asked, asked_again;
static uint64_t last_session;
static bool postpones;
static size_t reply_size;

static int
handler(void *arg, const struct gpd_admin_peer *peer, const Gpupool__AdminRequest *request,
	bool again, uint8_t **reply_p, size_t *size_p)
{
	assert_ptr_equal(arg, &admin);
	if (again)
		asked_again++;
	else
		asked++;
	if (request->body_case == GPUPOOL__ADMIN_REQUEST__BODY_TERMINATE)
		last_session = request->terminate->session;
	if (postpones)
		return GP_E_TIMEOUT;
	*reply_p = calloc(1, reply_size);
	*size_p = reply_size;
	if (*reply_p)
		gp_admin_put_size(*reply_p, reply_size - GP_ADMIN_HEADER_SIZE);
	return 0;
}

static int
set_up(void **state)
{
	char error[256];

	snprintf(folder, sizeof(folder), "/tmp/gpupool-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/admin/socket", folder);
	asked = asked_again = 0;
	last_session = 0;
	postpones = false;
	reply_size = GP_ADMIN_HEADER_SIZE;
	now_ms = 1000;
	gpd_log_level = GPD_LOG_ERROR;
	gpd_admin_init(&admin, handler, &admin);
	return gpd_admin_open(&admin, path, error, sizeof(error));
}

static int
tear_down(void **state)
{
	char command[128];

	gpd_admin_fini(&admin);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static int
connect_to(const char *where)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", where);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* One turn of the supervisor's loop. */
static void
turn(void)
{
	struct pollfd fds[GPD_ADMIN_POLL_MAX];
	int count = gpd_admin_poll(&admin, fds);

	assert_true(poll(fds, (nfds_t)count, 0) >= 0);
	gpd_admin_serve(&admin, fds, now_ms);
}

static void
turns(int count)
{
	while (count--)
		turn();
}

static size_t
pack(uint64_t session, uint8_t *bytes)
{
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	Gpupool__AdminTerminate terminate = GPUPOOL__ADMIN_TERMINATE__INIT;
	uint8_t *packed;
	size_t size;

	terminate.session = session;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_TERMINATE;
	request.terminate = &terminate;
	packed = gp_admin_pack_request(&request, &size);
	assert_non_null(packed);
	memcpy(bytes, packed, size);
	free(packed);
	return size;
}

static void
send_all(int fd, const void *bytes, size_t size)
{
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

/* Bytes that have come; 0: the connection is over; -1: nothing yet. */
static ssize_t
receive(int fd, size_t size)
{
	char *bytes = malloc(size);
	ssize_t got = recv(fd, bytes, size, 0);

	free(bytes);
	if (got < 0 && (errno == ECONNRESET || errno == EPIPE))
		return 0;
	return got;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(the_socket_and_its_folder_are_for_their_owner)
{
	/* The group exists where the package is installed. */
	const struct group *readers = getgrnam(GPD_ADMIN_READERS);
	char parent[80];
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	assert_true(S_ISSOCK(status.st_mode));
	if (readers && geteuid() == 0)
		assert_int_equal(status.st_gid, readers->gr_gid);
	assert_int_equal(status.st_mode & 0777,
			 readers && status.st_gid == readers->gr_gid ? 0660 : 0600);
	snprintf(parent, sizeof(parent), "%s/admin", folder);
	assert_int_equal(stat(parent, &status), 0);
	assert_int_equal(status.st_mode & 0777, geteuid() == 0 ? 0755 : 0700);
}

TEST(a_request_in_single_bytes_is_answered_once)
{
	uint8_t bytes[64];
	size_t size = pack(7, bytes);
	int fd = connect_to(path);

	turns(2);
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(asked, 0);
		send_all(fd, bytes + i, 1);
		turn();
	}
	assert_int_equal(asked, 1);
	assert_int_equal(last_session, 7);
	assert_int_equal(receive(fd, 100), GP_ADMIN_HEADER_SIZE);
	close(fd);
}

TEST(requests_that_come_together_are_answered_in_order)
{
	uint8_t bytes[128];
	size_t size = pack(1, bytes);
	int fd = connect_to(path);

	size += pack(2, bytes + size);
	send_all(fd, bytes, size);
	turns(2);
	assert_int_equal(last_session, 1);
	turns(2);
	assert_int_equal(last_session, 2);
	assert_int_equal(asked, 2);
	assert_int_equal(receive(fd, 100), 2 * GP_ADMIN_HEADER_SIZE);
	close(fd);
}

TEST(a_request_over_the_limit_ends_the_connection_before_it_is_read)
{
	uint8_t header[GP_ADMIN_HEADER_SIZE];
	int fd = connect_to(path);

	gp_admin_put_size(header, GP_ADMIN_REQUEST_MAX + 1);
	send_all(fd, header, sizeof(header));
	turns(3);
	assert_int_equal(asked, 0);
	assert_int_equal(receive(fd, 1), 0);
	close(fd);
}

TEST(bytes_that_are_no_request_end_the_connection)
{
	static const uint8_t bytes[] = { 3, 0, 0, 0, 0xff, 0xff, 0xff };
	int fd = connect_to(path);

	send_all(fd, bytes, sizeof(bytes));
	turns(3);
	assert_int_equal(asked, 0);
	assert_int_equal(receive(fd, 1), 0);
	close(fd);
}

TEST(who_stops_in_the_middle_is_dropped_after_a_while)
{
	uint8_t bytes[64];
	int fd = connect_to(path);

	(void)pack(7, bytes);
	send_all(fd, bytes, 3);
	turns(3);
	assert_int_equal(receive(fd, 1), -1);
	assert_true(admin.conns[0].deadline_ms < now_ms + LATER);
	now_ms = admin.conns[0].deadline_ms;
	turn();
	assert_int_equal(receive(fd, 1), 0);
	assert_int_equal(admin.conns[0].fd, -1);
	close(fd);
}

TEST(who_does_not_read_its_reply_is_dropped_after_a_while)
{
	uint8_t bytes[64];
	size_t size = pack(7, bytes);
	int fd = connect_to(path);

	reply_size = (size_t)4 << 20;
	send_all(fd, bytes, size);
	turns(5);
	assert_int_equal(asked, 1);
	now_ms = admin.conns[0].deadline_ms;
	assert_true(now_ms < LATER);
	turn();
	assert_int_equal(admin.conns[0].fd, -1);
	close(fd);
}

TEST(a_long_reply_arrives_whole_as_it_is_read)
{
	uint8_t bytes[64];
	size_t size = pack(7, bytes), got = 0;
	int fd = connect_to(path);

	reply_size = ((size_t)4 << 20) + 123;
	send_all(fd, bytes, size);
	for (int i = 0; i < 10000 && got < reply_size; i++) {
		ssize_t part;

		turn();
		part = receive(fd, 65536);
		if (part > 0)
			got += (size_t)part;
	}
	assert_int_equal(got, reply_size);
	close(fd);
}

TEST(what_is_not_done_yet_is_asked_at_every_turn_without_a_deadline)
{
	uint8_t bytes[64];
	size_t size = pack(7, bytes);
	int fd = connect_to(path);

	postpones = true;
	send_all(fd, bytes, size);
	turns(2);
	now_ms += LATER;
	turns(3);
	assert_int_equal(asked, 1);
	assert_int_equal(asked_again, 3);
	assert_int_equal(receive(fd, 1), -1);
	postpones = false;
	turn();
	assert_int_equal(receive(fd, 100), GP_ADMIN_HEADER_SIZE);
	close(fd);
}

TEST(who_leaves_while_it_waits_is_forgotten)
{
	uint8_t bytes[64];
	size_t size = pack(7, bytes);
	int fd = connect_to(path), before;

	postpones = true;
	send_all(fd, bytes, size);
	turns(2);
	close(fd);
	turn();
	before = asked_again;
	turns(3);
	assert_int_equal(asked_again, before);
}

TEST(without_a_free_place_the_next_one_waits_until_there_is_one)
{
	int fds[GPD_ADMIN_CONNS_MAX], late;
	uint8_t bytes[64];
	size_t size = pack(9, bytes);

	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		fds[i] = connect_to(path);
		turn();
	}
	late = connect_to(path);
	send_all(late, bytes, size);
	turns(3);
	assert_int_equal(asked, 0);
	close(fds[3]);
	turns(4);
	assert_int_equal(asked, 1);
	assert_int_equal(last_session, 9);
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		if (i != 3)
			close(fds[i]);
	}
	close(late);
}

TEST(without_a_free_place_the_oldest_unfinished_connection_makes_room)
{
	int fds[GPD_ADMIN_CONNS_MAX], late;
	uint8_t bytes[64];
	size_t size = pack(9, bytes);

	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		fds[i] = connect_to(path);
		send_all(fds[i], bytes, i == 0 ? size : 3);
		/* The daemon is at work for the first one, and goes on. */
		postpones = true;
		turns(2);
		now_ms += i == 5;
	}
	/* Another user has fewer, and older ones. */
	admin.conns[1].peer.uid = admin.conns[2].peer.uid = 12345;
	late = connect_to(path);
	send_all(late, bytes, size);
	turns(3);
	assert_int_equal(asked, 1);
	now_ms += 1000;
	turns(3);
	postpones = false;
	assert_int_equal(receive(fds[3], 1), 0);
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++)
		assert_int_equal(admin.conns[i].fd < 0, 0);
	assert_int_equal(asked, 2);
	turns(2);
	assert_int_equal(receive(fds[0], 100), GP_ADMIN_HEADER_SIZE);
	assert_int_equal(receive(late, 100), GP_ADMIN_HEADER_SIZE);
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		if (i != 3)
			assert_int_equal(receive(fds[i], 1), -1);
		close(fds[i]);
	}
	close(late);
}

TEST(users_who_may_only_read_make_room_for_each_other)
{
	int fds[GPD_ADMIN_CONNS_MAX - 4];
	int count = GPD_ADMIN_CONNS_MAX - 4;
	int child, waited;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, 0, 65534), 0);
	assert_int_equal(chmod(path, 0660), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	for (int i = 0; i < count; i++) {
		fds[i] = connect_to(path);
		turn();
		admin.conns[i].peer.read_only = true;
	}
	now_ms += 1000;
	child = fork();
	if (child == 0) {
		int fd;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		fd = connect_to(path);
		_exit(fd < 0);
	}
	assert_int_equal(waitpid(child, &waited, 0), child);
	assert_int_equal(waited, 0);
	turn();
	assert_int_equal(receive(fds[0], 1), 0);
	for (int i = 1; i < count; i++)
		assert_int_equal(receive(fds[i], 1), -1);
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

TEST(a_live_socket_is_nobody_elses_and_a_stale_one_anybodys)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct gpd_admin other;
	char error[256] = "";
	int stale;

	gpd_admin_init(&other, handler, &other);
	assert_int_equal(gpd_admin_open(&other, path, error, sizeof(error)), -1);
	assert_non_null(strstr(error, "another daemon that is running"));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/stale", folder);
	stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stale, (struct sockaddr *)&address, sizeof(address)), 0);
	close(stale);
	assert_int_equal(gpd_admin_open(&other, address.sun_path, error, sizeof(error)), 0);
	close(connect_to(address.sun_path));
	gpd_admin_fini(&other);
	assert_int_equal(access(address.sun_path, F_OK), -1);
}

TEST(a_path_that_cannot_be_is_refused_and_nothing_is_removed)
{
	struct gpd_admin other;
	char error[256] = "", plain[80], deep[120], longest[200];
	int fd;

	gpd_admin_init(&other, handler, &other);
	snprintf(plain, sizeof(plain), "%s/plain", folder);
	fd = open(plain, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(gpd_admin_open(&other, plain, error, sizeof(error)), -1);
	assert_non_null(strstr(error, "is not a socket"));
	assert_int_equal(access(plain, F_OK), 0);
	snprintf(deep, sizeof(deep), "%s/a/b/c", folder);
	assert_int_equal(gpd_admin_open(&other, deep, error, sizeof(error)), -1);
	assert_non_null(strstr(error, "cannot create directory"));
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(gpd_admin_open(&other, longest, error, sizeof(error)), -1);
	assert_non_null(strstr(error, "1 to 107 characters"));
	assert_int_equal(gpd_admin_open(&other, "", error, sizeof(error)), -1);
	gpd_admin_fini(&other);
}

TEST(a_socket_that_another_has_put_there_since_is_left_alone)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/new", folder);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(rename(address.sun_path, path), 0);
	gpd_admin_fini(&admin);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
}

/* Names the socket for run_worker(). */
#define SOCKET_VARIABLE "GPUPOOL_TEST_ADMIN_SOCKET"
/* The worker of a test exits when it has sent its request. */
#define HASTE_VARIABLE "GPUPOOL_TEST_HASTE"

/* A worker that a client has taken over: sends a request. Returns 0 unless there is a reply. */
static int
run_worker(void)
{
	uint8_t bytes[256], reply;
	size_t size = pack(7, bytes);
	int fd = connect_to(getenv(SOCKET_VARIABLE));

	if (fcntl(fd, F_SETFL, 0) || send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
		return 2;
	return !getenv(HASTE_VARIABLE) && recv(fd, &reply, 1, 0) > 0;
}

/* gpd_worker_process_start() executes this program, see main(). */
static struct gpd_worker_process *
worker_start(void)
{
	struct gpd_worker_start start = { .ledger_fd = open("/dev/null", O_RDWR | O_CLOEXEC) };
	struct gpd_worker_process *worker;

	assert_int_equal(setenv(SOCKET_VARIABLE, path, 1), 0);
	worker = gpd_worker_process_start(&start);
	assert_non_null(worker);
	close(start.ledger_fd);
	return worker;
}

TEST(a_worker_of_the_daemon_is_refused_though_it_has_its_user)
{
	struct gpd_worker_process *worker = worker_start();
	int status;

	while (waitpid(worker->pid, &status, WNOHANG) == 0) {
		turn();
		usleep(1000);
	}
	assert_int_equal(status, 0);
	gpd_worker_process_destroy(worker);
	turns(3);
	assert_int_equal(asked, 0);
}

TEST(so_is_one_that_has_ended_before_its_connection_is_accepted)
{
	struct gpd_worker_process *worker;
	int status;

	assert_int_equal(setenv(HASTE_VARIABLE, "1", 1), 0);
	worker = worker_start();
	assert_int_equal(unsetenv(HASTE_VARIABLE), 0);
	assert_int_equal(waitpid(worker->pid, &status, 0), worker->pid);
	assert_int_equal(status, 0);
	gpd_worker_process_destroy(worker);
	turns(3);
	assert_int_equal(asked, 0);
}

int
main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "--worker-fd") != 0)
		return unit_tests_run(NULL, NULL);
	return run_worker();
}
