/* SPDX-License-Identifier: Apache-2.0 */
/* What only sockets in the file system have; the rest is the contract's. */
#include "tests/test.h"
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static struct gp_url url;
static char error[400];

static int
make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/gpupool-unix-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	url = (struct gp_url){ .scheme = "unix", .device = GP_URL_ANY_DEVICE };
	snprintf(url.host, sizeof(url.host), "%s/socket", folder);
	return 0;
}

static int
remove_folder(void **state)
{
	return rmdir(folder);
}

static struct gp_listener *
listening(void)
{
	struct gp_listener *listener;

	if (gp_listen(&url, &listener, error, sizeof(error)))
		fail_msg("%s", error);
	return listener;
}

static void
leave_a_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", url.host);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

#define UNIX_TEST(test) UNIT_TEST_WITH(test, make_folder, remove_folder)

UNIX_TEST(a_socket_that_an_ended_daemon_left_is_replaced)
{
	leave_a_socket();
	gp_listener_destroy(listening());
	assert_int_equal(access(url.host, F_OK), -1);
}

UNIX_TEST(everybody_may_connect)
{
	mode_t before = umask(0077);
	struct gp_listener *listener = listening();
	struct stat status;

	umask(before);
	assert_int_equal(stat(url.host, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0666);
	gp_listener_destroy(listener);
}

UNIX_TEST(a_socket_at_which_somebody_listens_stays)
{
	struct gp_listener *listener = listening(), *second;
	struct gp_conn *conn;

	assert_int_equal(gp_listen(&url, &second, error, sizeof(error)), -EADDRINUSE);
	assert_int_equal(gp_connect(&url, NULL, 0, 1000, &conn, error, sizeof(error)), 0);
	gp_conn_destroy(conn);
	gp_listener_destroy(listener);
}

UNIX_TEST(what_is_no_socket_stays)
{
	struct gp_listener *listener;
	FILE *file = fopen(url.host, "w");

	assert_non_null(file);
	fclose(file);
	assert_int_equal(gp_listen(&url, &listener, error, sizeof(error)), -EEXIST);
	assert_non_null(strstr(error, "not a socket"));
	assert_int_equal(unlink(url.host), 0);
	assert_int_equal(symlink("/nowhere", url.host), 0);
	assert_int_equal(gp_listen(&url, &listener, error, sizeof(error)), -EEXIST);
	assert_int_equal(unlink(url.host), 0);
}

UNIX_TEST(anothers_socket_is_not_removed)
{
	struct gp_listener *listener = listening();

	assert_int_equal(unlink(url.host), 0);
	leave_a_socket();
	gp_listener_destroy(listener);
	assert_int_equal(access(url.host, F_OK), 0);
	assert_int_equal(unlink(url.host), 0);
}

UNIX_TEST(the_folder_is_made)
{
	snprintf(url.host, sizeof(url.host), "%s/run/socket", folder);
	gp_listener_destroy(listening());
	snprintf(url.host, sizeof(url.host), "%s/run", folder);
	assert_int_equal(rmdir(url.host), 0);
}

static void
make(const char *name, mode_t mode, uid_t owner)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
	assert_int_equal(chown(path, owner, (gid_t)-1), 0);
}

static void
make_link(const char *name, const char *target, uid_t owner)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(lchown(path, owner, (gid_t)-1), 0);
}

static void
clear(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(remove(path), 0);
}

static void
refused(const char *path, const char *words)
{
	struct gp_listener *listener;

	snprintf(url.host, sizeof(url.host), "%s/%s", folder, path);
	assert_int_equal(gp_listen(&url, &listener, error, sizeof(error)), -EPERM);
	if (!strstr(error, words))
		fail_msg("%s: %s", path, error);
	assert_int_equal(access(url.host, F_OK), -1);
}

static void
taken(const char *path)
{
	snprintf(url.host, sizeof(url.host), "%s/%s", folder, path);
	gp_listener_destroy(listening());
}

