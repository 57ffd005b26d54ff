GP_STRUCT(CUDA_MEMSET_NODE_PARAMS,
        size_t pitch,
        int value)
