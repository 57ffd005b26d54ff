/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vocabulary of the API description.
 *
 * A description file is a valid C header.  The generator (codegen/parse.py) reads the words below;
 * the C compiler sees nothing, so including a description after <cuda.h> makes the compiler check
 * our prototypes against NVIDIA's.  codegen/README.md says how to add a call.
 */
#ifndef GP_API_VOCABULARY_H
#define GP_API_VOCABULARY_H

/* A symbol of libcuda.so.1: exported name, name asked of cuGetProcAddress, driver version it came with. */
#define GP_SYMBOL(name, base, since)
#define GP_SYMBOL_PTDS(name, base, since)
#define GP_SYMBOL_PTSZ(name, base, since)

/* A function of the driver that the daemon's hand-written code uses. */
#define GP_DRIVER(name)
#define GP_DRIVER_OPTIONAL(name)

/*
 * What the user is told of symbols that no chapter describes.
 *   GP_UNSUPPORTED("text", "why", name, ...)   what the program may do instead
 *   GP_UNSUPPORTED_SILENT("why", name, ...)            nothing: programs ask only whether the driver has it
 * Why it is not supported stands in the table of codegen/coverage.py.
 */
#define GP_UNSUPPORTED(text, why, ...)
#define GP_UNSUPPORTED_SILENT(why, ...)

/*
 * What a function (or an ALIAS) checks before all else that it does, in this order; the driver
 * answers so, also before cuInit() and where no context is current.
 *   VALUE(parameter, ...)    NULL or 0: CUDA_ERROR_INVALID_VALUE.  Of a stream, 0 in a _ptsz entry
 *                            is the thread's own
 *   HANDLE(parameter, ...)   the same with CUDA_ERROR_INVALID_HANDLE
 *   CONTEXT(parameter, ...)  the same with CUDA_ERROR_INVALID_CONTEXT
 *   DEVICE(parameter)        there is no such device: CUDA_ERROR_INVALID_VALUE
 *   WITHIN(parameter, least, most)  else CUDA_ERROR_INVALID_VALUE
 *   INITIALIZED              cuInit() was called: CUDA_ERROR_NOT_INITIALIZED
 *   CURRENT                  and a context is current: CUDA_ERROR_INVALID_CONTEXT
 *   CURRENT(stream)          or the stream has one, which is current meanwhile; the last check
 *   LEGACY(context)             the first cuCtxCreate() created it: CUDA_ERROR_INVALID_CONTEXT
 */
#define GP_PRECHECK(name, ...)

/*
 * A kind of handle: both ends' kinds, its form on the wire, what it costs, its life.
 *   TYPES(type, ...)   what the prototypes call it
 *   COST(bytes)        what the daemon keeps for one, roughly; without it the client alone has any
 *   ORDERED            calls that name one come behind the host functions that others of it wait for
 *   LOOKUP             generated code finds one by hand-written functions: stream, event, context
 *   DESTROY(function)   it is the driver's and nothing else: NEW and DROP work without a hook, and
 *                      what the client leaves behind is ended with this function of the driver
 *   LIFETIME(context or session)   when that is
 */
#define GP_KIND(name, ...)

/*
 * What the client holds, of which functions are generated that it answers alone.
 *   TYPES(type, ...)   the handles that name one; without it, CLIENT_OBJECT(name) of a call does
 *   STRUCT(name)       what is found: struct name
 *   ENTER(function)    begins the call and finds it: function(handle, &found), of what it has
 *   KIND(kind)         instead of ENTER: the handle is the token of such an object
 *   LEAVE(function)      follows ENTER in any case: return function(result)
 *   HEADER("file", ...)  where these are declared
 */
#define GP_CLIENT_OBJECT(name, ...)

/*
 * Types.
 *   GP_ENUM(type)                        an enumeration
 *   GP_OPTIONS(type, option, ...)        options whose values are numbers (IN_OPTIONS); CLIENT_ONLY option: it
 *                                        stays with the client (hooks: gpc_options_encode_<type>, gpd_options_decode_<type>)
 *   GP_SET(name, value, ...)             values of cuda.h with a common property: gpc_is_<name>(), gpd_is_<name>()
 */
