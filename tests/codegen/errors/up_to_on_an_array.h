GP_STRUCT(CUfoo,
        UP_TO(1) int a[2])