UNIX_TEST(nobody_else_may_put_a_socket_there)
{
	static const struct {
		mode_t mode;
		const char *who;
	} open[] = { { 0777, "all users" },
		     { 0757, "all users" },
		     { 0775, "its group" },
		     { 02770, "its group" } };

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		char words[200];

		snprintf(words, sizeof(words), "%s may write to the directory %s/open ",
			 open[i].who, folder);
		make("open", open[i].mode, geteuid());
		make("open/own", 0755, geteuid());
		refused("open/socket", words);
		refused("open/own/socket", words);
		/* Nor is one made there. */
		refused("open/new/socket", words);
		clear("open/own");
		clear("open");
	}
	make("open", 01777, geteuid());
	taken("open/socket");
	make("open/own", 0755, geteuid());
	taken("open/own/socket");
	clear("open/own");
	clear("open");
}

UNIX_TEST(no_folder_on_the_way_is_somebody_elses)
{
	if (geteuid() != 0)
		LEAVE("it takes root");
	make("evil", 0755, 65534);
	make("evil/own", 0755, 0);
	make("own", 0755, 0);
	refused("evil/socket", "/evil belongs to user 65534");
	refused("evil/own/socket", "/evil belongs to user 65534");
	refused("evil/new/socket", "/evil belongs to user 65534");
	/* Unless that is who the process will be. */
	gp_listen_set_owner(65534);
	taken("evil/socket");
	taken("evil/own/socket");
	gp_listen_set_owner(0);
	/* A link that he can change, or put another one in the place of. */
	make_link("evil/link", "../own", 0);
	refused("evil/link/socket", "/evil belongs to user 65534");
	make_link("his", "own", 65534);
	refused("his/socket", "the link");
	refused("his/../own/socket", "/his belongs to user 65534");
	/* A link of ours to what is his, and beyond. */
	make_link("to", "own/../evil/../own", 0);
	refused("to/socket", "/evil belongs to user 65534");
	clear("to");
	make_link("to", "./own/", 0);
	taken("to/socket");
	taken("own/../to/./socket");
	clear("to");
	clear("his");
	clear("evil/link");
	clear("evil/own");
	clear("own");
	clear("evil");
}

/* What somebody else does at the worst moment: when the folder is to be made, or the socket. */
static void (*before_mkdir)(const char *path);
static void (*before_bind)(void);

int
mkdir(const char *path, mode_t mode)
{
	void (*act)(const char *path) = before_mkdir;

	before_mkdir = NULL;
	if (act)
		act(path);
	return mkdirat(AT_FDCWD, path, mode);
}

int
bind(int fd, const struct sockaddr *address, socklen_t length)
{
	void (*act)(void) = before_bind;

	before_bind = NULL;
	if (act)
		act();
	return (int)syscall(SYS_bind, fd, address, length);
}

static void
make_open(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
}

static void
make_anothers(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
}

