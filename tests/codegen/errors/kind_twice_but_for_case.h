GP_KIND(graph, TYPES(CUgraph))
GP_KIND(Graph, TYPES(CUgraphNode))
