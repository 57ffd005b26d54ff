GP_STRUCT(CUfoo,
        CUstream stream)

GP_CALL(0x1, POST, CHARGES_NOTHING, CAPTURE(as_ever))
CUresult cuFoo(
        IN const CUfoo *foo);
