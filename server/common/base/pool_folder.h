/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default folder of the pool's files (configuration, certificates, tokens) for gpupoold and
 * gpupoolctl: /etc/gpupool for root, otherwise $XDG_CONFIG_HOME/gpupool or ~/.config/gpupool. The
 * environment variable CONFIGURATION_DIRECTORY replaces all of them if it is an absolute path
 * without a colon; otherwise it is ignored.
 *
 * Threads: any; the functions keep no state, but read the environment.
 */
#ifndef GPD_POOL_FOLDER_H
#define GPD_POOL_FOLDER_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/* The folder of root, and so of the machine's system-wide daemon. */
#define GPD_FOLDER_SYSTEM "/etc/gpupool"
/* Environment variable with the folder's absolute path. systemd sets it; the daemon sets it before
 * it drops root, so that its folder does not change with the user. */
#define GPD_FOLDER_VARIABLE "CONFIGURATION_DIRECTORY"

/* Names of the files in the folder. */
#define GPD_FILE_AUTHORITY "ca.pem"
#define GPD_FILE_AUTHORITY_KEY "ca.key"
#define GPD_FILE_REVOKED "ca.crl"
#define GPD_FILE_CERTIFICATE "server.pem"
#define GPD_FILE_KEY "server.key"
#define GPD_FILE_TOKENS "tokens"
#define GPD_FILE_CONFIG "gpupoold.conf"

/* Writes the folder's path; the folder need not exist. Returns 0; or -ENOENT, with path undefined,
 * if the path does not fit, or if no variable has a usable path: for another user than root,
 * neither XDG_CONFIG_HOME nor HOME is an absolute path. */
GP_MUST_CHECK int gpd_folder_default(char *path, size_t size);
/* Returns the path to use for a file, which need not exist: `option` (of the command line) unless
 * it is NULL; else `configured` unless it is ""; else the path of the file `name` in the default
 * folder, which is written to buffer, which has size bytes. Returns NULL if this path is needed but
 * gpd_folder_file() fails. configured is not NULL. The result is one of the pointers option,
 * configured and buffer. */
const char *gpd_folder_select_path(const char *option, const char *configured, const char *name,
				   char *buffer, size_t size);
/* Writes the path of a file in the default folder. Returns 0; or -ENOENT if there is no default
 * folder or the path does not fit. */
GP_MUST_CHECK int gpd_folder_file(const char *name, char *path, size_t size);

/* Returns the mode for a new file with a secret at this path: 0640 if the path's folder is setgid,
 * so that its group (the daemon's) can read the file; else, or if the folder does not exist,
 * 0600. */
mode_t gpd_folder_secret_mode(const char *path);

#endif /* GPD_POOL_FOLDER_H */
