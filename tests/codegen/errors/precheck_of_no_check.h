GP_LOCAL(CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuFoo(
        CUstream hStream,
        unsigned int flags);

GP_PRECHECK(cuFoo)
