// An iphlpapi.dll for Wine, which has no extended statistics: two connections, one a family, of which Windows' own
// headers say where each number stands. The IPv4 one is held by its peer's window, the IPv6 one by its program. Like
// Windows it counts only where that was turned on; how many groups are is written to C:\counted.
#define _WIN32_WINNT 0x0600
#include <winsock2.h>
#include <ws2tcpip.h>
#include <iphlpapi.h>
#include <stdio.h>
#include <string.h>

static BOOLEAN counted[2][TcpConnectionEstatsMaximum];

static ULONG ms(void) { return (ULONG)GetTickCount64(); }

// The IPv4 connection begins when the program has run for a second, and is refused once in a while.
static ULONG started;

static int there(void) { return ms() - started > 1000; }

BOOL WINAPI DllMain(HINSTANCE dll, DWORD reason, LPVOID reserved) {
	if (reason == DLL_PROCESS_ATTACH)
		started = ms();
	return TRUE;
}

DWORD WINAPI GetExtendedTcpTable(PVOID table, PDWORD size, BOOL order, ULONG family, TCP_TABLE_CLASS class, ULONG reserved) {
	DWORD need = family == AF_INET ? sizeof(MIB_TCPTABLE_OWNER_PID) : sizeof(MIB_TCP6TABLE_OWNER_PID);
	if (class != TCP_TABLE_OWNER_PID_CONNECTIONS)
		return ERROR_INVALID_PARAMETER;
	if (*size < need || !table) {
		*size = need;
		return ERROR_INSUFFICIENT_BUFFER;
	}
	memset(table, 0, need);
	if (family == AF_INET) {
		MIB_TCPTABLE_OWNER_PID *t = table;
		t->dwNumEntries = there();
		t->table[0].dwState = MIB_TCP_STATE_ESTAB;
		t->table[0].dwLocalAddr = htonl(0xc6336409); // 198.51.100.9
		t->table[0].dwLocalPort = htons(50000);
		t->table[0].dwRemoteAddr = htonl(0xc0000207); // 192.0.2.7
		t->table[0].dwRemotePort = htons(443);
		t->table[0].dwOwningPid = GetCurrentProcessId();
	} else {
		MIB_TCP6TABLE_OWNER_PID *t = table;
		t->dwNumEntries = 1;
		t->table[0].dwState = MIB_TCP_STATE_ESTAB;
		t->table[0].ucLocalAddr[0] = 0x20, t->table[0].ucLocalAddr[15] = 1; // 2000::1
		t->table[0].dwLocalPort = htons(50006);
		t->table[0].ucRemoteAddr[0] = 0x20, t->table[0].ucRemoteAddr[15] = 2;
		t->table[0].dwRemotePort = htons(22);
		t->table[0].dwOwningPid = GetCurrentProcessId();
	}
	return 0;
}

