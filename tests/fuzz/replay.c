/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over files and the files of folders, without a fuzzing engine. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
replay_file(const char *path, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	FILE *file = fopen(path, "rb");
	size_t got = file && bytes ? fread(bytes, 1, size, file) : 0;

	if (file)
		fclose(file);
	if (got == size && file)
		(void)LLVMFuzzerTestOneInput(bytes, size);
	else
		perror(path);
	free(bytes);
	return got == size && file ? 1 : -1;
}

/* How many inputs were run, or -1. */
static int
replay(const char *path)
{
	struct stat status;
	struct dirent *entry;
	DIR *folder;
	int count = 0;

	if (stat(path, &status) < 0) {
		perror(path);
		return -1;
	}
	if (!S_ISDIR(status.st_mode))
		return replay_file(path, (size_t)status.st_size);
	folder = opendir(path);
	if (!folder) {
		perror(path);
		return -1;
	}
	while (count >= 0 && (entry = readdir(folder))) {
		char inside[4096];
		int r;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(inside, sizeof(inside), "%s/%s", path, entry->d_name);
		r = replay(inside);
		count = r < 0 ? r : count + r;
	}
	closedir(folder);
	return count;
}

int
main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = replay(argv[i]);

		if (count < 0)
			return 1;
		total += count;
	}
	printf("%d inputs\n", total);
	return total ? 0 : 1;
}
