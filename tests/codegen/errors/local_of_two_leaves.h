GP_LOCAL(RETURNS(CUDA_SUCCESS))
CUresult cuGraphNodeTwo(
        CUgraphNode first,
        CUgraphNode second);