static ULONG get(int v6, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG rwSize, PUCHAR rod, ULONG rodSize) {
	if (rwSize != sizeof(BOOLEAN))
		return ERROR_INVALID_PARAMETER;
	*rw = counted[v6][type];
#define GROUP(number, name)                                                                                                 \
	case number:                                                                                                         \
		if (rodSize != sizeof(TCP_ESTATS_##name##_ROD_v0))                                                           \
			return ERROR_INVALID_PARAMETER;                                                                      \
		memset(rod, 0, rodSize);                                                                                     \
		if (!*rw)                                                                                                    \
			break;
#define ITS(name) ((TCP_ESTATS_##name##_ROD_v0 *)rod)
	switch (type) {
		GROUP(TcpConnectionEstatsData, DATA)
		ITS(DATA)->ThruBytesAcked = (v6 ? 5000000000ull : 0) + (ms() - started) * 1000ull; // 8 Mbit/s
		ITS(DATA)->ThruBytesReceived = 77;
		break;
		GROUP(TcpConnectionEstatsSndCong, SND_CONG)
		ITS(SND_CONG)->SndLimTimeRwin = v6 ? 0 : ms();
		ITS(SND_CONG)->SndLimTimeSnd = v6 ? ms() : 0;
		ITS(SND_CONG)->SndLimTimeCwnd = 1234;
		ITS(SND_CONG)->CurCwnd = 1000000;
		break;
		GROUP(TcpConnectionEstatsPath, PATH)
		ITS(PATH)->SmoothedRtt = 65;
		ITS(PATH)->MinRtt = 64;
		ITS(PATH)->CurMss = 1460;
		ITS(PATH)->BytesRetrans = 1460;
		ITS(PATH)->PktsRetrans = 1;
		break;
		GROUP(TcpConnectionEstatsSendBuff, SEND_BUFF)
		ITS(SEND_BUFF)->CurRetxQueue = v6 ? 0 : 64000;
		ITS(SEND_BUFF)->CurAppWQueue = v6 ? 0 : 100000;
		break;
		GROUP(TcpConnectionEstatsRec, REC)
		ITS(REC)->CurRwinSent = 65535;
		break;
		GROUP(TcpConnectionEstatsObsRec, OBS_REC)
		ITS(OBS_REC)->CurRwinRcvd = 64000;
		break;
	default:
		return ERROR_INVALID_PARAMETER;
	}
	return 0;
}

static ULONG set(int v6, TCP_ESTATS_TYPE type, PUCHAR rw) {
	int on = 0;
	FILE *f;
	counted[v6][type] = *rw;
	for (int i = 0; i < 2 * TcpConnectionEstatsMaximum; i++)
		on += ((BOOLEAN *)counted)[i];
	if ((f = fopen("C:\\counted", "a"))) {
		fprintf(f, "%d\n", on);
		fclose(f);
	}
	return 0;
}

ULONG WINAPI GetPerTcpConnectionEStats(PMIB_TCPROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG rwVersion, ULONG rwSize,
	PUCHAR ros, ULONG rosVersion, ULONG rosSize, PUCHAR rod, ULONG rodVersion, ULONG rodSize) {
	if (row->dwState != MIB_TCP_STATE_ESTAB || ntohs((u_short)row->dwRemotePort) != 443)
		return ERROR_NOT_FOUND;
	static int asked;
	if (++asked % 40 == 0)
		return ERROR_GEN_FAILURE;
	return get(0, type, rw, rwSize, rod, rodSize);
}

ULONG WINAPI GetPerTcp6ConnectionEStats(PMIB_TCP6ROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG rwVersion, ULONG rwSize,
	PUCHAR ros, ULONG rosVersion, ULONG rosSize, PUCHAR rod, ULONG rodVersion, ULONG rodSize) {
	if (row->State != MIB_TCP_STATE_ESTAB || ntohs((u_short)row->dwRemotePort) != 22 || row->RemoteAddr.s6_addr[15] != 2)
		return ERROR_NOT_FOUND;
	return get(1, type, rw, rwSize, rod, rodSize);
}

ULONG WINAPI SetPerTcpConnectionEStats(PMIB_TCPROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG version, ULONG size, ULONG at) {
	if (row->dwState != MIB_TCP_STATE_ESTAB || ntohs((u_short)row->dwRemotePort) != 443)
		return ERROR_NOT_FOUND;
	return set(0, type, rw);
}

ULONG WINAPI SetPerTcp6ConnectionEStats(PMIB_TCP6ROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG version, ULONG size,
	ULONG at) {
	if (row->State != MIB_TCP_STATE_ESTAB || ntohs((u_short)row->dwRemotePort) != 22)
		return ERROR_NOT_FOUND;
	return set(1, type, rw);
}

// Wine's own libraries ask for the list of interfaces: there is none.
NETIO_STATUS WINAPI GetIfTable2(PMIB_IF_TABLE2 *table)
{
	*table = NULL;
	return ERROR_NOT_SUPPORTED;
}
