/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include "cli/elf_file.h"
#include "cli/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPTS_MAX 4

/* Default folders of the loader, searched after LD_LIBRARY_PATH. */
static const char *const usual_folders[] = {
#if defined(__aarch64__)
	"/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
#else
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
#endif
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
};

static int
try_file(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return errno;
	if (S_ISDIR(status.st_mode))
		return EISDIR;
	return access(path, X_OK) ? errno : 0;
}

int
cli_program_find(const char *name, char *path, size_t size)
{
	const char *list = getenv("PATH");
	int r = ENOENT;

	if (strchr(name, '/')) {
		if ((size_t)snprintf(path, size, "%s", name) >= size)
			return ENAMETOOLONG;
		return try_file(path);
	}
	for (list = list ? list : "/bin:/usr/bin"; *name; list++) {
		size_t length = strcspn(list, ":");
		int tried;

		/* An empty entry is the current folder. */
		if ((size_t)snprintf(path, size, "%.*s/%s", length ? (int)length : 1,
				     length ? list : ".", name) < size) {
			tried = try_file(path);
			if (tried == 0)
				return 0;
			if (tried == EACCES)
				r = EACCES;
		}
		list += length;
		if (!*list)
			break;
	}
	(void)snprintf(path, size, "%s", name);
	return r;
}

const char *
cli_program_hint(const char *name, int error)
{
	static char text[256];

	text[0] = '\0';
	if (error == ENOENT && *name && !strchr(name, '/') && try_file(name) == 0)
		(void)snprintf(text, sizeof(text), "; did you mean ./%s, in this folder?", name);
	return text;
}

/* The loader ignores LD_LIBRARY_PATH for a program that runs with other privileges than its
 * caller's. */
