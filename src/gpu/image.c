/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - the kernels as bytes, as nvcc made them (HK_CUDA_IMAGE names the file),
 * or those of the driver where the build had no nvcc.
 */
#include "gpu/cuda.h"

#ifdef HK_CUDA_IMAGE
__asm__(".section .rodata\n"
	".balign 64\n"
	".hidden hk__cuda_image_bytes\n"
	".global hk__cuda_image_bytes\n"
	"hk__cuda_image_bytes:\n"
	".incbin \"" HK_CUDA_IMAGE "\"\n"
	".balign 64\n"
	".previous\n");
extern const char hk__cuda_image_bytes[] __attribute__((visibility("hidden")));

const void *hk__cuda_image(void)
{
	return hk__cuda_image_bytes;
}
#else
const void *hk__cuda_image(void)
{
	return hk__cuda_driver_image();
}
#endif
