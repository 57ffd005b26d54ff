GP_STRUCT(CUfoo,
        CUstream stream)

GP_LOCAL(CHARGES_NOTHING)
CUresult cuFoo(
        IN const CUfoo *foo);
