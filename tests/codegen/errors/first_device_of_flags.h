GP_LOCAL(CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuFoo(
        CUstream hStream,
        unsigned int flags);

GP_FIRST(cuFoo, DEVICE(flags))
