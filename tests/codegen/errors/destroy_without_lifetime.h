GP_KIND(graph, TYPES(CUgraph), COST(64), DESTROY(cuGraphDestroy))
