GP_STRUCT(CUfoo,
        ONE_OF(a, b) int a)
