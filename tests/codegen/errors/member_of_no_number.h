GP_STRUCT(CUfoo,
        int x[abc])
