/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/program.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file's path, and what changes when it is written anew. */
static bool
add_file(EVP_MD_CTX *digest, const char *path)
{
	struct stat st;
	int64_t facts[3];

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	facts[0] = st.st_size;
	facts[1] = st.st_mtim.tv_sec;
	facts[2] = st.st_mtim.tv_nsec;
	return EVP_DigestUpdate(digest, path, strlen(path) + 1) == 1 &&
	       EVP_DigestUpdate(digest, facts, sizeof(facts)) == 1;
}

/* The first argument is the script, where the executable is an interpreter. */
static bool
first_argument(char *text, size_t size)
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
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	char path[PATH_MAX], text[2 * PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
	bool good = digest && size > 0 && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;

	if (good) {
		path[size] = '\0';
		good = add_file(digest, path);
	}
	if (good && first_argument(text, sizeof(text)))
		(void)add_file(digest, text);
	good = good && EVP_DigestFinal_ex(digest, key, NULL) == 1;
	EVP_MD_CTX_free(digest);
	return good;
}
