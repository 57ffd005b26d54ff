/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that kernels of the session reach, at addresses that the client reserves as well
 * (docs/host-memory.md).  They are no device addresses of the window: the hooks check them.
 */

/* A range of addresses for it, at most size bytes; one for each session.  Asked again while nothing
 * is mapped there, it is another one: something of the program lay in the last. */
GP_MESSAGE(0x0801, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpHostReserve(
        size_t size,
        OUT unsigned long long *address,
        OUT unsigned long long *room);

/* Zeros at whole pages of that range.  shared 1: a file in memory that the client maps, too; its
 * descriptor is passed over the lane before the reply. */
GP_MESSAGE(0x0802, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpHostMap(
        unsigned long long address,
        size_t size,
        unsigned int shared);

/* Undoes one of these; answered when all work submitted before is done and the addresses are free. */
GP_MESSAGE(0x0803, WAIT, SERVER_HOOK, AFTER_ALL)
void gpHostUnmap(
        unsigned long long address,
        size_t size);

/* Zeros at whole granules of the window, or of a range of gpAddressReserve, where nothing is mapped: memory of the
 * daemon's machine that kernels of all devices reach.  gpMemoryUnmap undoes it.  CUDA_ERROR_NOT_SUPPORTED: the driver
 * makes none. */
GP_MESSAGE(0x0808, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpHostPlace(
        gp_address address,
        size_t size,
        int device);

/* What the program has changed in what is mapped (protocol/host_changes.h), stored at once. */
GP_MESSAGE(0x0804, POST, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostWrite(
        IN_BYTES(changes_size) const void *changes,
        size_t changes_size);

/* From here on runs of changes name the bytes of a word that are unchanged (protocol/host_merge.h), in both
 * directions. */
GP_MESSAGE(0x080a, POST, SERVER_HOOK, CHARGES_NOTHING, UNORDERED, NO_DTOH_WAIT)
void gpHostMerge(void);

/* What the program had changed when the note GP_NOTE_PUBLISH of this number came was sent before this.  0: the daemon
 * sends such notes from here on, before a gpStreamWait for a word of shared host memory is over. */
GP_MESSAGE(0x080b, POST, SERVER_HOOK, CHARGES_NOTHING, UNORDERED, NO_DTOH_WAIT)
void gpHostPublish(
        unsigned int number);

/* gpHostTake of any runs, for clients that do not know that. */
GP_MESSAGE(0x0805, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostFetch(
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        OUT unsigned long long *done,
        OUT_BYTES(BY_HOOK) void *changes);

/* What the device has changed in these ranges (u64 address, u64 size, each; up to GP_HOST_RANGES_MAX) since the
 * last time, in the order in which it is to be stored.  part: enum gp_consistent_copy_part.  done: how many bytes of the
 * ranges, one after another, this holds for; 0: there was too much for one answer. */
GP_MESSAGE(0x0806, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostTake(
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        unsigned int part,
        OUT unsigned long long *done,
        OUT_BYTES(BY_HOOK) void *changes);

/* The same, of little: what the device has changed when the work is done that was given before this call.  kind:
 * enum gp_host_after, of what is named.  Work that waits for a host function of the client is not meant.  Ranges: up
 * to GP_HOST_AFTER_RANGES, together up to GP_HOST_AFTER_MAX bytes; one that is mapped no more by then is passed
 * over.  writes: so many gpHostWrite of the session had been carried out. */
GP_MESSAGE(0x0807, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, NO_DTOH_WAIT)
void gpHostTakeBehind(
        unsigned int kind,
        unsigned int name,
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        OUT unsigned long long *writes,
        OUT_BYTES(BY_HOOK) void *changes);

/* The same as soon as the device has changed something in these ranges, or a gpHostWrite that came later has been
 * carried out. It is held until then, but no longer than GP_HOST_PENDING_MS, nor past the session's next gpHostTake. Up
 * to GP_HOST_PENDING_MAX are held, and each is answered with what has changed since the one before. */
GP_MESSAGE(0x0809, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpHostTakeChanged(
        IN_BYTES(ranges_size) const void *ranges,
        size_t ranges_size,
        OUT unsigned long long *writes,
        OUT_BYTES(BY_HOOK) void *changes);
