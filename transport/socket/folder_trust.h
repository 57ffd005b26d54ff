/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may put a file of his own where a path says that one is: whoever owns one of the folders that
 * lead there, or a link on the way, or may write to such a folder.  Any thread.
 */
#ifndef GP_PATH_TRUST_H
#define GP_PATH_TRUST_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/* Of a folder, by its absolute path: 0 if nobody may but root, this process's user and `also`;
 * -ENOENT if that is so up to one that is not there, and whoever makes it has to look again;
 * otherwise -errno, and detail says which one, and what is wrong with it. */
GP_MUST_CHECK int gp_path_check_trust(const char *path, uid_t also, char *detail,
				      size_t detail_size);

#endif /* GP_PATH_TRUST_H */
