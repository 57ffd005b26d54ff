GP_HELD(thing, TYPES(CUevent), STRUCT(gpc_thing), ENTER(gpc_thing_enter), HEADER("client/thing.h"))

GP_HELD(other, TYPES(CUevent), STRUCT(gpc_thing), ENTER(gpc_thing_enter), HEADER("client/thing.h"))
