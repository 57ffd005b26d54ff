/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where gpupoold and gpupoolctl have the pool's files unless they are told: /etc/gpupool for root,
 * gpupool below XDG_CONFIG_HOME or ~/.config for others.  No state; any thread.
 */
#ifndef GPD_FOLDER_H
#define GPD_FOLDER_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/* That of root, and so of the machine's own daemon. */
#define GPD_FOLDER_SYSTEM "/etc/gpupool"
/* Where the folder is, if the service manager, or the daemon while it was root's, says so. */
#define GPD_FOLDER_VARIABLE "CONFIGURATION_DIRECTORY"

/* Their names there. */
#define GPD_FILE_AUTHORITY "ca.pem"
#define GPD_FILE_AUTHORITY_KEY "ca.key"
#define GPD_FILE_REVOKED "ca.crl"
#define GPD_FILE_CERTIFICATE "server.pem"
#define GPD_FILE_KEY "server.key"
#define GPD_FILE_TOKENS "tokens"
#define GPD_FILE_CONFIG "gpupoold.conf"

/* 0, or -ENOENT: this user has no such folder, or its path is too long. */
GP_MUST_CHECK int gpd_folder_default(char *path, size_t size);
/* What the command line names (NULL: nothing), else the configuration (""), else the file of this
 * name in the folder, whether or not it is there; NULL: there is no folder. */
const char *gpd_folder_select_path(const char *option, const char *configured, const char *name,
				   char *room, size_t size);
/* The path of a file in it. */
GP_MUST_CHECK int gpd_folder_file(const char *name, char *path, size_t size);

/* Of a file in there that nobody but the daemon may read: its group may, where the folder gives its
 * files a group (setgid) for that. */
mode_t gpd_folder_secret_mode(const char *path);

#endif /* GPD_FOLDER_H */
