package host

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

const tcpipKey = `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`

// snapshot runs the script of `audit --collector powershell`. Without PowerShell it reads the registry.
func snapshot() (*audit.Snapshot, error) {
	out, err := powershell(audit.CollectPowerShell)
	if err == nil {
		var s *audit.Snapshot
		if s, err = audit.ParseSnapshot(out); err == nil {
			return s, nil
		}
	}
	return registrySnapshot(fmt.Sprintf("the NetTCPIP cmdlets: %v", err)), nil
}

func registrySnapshot(unread string) *audit.Snapshot {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	version := windows.RtlGetVersion()
	s := &audit.Snapshot{Schema: audit.SnapshotSchema, TakenAt: now(), Host: name, System: catalog.Windows,
		Values:  map[string]string{},
		Version: fmt.Sprintf("%d.%d.%d", version.MajorVersion, version.MinorVersion, version.BuildNumber),
		Unread:  []string{unread}}
	readValues(s, "", tcpipKey, "TcpWindowSize", "GlobalMaxTcpWindowSize", "Tcp1323Opts", "EnablePMTUDiscovery",
		"SackOpts")
	readValues(s, "", strings.TrimPrefix(afdKey, `HKEY_LOCAL_MACHINE\`), "DefaultSendWindow", "DefaultReceiveWindow")
	interfaces := tcpipKey + `\Interfaces`
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, interfaces, registry.ENUMERATE_SUB_KEYS|registry.WOW64_64KEY)
	if err != nil {
		s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", interfaces, err))
		return s
	}
	defer k.Close()
	ids, err := k.ReadSubKeyNames(-1)
	if err != nil {
		s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", interfaces, err))
	}
	for _, id := range ids {
		readValues(s, "Interfaces/"+id+"/", interfaces+`\`+id, "TcpWindowSize", "TcpAckFrequency", "TCPNoDelay", "MTU")
	}
	return s
}

// readValues adds the present values of a key, numbers in decimal. prefix begins their names in the snapshot.
func readValues(s *audit.Snapshot, prefix, key string, names ...string) {
	for _, name := range names {
		text, err := registryStore{}.read(`HKEY_LOCAL_MACHINE\` + key + `\` + name)
		if err != nil {
			s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		if text == nil {
			continue
		}
		kind, data, err := parseRegistry(*text)
		if err != nil {
			continue
		}
		value := *text
		if kind == regDword && len(data) == 4 {
			value = fmt.Sprint(binary.LittleEndian.Uint32(data))
		} else if plain, ok := fromUTF16(data); ok && kind == regSZ {
			value = plain
		}
		s.Values[prefix+name] = value
	}
}