static void
make_good(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

UNIX_TEST(a_folder_that_is_made_meanwhile_is_looked_at)
{
	make("sticky", 01777, geteuid());
	before_mkdir = make_open;
	refused("sticky/pool/socket", "all users may write to the directory ");
	clear("sticky/pool");
	if (geteuid() == 0) {
		before_mkdir = make_anothers;
		refused("sticky/pool/socket", "/sticky/pool belongs to user 65534");
		clear("sticky/pool");
	}
	/* As when two daemons start at once. */
	before_mkdir = make_good;
	taken("sticky/pool/socket");
	assert_null(before_mkdir);
	clear("sticky/pool");
	clear("sticky");
}

static void
make_the_way(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/sticky/new", folder);
	make_open(path);
	snprintf(path, sizeof(path), "%s/sticky/new/pool", folder);
	make_open(path);
}

UNIX_TEST(no_folder_is_waited_for_that_others_could_make)
{
	struct gp_listener *listener = NULL;
	int r;

	make("sticky", 01777, geteuid());
	snprintf(url.host, sizeof(url.host), "%s/sticky/new/pool/socket", folder);
	before_bind = make_the_way;
	r = gp_listen(&url, &listener, error, sizeof(error));
	before_bind = NULL;
	if (r == 0)
		gp_listener_destroy(listener);
	assert_int_equal(r, -ENOENT);
	clear("sticky");
}

UNIX_TEST(links_without_an_end_are_not_followed)
{
	struct gp_listener *listener;

	make_link("a", "b", geteuid());
	make_link("b", "a", geteuid());
	snprintf(url.host, sizeof(url.host), "%s/a/socket", folder);
	assert_int_equal(gp_listen(&url, &listener, error, sizeof(error)), -ELOOP);
	clear("a");
	clear("b");
}

/* In a child, whose root is the test's, and who knows nobody else: what has failed, 0: nothing,
 * 255: there are no such namespaces here. */
static int
listen_in_a_namespace(void)
{
	static const char one[] = "0 0 1";
	struct gp_listener *listener;
	int fd;

	if (unshare(CLONE_NEWUSER))
		return 255;
	fd = open("/proc/self/uid_map", O_WRONLY);
	if (fd < 0 || write(fd, one, sizeof(one) - 1) != sizeof(one) - 1)
		return 255;
	close(fd);
	snprintf(url.host, sizeof(url.host), "%s/other/own/socket", folder);
	if (gp_listen(&url, &listener, error, sizeof(error)))
		return 1;
	gp_listener_destroy(listener);
	snprintf(url.host, sizeof(url.host), "%s/other/socket", folder);
	if (gp_listen(&url, &listener, error, sizeof(error)) != -EPERM)
		return 2;
	snprintf(url.host, sizeof(url.host), "%s/open/own/socket", folder);
	return gp_listen(&url, &listener, error, sizeof(error)) == -EPERM ? 0 : 3;
}

UNIX_TEST(a_user_namespace_has_folders_of_nobody_above_its_own)
{
	int status = 0;
	pid_t child;

	if (geteuid() != 0)
		LEAVE("it takes root");
	make("other", 0755, 4242);
	make("other/own", 0755, 0);
	make("open", 0757, 4242);
	make("open/own", 0755, 0);
	refused("other/own/socket", "/other belongs to user 4242");
	child = fork();
	if (child == 0)
		_exit(listen_in_a_namespace());
	assert_int_equal(waitpid(child, &status, 0), child);
	clear("open/own");
	clear("open");
	clear("other/own");
	clear("other");
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 255)
		LEAVE("this process may not make a user namespace");
	assert_int_equal(WEXITSTATUS(status), 0);
}

UNIX_TEST(a_path_that_is_too_long_is_refused)
{
	struct gp_listener *listener;
	struct gp_conn *conn;

	memset(url.host, 'a', GP_URL_PATH_MAX);
	url.host[0] = '/';
	url.host[GP_URL_PATH_MAX] = 0;
	assert_int_equal(gp_listen(&url, &listener, error, sizeof(error)), -ENAMETOOLONG);
	assert_non_null(strstr(error, "at most 107 characters"));
	assert_int_equal(gp_connect(&url, NULL, 0, 1000, &conn, error, sizeof(error)),
			 -ENAMETOOLONG);
}

UNIX_TEST(a_full_listener_is_waited_for_no_longer_than_told)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), r = 0;
	struct gp_conn *conns[8] = { NULL };

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", url.host);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	for (int i = 0; r == 0 && i < 8; i++)
		r = gp_connect(&url, NULL, 0, 50, &conns[i], error, sizeof(error));
	assert_int_equal(r, -ETIMEDOUT);
	for (int i = 0; i < 8; i++)
		gp_conn_destroy(conns[i]);
	close(fd);
	assert_int_equal(unlink(url.host), 0);
}

UNIX_TEST(both_ends_are_named_by_the_path)
{
	struct gp_listener *listener = listening();
	struct gp_conn *client, *server;
	char text[GP_URL_TEXT_MAX];
	uid_t uid;

	gp_url_format(&url, text, sizeof(text));
	assert_int_equal(gp_connect(&url, NULL, 0, 1000, &client, error, sizeof(error)), 0);
	assert_int_equal(gp_accept(listener, 1000, &server), 0);
	assert_string_equal(gp_conn_peer(client), text);
	assert_string_equal(gp_conn_peer(server), text);
	assert_true(gp_conn_caps(server) & GP_CONN_CAP_LOCAL);
	assert_int_equal(gp_conn_peer_uid(server, &uid), 0);
	assert_int_equal(uid, geteuid());
	gp_conn_destroy(client);
	gp_conn_destroy(server);
	gp_listener_destroy(listener);
}

UNIT_TEST_MAIN(NULL, NULL)