static bool
is_privileged(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return false;
	return (status.st_mode & S_ISUID && status.st_uid != getuid()) ||
	       (status.st_mode & S_ISGID && status.st_gid != getgid()) ||
	       (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

static void
path_copy(char *to, const char *from)
{
	(void)snprintf(to, CLI_PROGRAM_PATH_MAX, "%s", from ? from : "");
}

/* Parses a line such as "#!/usr/bin/env python3". Returns false if there is no interpreter, or it
 * cannot be run. */
static bool
read_script(const char *bytes, size_t size, struct cli_program *program)
{
	char line[512], *word, *rest;
	size_t length = size < sizeof(line) - 1 ? size : sizeof(line) - 1;

	if (size < 2 || bytes[0] != '#' || bytes[1] != '!')
		return false;
	memcpy(line, bytes, length);
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	word = strtok_r(line + 2, " \t\r", &rest);
	if (word && strlen(word) >= 4 && strcmp(word + strlen(word) - 4, "/env") == 0) {
		do
			word = strtok_r(NULL, " \t\r", &rest);
		while (word && (*word == '-' || strchr(word, '=')));
	}
	if (!word)
		return false;
	program->interpreter_error =
		cli_program_find(word, program->interpreter, sizeof(program->interpreter));
	return program->interpreter_error == 0;
}

static void
program_set_elf(const char *path, const struct cli_elf *elf, struct cli_program *program)
{
	char *real = realpath(path, NULL), *slash;

	program->elf = elf->elf;
	program->other_machine = elf->other_machine;
	program->is_static = elf->elf && !elf->other_machine && !elf->dynamic;
	program->privileged = is_privileged(path);
	/* A RUNPATH overrides an RPATH. */
	path_copy(program->rpath, elf->runpath ? NULL : elf->rpath);
	path_copy(program->runpath, elf->runpath);
	path_copy(program->needed, elf->libcuda);
	path_copy(program->folder, real ? real : path);
	free(real);
	slash = strrchr(program->folder, '/');
	if (slash)
		*slash = '\0';
}

/* depth: number of nested scripts. */
static int
read_file(const char *path, struct cli_program *program, int depth)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
	void *bytes = MAP_FAILED;
	struct stat status;
	struct cli_elf elf;

	/* An executable file need not be readable. */
	if (fd < 0)
		return errno == EACCES ? 0 : errno;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (bytes == MAP_FAILED)
		return 0;
	if (depth < SCRIPTS_MAX && read_script(bytes, (size_t)status.st_size, program)) {
		r = read_file(program->interpreter, program, depth + 1);
	} else {
		cli_elf_read(bytes, (size_t)status.st_size, &elf);
		program_set_elf(path, &elf, program);
	}
	(void)munmap(bytes, (size_t)status.st_size);
	return r;
}

int
cli_program_read(const char *name, struct cli_program *program)
{
	int r;

	*program = (struct cli_program){ 0 };
	r = cli_program_find(name, program->path, sizeof(program->path));
	return r ? r : read_file(program->path, program, 0);
}

const char *
cli_program_problem(const struct cli_program *program)
{
	if (program->other_machine)
		return "it is built for another processor";
	if (program->is_static)
		return "it is linked statically, libc included, and looks for no library; link "
		       "libc "
		       "dynamically (the CUDA runtime may be static)";
	if (program->privileged)
		return "it runs with other privileges than yours (setuid, setgid or capabilities), "
		       "so the loader ignores LD_LIBRARY_PATH; run a copy without them";
	return NULL;
}

/* Replaces $ORIGIN and ${ORIGIN} by the program's folder. */
static void
origin_expand(const char *from, size_t length, const char *origin, char *to, size_t size)
{
	static const char *const words[] = { "${ORIGIN}", "$ORIGIN" };
	size_t used = 0;

	to[0] = '\0';
	while (length > 0 && used + 1 < size) {
		size_t word = 0;

		for (size_t i = 0; !word && i < 2; i++) {
			if (length >= strlen(words[i]) &&
			    strncmp(from, words[i], strlen(words[i])) == 0)
				word = strlen(words[i]);
		}
		(void)snprintf(to + used, size - used, "%.*s", word ? (int)strlen(origin) : 1,
			       word ? origin : from);
		used += strlen(to + used);
		from += word ? word : 1;
		length -= word ? word : 1;
	}
}

static bool
find_in_list(const char *list, const char *origin, char *path, size_t size)
{
	for (; list && *list; list++) {
		size_t length = strcspn(list, ":;");
		char folder[CLI_PROGRAM_PATH_MAX];

		origin_expand(list, length, origin, folder, sizeof(folder));
		if ((size_t)snprintf(path, size, "%s/" CLI_LIBRARY, length ? folder : ".") < size &&
		    cli_library_kind(path) != CLI_LIBRARY_NONE)
			return true;
		list += length;
		if (!*list)
			break;
	}
	return false;
}

/* The cache contains paths as zero-terminated strings. */
static bool
find_in_cache(char *path, size_t size)
{
	static const char name[] = "/" CLI_LIBRARY;
	int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	const char *bytes = MAP_FAILED, *place;
	struct stat status = { 0 };
	bool found = false;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (bytes == MAP_FAILED)
		return false;
	place = memmem(bytes, (size_t)status.st_size, name, sizeof(name));
	while (place && place > bytes && place[-1] != '\0')
		place--;
	if (place && (size_t)snprintf(path, size, "%s", place) < size)
		found = cli_library_kind(path) != CLI_LIBRARY_NONE;
	(void)munmap((void *)bytes, (size_t)status.st_size);
	return found;
}

bool
cli_program_find_library(const struct cli_program *program, const char *library_path, char *path,
			 size_t size, const char **why_p)
{
	bool own = !program->is_static && !program->privileged;

	if (program->is_static)
		return false;
	*why_p = "the program names it by its path";
	if (strchr(program->needed, '/') &&
	    (size_t)snprintf(path, size, "%s", program->needed) < size)
		return cli_library_kind(path) != CLI_LIBRARY_NONE;
	*why_p = "the program's RPATH, which comes before LD_LIBRARY_PATH";
	if (find_in_list(program->rpath, program->folder, path, size))
		return true;
	*why_p = "LD_LIBRARY_PATH";
	if (own && find_in_list(library_path, program->folder, path, size))
		return true;
	*why_p = "the program's RUNPATH";
	if (find_in_list(program->runpath, program->folder, path, size))
		return true;
	*why_p = "the loader's cache (ldconfig)";
	if (find_in_cache(path, size))
		return true;
	*why_p = "the usual folders";
	for (size_t i = 0; i < sizeof(usual_folders) / sizeof(usual_folders[0]); i++) {
		if ((size_t)snprintf(path, size, "%s/" CLI_LIBRARY, usual_folders[i]) < size &&
		    cli_library_kind(path) != CLI_LIBRARY_NONE)
			return true;
	}
	return false;
}
