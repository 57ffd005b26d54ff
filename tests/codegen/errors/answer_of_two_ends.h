GP_LOCAL(ANSWERS(CUDA_SUCCESS))
CUresult cuGraphNodeTwo(
        CUgraphNode first,
        CUgraphNode second);
