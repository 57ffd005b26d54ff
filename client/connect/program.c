/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/program.h"

#include "base/sha256.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Adds the path of a file, and properties that change when it is rewritten. */
static bool
digest_add_file(struct gp_sha256 *digest, const char *path)
{
	struct stat st;
	int64_t facts[3];

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	facts[0] = st.st_size;
	facts[1] = st.st_mtim.tv_sec;
	facts[2] = st.st_mtim.tv_nsec;
	gp_sha256_update(digest, path, strlen(path) + 1);
	gp_sha256_update(digest, facts, sizeof(facts));
	return true;
}

/* If the executable is an interpreter, its first argument is the script. */
static bool
script_get_path(char *text, size_t size)
{
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t got = file ? fread(text, 1, size - 1, file) : 0;
	size_t name;

	if (file)
		(void)fclose(file);
	text[got] = '\0';
	name = strlen(text) + 1;
	if (name >= got)
		return false;
	memmove(text, text + name, got - name + 1);
	return true;
}

bool
gpc_program_key(uint8_t key[GPC_PROGRAM_KEY_SIZE])
{
	struct gp_sha256 digest;
	char path[PATH_MAX], text[2 * PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (size <= 0)
		return false;
	path[size] = '\0';
	gp_sha256_init(&digest);
	if (!digest_add_file(&digest, path))
		return false;
	if (script_get_path(text, sizeof(text)))
		(void)digest_add_file(&digest, text);
	gp_sha256_final(&digest, key);
	return true;
}
