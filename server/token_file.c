/* SPDX-License-Identifier: Apache-2.0 */
#include "server/token_file.h"

#include "server/config_value.h"
#include "server/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX ((size_t)8 << 20)
#define PATH_SIZE sizeof(((struct gpd_token_store *)0)->path)

static int
complain(int code, const char *path, char *error, size_t error_size)
{
	snprintf(error, error_size, "%s: %s", path, strerror(code));
	return -code;
}

/* Reading. */

static int
read_all(FILE *file, const char *path, struct gpd_tokens *tokens, char *error, size_t error_size)
{
	char *text = malloc(FILE_MAX + 1);
	size_t size;
	int r;

	if (!text)
		return complain(ENOMEM, path, error, error_size);
	errno = 0;
	size = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file))
		r = complain(errno, path, error, error_size);
	else if (size > FILE_MAX)
		r = complain(EFBIG, path, error, error_size);
	else
		r = gpd_tokens_parse(text, size, path, tokens, error, error_size);
	free(text);
	return r;
}

/* status: of the file that was read, all zero if there is none. */
static int
load(const char *path, struct gpd_tokens *tokens, struct stat *status, char *error,
     size_t error_size)
{
	/* Who waits at a pipe serves nobody. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	FILE *file;

	memset(status, 0, sizeof(*status));
	if (fd < 0 && errno == ENOENT) {
		*tokens = (struct gpd_tokens){ 0 };
		return 0;
	}
	if (fd < 0)
		return complain(errno, path, error, error_size);
	if (fstat(fd, status) || !S_ISREG(status->st_mode)) {
		close(fd);
		return complain(EINVAL, path, error, error_size);
	}
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return complain(ENOMEM, path, error, error_size);
	}
	r = read_all(file, path, tokens, error, error_size);
	fclose(file);
	return r;
}

int
gpd_tokens_load(const char *path, struct gpd_tokens *tokens, char *error, size_t error_size)
{
	struct stat status;

	return load(path, tokens, &status, error, error_size);
}

/* Changing. */

/* The descriptor of the lock, which its close gives back, or a negative errno. */
static int
lock(const char *path, char *error, size_t error_size)
{
	char name[PATH_SIZE];
	int fd;

	if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name))
		return complain(ENAMETOOLONG, path, error, error_size);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return complain(errno, name, error, error_size);
	while (flock(fd, LOCK_EX)) {
		if (errno == EINTR)
			continue;
		close(fd);
		return complain(errno, name, error, error_size);
	}
	return fd;
}

/* The daemon may be another user, who was given the file that was there before. */
static void
keep_owner(const char *path, int fd)
{
	struct stat status;

	if (stat(path, &status)) {
		(void)fchmod(fd, gpd_folder_secret_mode(path));
		return;
	}
	if (fchown(fd, status.st_uid, status.st_gid) == 0)
		(void)fchmod(fd, status.st_mode & 0777);
}

static void
sync_folder(const char *path)
{
	char folder[PATH_SIZE];
	const char *slash = strrchr(path, '/');
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	fd = open(folder[0] ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

/* With the lock held. */
static int
replace(const char *path, const struct gpd_tokens *tokens, char *error, size_t error_size)
{
	char name[PATH_SIZE];
	FILE *file = NULL;
	int fd, r = 0;

	if (snprintf(name, sizeof(name), "%s.new", path) >= (int)sizeof(name))
		return complain(ENAMETOOLONG, path, error, error_size);
	(void)unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		file = fdopen(fd, "w");
	if (!file) {
		r = complain(errno, name, error, error_size);
		if (fd >= 0)
			close(fd);
		return r;
	}
	keep_owner(path, fd);
	gpd_tokens_write(tokens, file);
	if (fflush(file) || fsync(fd))
		r = complain(errno, name, error, error_size);
	if (fclose(file) && r == 0)
		r = complain(errno, name, error, error_size);
	if (r == 0 && rename(name, path))
		r = complain(errno, path, error, error_size);
	if (r)
		(void)unlink(name);
	else
		sync_folder(path);
	return r;
}

/* Those whom nobody has to be told of any more. */
static void
forget_old(struct gpd_tokens *tokens, int64_t now_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];
		int64_t end =
			token->revoked_s < token->expires_s ? token->revoked_s : token->expires_s;

		if (end > now_s - GPD_TOKEN_KEPT_S)
			tokens->list[kept++] = *token;
	}
	tokens->count = kept;
}

static int
add(struct gpd_tokens *tokens, const struct gpd_token *token, const char *path, char *error,
    size_t error_size)
{
	struct gpd_token *grown;

	if (tokens->count >= GPD_TOKENS_MAX) {
		snprintf(error, error_size, "%s: there are %d tokens already", path,
			 GPD_TOKENS_MAX);
		return GP_E_INVALID;
	}
	grown = realloc(tokens->list, (tokens->count + 1) * sizeof(*grown));
	if (!grown)
		return complain(ENOMEM, path, error, error_size);
	tokens->list = grown;
	tokens->list[tokens->count++] = *token;
	return 0;
}

