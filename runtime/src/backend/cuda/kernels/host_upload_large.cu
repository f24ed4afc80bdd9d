// As `host_upload.cu`, with as much as a parameter may hold since CUDA 12.1.
// Types: none
#include "common.cuh"

UPLOAD(upload_32k, 32736)
