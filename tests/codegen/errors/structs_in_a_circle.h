GP_STRUCT(CUone,
        CUtwo two)
GP_STRUCT(CUtwo,
        CUone one)