static int
make_token(struct gp_token *token, char *error, size_t error_size)
{
	uint8_t bytes[GP_TOKEN_RANDOM];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		snprintf(error, error_size, "no random numbers for a token");
		return -EIO;
	}
	gp_token_make(bytes, token);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

int
gpd_tokens_create(const char *path, const char *tenant, int64_t expires_s, const char *comment,
		  struct gp_token *token, char *error, size_t error_size)
{
	struct gpd_token entry = { .created_s = time(NULL),
				   .expires_s = expires_s,
				   .revoked_s = INT64_MAX };
	struct gpd_tokens tokens = { 0 };
	const char *wrong = gpd_value_name(tenant, entry.tenant);
	int fd, r;

	if (wrong) {
		snprintf(error, error_size, "\"%.200s\" %s", tenant, wrong);
		return GP_E_INVALID;
	}
	wrong = gpd_token_check_comment(comment);
	if (wrong) {
		snprintf(error, error_size, "the comment %s", wrong);
		return GP_E_INVALID;
	}
	fd = lock(path, error, error_size);
	if (fd < 0)
		return fd;
	r = gpd_tokens_load(path, &tokens, error, error_size);
	do
		r = r ? r : make_token(token, error, error_size);
	while (r == 0 && gpd_tokens_find(&tokens, token->id));
	if (r == 0) {
		memcpy(entry.id, token->id, sizeof(entry.id));
		gpd_token_hash(token, entry.hash);
		snprintf(entry.comment, sizeof(entry.comment), "%s", comment);
		forget_old(&tokens, entry.created_s);
		r = add(&tokens, &entry, path, error, error_size);
	}
	if (r == 0)
		r = replace(path, &tokens, error, error_size);
	gpd_tokens_free(&tokens);
	close(fd);
	return r;
}

static int
revoke_in(struct gpd_tokens *tokens, const char *path, const char *id, char *error,
	  size_t error_size)
{
	struct gpd_token *token = gpd_tokens_find(tokens, id);

	if (!token) {
		snprintf(error, error_size, "%s has no token of the ID \"%.20s\"", path, id);
		return GP_E_INVALID;
	}
	if (token->revoked_s != INT64_MAX) {
		snprintf(error, error_size, "the token %s is revoked already", id);
		return GP_E_INVALID;
	}
	token->revoked_s = time(NULL);
	forget_old(tokens, token->revoked_s);
	return replace(path, tokens, error, error_size);
}

int
gpd_tokens_revoke(const char *path, const char *id, char *error, size_t error_size)
{
	struct gpd_tokens tokens = { 0 };
	int fd = lock(path, error, error_size), r;

	if (fd < 0)
		return fd;
	r = gpd_tokens_load(path, &tokens, error, error_size);
	if (r == 0)
		r = revoke_in(&tokens, path, id, error, error_size);
	gpd_tokens_free(&tokens);
	close(fd);
	return r;
}

/* The daemon's. */

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* What is wrong with it stays so until it is another file; all else may get better by itself. */
static bool
is_of_content(int wrong)
{
	return wrong == GP_E_INVALID || wrong == -EINVAL || wrong == -EFBIG;
}

int
gpd_token_store_open(struct gpd_token_store *store, const char *path, char *error,
		     size_t error_size)
{
	*store = (struct gpd_token_store){ 0 };
	if (!path)
		return 0;
	if (strlen(path) >= sizeof(store->path))
		return complain(ENAMETOOLONG, path, error, error_size);
	memcpy(store->path, path, strlen(path) + 1);
	return load(path, &store->tokens, &store->status, error, error_size);
}

int
gpd_token_store_refresh(struct gpd_token_store *store, bool *changed_p, char *error,
			size_t error_size)
{
	struct stat status = { 0 };
	struct gpd_tokens tokens;
	bool same, known;
	int r;

	*changed_p = false;
	if (!store->path[0])
		return 0;
	if (stat(store->path, &status) && errno != ENOENT)
		memset(&status, 0xff, sizeof(status));
	same = is_same(&status, &store->status);
	if (same && (store->wrong == 0 || is_of_content(store->wrong)))
		return 0;
	known = same && store->wrong;
	r = load(store->path, &tokens, &store->status, error, error_size);
	store->wrong = r;
	*changed_p = r == 0 || !known;
	if (r) {
		store->status = status;
		return known ? 0 : r;
	}
	gpd_tokens_free(&store->tokens);
	store->tokens = tokens;
	return 0;
}

void
gpd_token_store_close(struct gpd_token_store *store)
{
	gpd_tokens_free(&store->tokens);
}
