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
 *   GP_INSTEAD("text", name, ...)   what the program may do instead
 *   GP_PROBED(name, ...)            nothing: programs ask only whether the driver has it
 */
#define GP_INSTEAD(text, ...)
#define GP_PROBED(...)

/*
 * A kind of handle: both ends' kinds, its form on the wire, what it costs, its life.
 *   TYPES(type, ...)   what the prototypes call it
 *   COST(bytes)        what the daemon keeps for one, roughly; without it the client alone has any
 *   ORDERED            calls that name one come behind the host functions that others of it wait for
 *   LOOKUP             generated code finds one with gpc_<kind>_id() and gpd_given_<kind>()
 *   OBJECT(function)   it is the driver's and nothing else: NEW and DROP work without a hook, and
 *                      what the client leaves behind is ended with this function of the driver
 *   GOES_WITH(context or session)   when that is
 *   PART_OF(kind)      instead of both: it ends with the object of that kind that the call which
 *                      makes it names
 */
#define GP_KIND(name, ...)

/*
 * Types.
 *   GP_ENUM(type)                        an enumeration
 *   GP_OPAQUE(type, size)                bytes that nobody looks into
 *   GP_STRUCT(type, member, ...)         "ctype path", the path as C would write it behind a dot;
 *                                        "[n]" behind an array.  What is not listed stays zero.
 *   GP_ATTRIBUTES(type, value, ...)      "ctype attribute": what IN_ATTRIBUTE and OUT_ATTRIBUTE hold
 *   GP_OPTIONS(type, option, ...)        options whose values are numbers (IN_OPTIONS)
 * Before a member:
 *   ONE_OF(value, ...)  UP_TO(value)     else CUDA_ERROR_INVALID_VALUE, at both ends
 *   WHEN(tag, value, ...)                it is one while the member tag has one of these values:
 *                                        members of a union
 */
#define GP_ENUM(type)
#define GP_OPAQUE(type, size)
#define GP_STRUCT(type, ...)
#define GP_ATTRIBUTES(type, ...)
#define GP_OPTIONS(type, ...)

/* Before a prototype. Numbers are unique and never used again; a changed signature is a new number. */
#define GP_CALL(number, completion, ...)    /* CUDA call that travels as it is */
#define GP_LOCAL(...)                       /* CUDA call that client/ implements by hand: gpc_<name>() */
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
 *   BULK_IN            a bulk tail follows the message
 *   BULK_OUT           data notes with bulk tails precede the reply
 *
 * Its place among the session's other calls, where the names of streams, events and images that it
 * has do not say it:
 *   BEHIND_ALL         comes when all that was submitted before is done
 *   BEFORE_ALL         all that is submitted later waits for it
 *   BARRIER(flags)     the same if this parameter has GP_COPY_BARRIER
 *   ABOUT_MEMORY       comes behind the calls that make, map or give back memory
 *   AWAITS_STREAM      asks or waits for its stream, and gives it no work
 *   ASKS               asks whether something is done: answered "not yet" rather than late
 *   PASSES_COPIES      need not wait for copies to the client that are still under way
 *
 * What it does while streams are captured (docs/graphs.md); required of what takes a stream:
 *   CAPTURE(node)            client/graph's gpc_capture_<name>() comes first: it becomes a node
 *   CAPTURE(refused)         its stream cannot be captured: the capture is invalid from then on
 *   CAPTURE(unsafe)          it would disturb a capture: refused as the modes of capture say
 *   CAPTURE(default_stream)  both, of the default stream, which it works on
 *   CAPTURE(as_ever)         the same as outside of captures
 *
 * What it does to the session's account; required of what takes a stream or makes memory:
 *   ALLOCATES(size)    so many bytes (a parameter's name, or BY_HOOK) of the device that the
 *                      parameter "device" names
 *   FREES(size)
 *   LAUNCHES           work of the device: kernels, memsets, copies within it; takes turns
 *   COPIES(size)       work of the link (a parameter's name, or BY_HOOK)
 *   CHARGES_NOTHING
 */

/* Before a pointer parameter: exactly one direction is required.  A count or a size is a number or
 * names a parameter; elements are scalars, handles of LOOKUP or OBJECT, or described types. */
#define IN            /* one element, read by the callee */
#define IN_N(count)   /* count elements */
#define IN_BYTES(size)
#define IN_STRING     /* NUL-terminated */
#define IN_OPTIONS(count, values) /* count options of a GP_OPTIONS type; values (BY_HOOK) has theirs */
#define IN_ATTRIBUTE(attribute)   /* the value of what this parameter names */
#define OUT           /* one element, written on CUDA_SUCCESS */
#define OUT_N(count)
#define OUT_UP_TO(count) /* as many as the INOUT parameter count says and there are; may be NULL
                          * with OPT: then count comes back as how many there are */
#define OUT_BYTES(size)
#define OUT_ATTRIBUTE(attribute)
#define INOUT         /* a scalar, read and written */
#define BY_HOOK       /* read or written by the hand-written function of this call */

/* Qualifiers, after the direction. */
#define OPT           /* may be NULL */
#define NEW           /* a handle that this call makes; the client names it */
#define STATIC        /* points to storage that is never freed */
#define SPAN(size)    /* of a CUdeviceptr: so many bytes of it must be the session's; else 1 */

/* On a handle passed by value. */
#define DROP          /* this call destroys the handle */

/*
 * Types of our own messages.  gp_address is checked against the caller's window; gp_new_address is
 * where memory is made; gp_kernel names a function of an image; gp_context, gp_image, gp_function (a
 * host function), gp_memory (physical memory), gp_graph_plan (graph.h), gp_array (plain or mipmapped), gp_texture (a texture
 * or a surface object): handles.
 */
typedef unsigned long long gp_address;
typedef unsigned long long gp_new_address;
typedef unsigned long long gp_kernel;
typedef unsigned int gp_context;
typedef unsigned int gp_image;
typedef unsigned int gp_function;
typedef unsigned int gp_memory;
typedef unsigned int gp_graph_plan;
typedef unsigned int gp_array;
typedef unsigned int gp_texture;

#endif /* GP_API_VOCABULARY_H */
