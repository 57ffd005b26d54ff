GP_STRUCT(CUfoo,
        int a;
