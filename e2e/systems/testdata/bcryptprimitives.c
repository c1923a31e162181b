/* ProcessPrng for Wine 8, which has no bcryptprimitives.dll; Go programs need it for
 * their random numbers. Built by TestWine and put into its prefix's system32. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length); /* RtlGenRandom */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
	return SystemFunction036(data, (ULONG)size);
}
