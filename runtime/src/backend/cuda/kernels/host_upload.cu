// The first kernel of a graph: host values and device inputs, scattered to where the graph reads
// them. Everything travels as the kernel's parameters, which are replaced before each launch, so
// nothing is staged and nobody waits.
// Types: none
#include "common.cuh"

UPLOAD(upload_240, 240)
UPLOAD(upload_1k, 1008)
UPLOAD(upload_4k, 4064)
