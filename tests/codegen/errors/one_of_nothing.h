GP_STRUCT(CUfoo,
        ONE_OF() int a)