#define GP_ENUM(type)
#define GP_OPTIONS(type, ...)
#define GP_SET(name, ...)

/* Before a prototype. Numbers are unique and never used again; a changed signature is a new number. */
#define GP_CALL(number, completion, ...)    /* CUDA call that travels as it is */
#define GP_LOCAL(...)                       /* CUDA call that client/ answers: gpc_<name>(), by hand
                                             * unless words below say what it writes */
#define GP_MESSAGE(number, completion, ...) /* our own message, which the hand-written calls use */

/*
 * Completion:
 *   POST   nobody waits; what fails is reported by a later call (deferred error)
 *   WAIT   the caller waits for a reply
 *
 * Options of a call:
 *   VIA(message, ...)  a GP_LOCAL call that reaches the wire through these messages or calls
 *   ALIAS(name, ...)   further symbols of the same signature and meaning
 *   SERVER_HOOK        server/ implements it by hand: gpd_<name>(); without it the driver's function is called
 *   CLIENT_HOOK        client/ implements it by hand: gpc_<name>(); without it a stub is generated
 *   SIGNAL_SAFE        of a GP_LOCAL call: it takes no lock and allocates nothing, so it has no
 *                      call guard (client/guard/guard.h)
 *   QUICK              it is called often and seldom waits: all its cancellation points are behind
 *                      gpc_guard_block() (client/guard/guard.h)
 *   BULK_IN            a bulk tail follows the message
 *   BULK_OUT           data notes with bulk tails precede the reply
 *
 * Of a GP_LOCAL call that is generated out of what the client holds (GP_CLIENT_OBJECT):
 *   CLIENT_OBJECT(name)           it is of this, which no handle names
 *   REQUIRE(member, value, ...)  what is found has one of these values there, else
 *                      CUDA_ERROR_INVALID_VALUE
 *   FORWARD(function, argument, ...)  it is this other CUDA call with these parameters, of the same
 *                      types, and constants
 *   RETURNS(code)      finds what the call names, checks, writes nothing
 *
 * Its place among the session's other calls, where the names of streams, events and images that it
 * has do not say it:
 *   AFTER_ALL         comes when all that was submitted before is done
 *   BEFORE_ALL         all that is submitted later waits for it
 *   BARRIER(flags)     the same if this parameter has GP_COPY_BARRIER; with GP_COPY_LATE the record
 *                      is carried out at once, ahead of records that are kept; with
 *                      GP_COPY_LISTED its bytes may be replaced while it is kept
 *   AFTER_MEMORY       comes behind the calls that make, map or give back memory
 *   AWAITS_STREAM      asks or waits for its stream, and gives it no work
 *   AWAITS_HOST        its stream continues after a host function has returned or a word has been
 *                      written: until then both ends keep the records that come after it
 *   QUERY               asks whether something is done: answered "not yet" rather than late
 *   UNORDERED         is an effect of the host, or a question about one: it waits for no record that
 *                      is kept
 *   NO_DTOH_WAIT      need not wait for copies to the client that are still under way
 *   ASYNC_LAUNCH            its hook may leave the driver's call to another thread, in the order of its
 *                      stream (server/worker/issue/issue.h); all other calls wait for those
 *
 * What the client must know of its work:
 *   UNBOUNDED          the program decides how long it takes, as of a kernel; AWAITS_HOST implies it
 *   COMPILES           the daemon may compile code before it answers, which takes minutes
 *   WRITES_DEVICE_ONLY  it writes memory of the device, and no host memory that kernels reach unless
 *                      its caller notes that (gpc_host_memory_scan())
 *   INVALIDATES_CHECKS            if it fails and nobody waits for it, what the device accepted before may be
 *                      refused now: the client checks again (gpc_session_revise())
 *   TRACE_NAME("text")      what a trace calls its work; else the call's own name
 *
 * What it does while streams are captured (docs/graphs.md); required of what takes a stream:
 *   CAPTURE(node)            client/graph's gpc_capture_<name>() comes first: it becomes a node
 *   CAPTURE(refused)         its stream cannot be captured: the capture is invalid from then on
 *   CAPTURE(declined)        so, too, but the capture goes on without it
 *   CAPTURE(unsafe)          it would disturb a capture: refused as the modes of capture say
 *   CAPTURE(default_stream)  both, of the default stream, which it works on
 *   CAPTURE(unaffected)         the same as outside of captures
 *
 * Whose work NVIDIA's driver waits for before the call returns, streams that do not block included
 * (client/stream/sync.h):
 *   SYNCHRONIZES(CURRENT)    the current context's
 *   SYNCHRONIZES(address)    that of the context of the memory at this parameter, unless the memory
 *                            is a pool's
 *
 * What it does to the session's account; required of what takes a stream, makes an object (NEW) or
 * gives out device memory (OUT CUdeviceptr), unless VIA names the messages that say it:
 *   ALLOCATES(size)    so many bytes (a parameter's name, or BY_HOOK) of the device that the
 *                      parameter "device" names
 *   FREES(size)
 *   LAUNCHES           work of the device: kernels, memsets, copies within it; takes turns
 *   COPIES(size)       work of the link (a parameter's name, or BY_HOOK)
 *   CHARGES_NOTHING
 *   RATE_LIMITED            besides: all bytes of its lists, strings and bytes count for a limit of
 *                      bandwidth; of other calls they count from GPD_ACCOUNT_FREE_BYTES (account.h) on
 */

/* Before a pointer parameter: exactly one direction is required.  A count or a size is a number or
 * names a parameter; elements are numbers, enumerations, and handles of LOOKUP or DESTROY.  What is ORDERED is named by
 * a parameter, not by an element.  A device pointer that is given needs a SERVER_HOOK, which checks it.  What generated code makes an array of (elements in cells of 8 bytes,
 * strings and OUT_BYTES at the daemon) takes at most 1 MiB: else CUDA_ERROR_INVALID_VALUE. */
#define IN            /* one element, read by the callee */
#define IN_N(count)   /* count elements */
#define IN_BYTES(size)
#define IN_STRING     /* NUL-terminated */
#define IN_OPTIONS(count, values) /* count options of a GP_OPTIONS type; values (BY_HOOK) has theirs */
#define OUT           /* one element, written on CUDA_SUCCESS */
#define OUT_N(count)
#define OUT_BYTES(size)
#define INOUT         /* a number, read and written */
#define BY_HOOK       /* read or written by the hand-written function of this call */

/* Qualifiers, after the direction. */
#define OPT           /* may be NULL.  What travels as IN_N or IN_BYTES of a parameter needs and has
                       * no OPT: it may be NULL while that is 0, else CUDA_ERROR_INVALID_VALUE */
#define NEW           /* a handle that this call makes; the client names it */
#define STATIC        /* points to storage that is never freed */

/* Of a GP_LOCAL call that is generated. */
#define FIELD(member)  /* OUT: the member of what is found; OUT_BYTES: its text */
#define COMPUTE(...)       /* OUT: function(found, argument, ...): parameters of the call, constants */
#define FIXED(value) /* OUT: this, whatever is found */
#define STORE(member)    /* a number: the member becomes it */
#define WITHIN(least, most) /* a number: else CUDA_ERROR_INVALID_VALUE */

/* On a handle passed by value. */
#define DROP          /* this call destroys the handle */

/*
 * Types of our own messages.  gp_address is checked against the caller's window; gp_new_address is
 * where memory is made; gp_kernel names a function of an image; gp_context, gp_image, gp_function (a
 * host function), gp_memory (physical memory), gp_graph_plan and gp_graph_root (graph.h), gp_array (plain or
 * mipmapped), gp_texture (a texture or a surface object), gp_share (memory that other processes may open): handles.
 */
typedef unsigned long long gp_address;
typedef unsigned long long gp_new_address;
typedef unsigned long long gp_kernel;
typedef unsigned int gp_context;
typedef unsigned int gp_image;
typedef unsigned int gp_function;
typedef unsigned int gp_memory;
typedef unsigned int gp_graph_plan;
typedef unsigned int gp_graph_root;
typedef unsigned int gp_array;
typedef unsigned int gp_texture;
typedef unsigned int gp_share;

#endif /* GP_API_VOCABULARY_H */
