package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Program is one that has a window, a block or a buffer of its own beside TCP's.
type Program struct {
	Name  string   `toml:"name" json:"name"`
	Bytes int      `toml:"bytes" json:"bytes,omitempty"` // under way at most; 0: it leaves that to TCP
	Ports []uint16 `toml:"ports" json:"-"`               // of its servers
	// Request is the bytes of one of its requests, each answered, and followed by another, when it came whole. 0:
	// what came makes room at once.
	Request int `toml:"request" json:"-"`
	// ReceiveBuffer and SendBuffer are what it asks for by SO_RCVBUF and SO_SNDBUF on every TCP socket, in bytes,
	// which ends automatic sizing there. 0: it leaves that buffer to the system.
	ReceiveBuffer int `toml:"receive_buffer" json:"receive_buffer_bytes,omitempty"`
	SendBuffer    int `toml:"send_buffer" json:"send_buffer_bytes,omitempty"`
	// Plateau says that a window of exactly ReceiveBuffer names the program: no system's default is that size.
	Plateau bool `toml:"plateau" json:"-"`
	// ReceiveDatagrams and SendDatagrams are what it asks for by SO_RCVBUF and SO_SNDBUF for
	// its UDP socket, in bytes; the host's net.core.rmem_max and wmem_max bound that. 0: it
	// asks for nothing.
	ReceiveDatagrams int    `toml:"receive_datagrams" json:"udp_receive_buffer_bytes,omitempty"`
	SendDatagrams    int    `toml:"send_datagrams" json:"udp_send_buffer_bytes,omitempty"`
	What             string `toml:"what" json:"what"`
	Per              string `toml:"per" json:"per"`
	Raise            string `toml:"raise" json:"raise"` // which setting does
	Source           string `toml:"source" json:"source"`
	Confirmed        bool   `toml:"confirmed" json:"confirmed"`
}

var loadPrograms = sync.OnceValue(func() []Program {
	text, err := files.ReadFile("programs.toml")
	if err != nil {
		panic(err)
	}
	var file struct {
		Program []Program `toml:"program"`
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&file); err != nil {
		panic(fmt.Sprintf("programs.toml: %v", err))
	}
	return file.Program
})

// Programs lists the programs that are known.
func Programs() []Program { return slices.Clone(loadPrograms()) }

// ProgramNames lists their names.
func ProgramNames() (names []string) {
	for _, p := range loadPrograms() {
		names = append(names, p.Name)
	}
	return names
}

// FindProgram is the program of a name, case apart.
func FindProgram(name string) (Program, bool) {
	for _, p := range loadPrograms() {
		if strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	return Program{}, false
}

// Window is the window in bytes that, over a path of that rate in bit/s (0: without bound), gives what the
// program does: the answer to a request comes a round trip and the request's own time on the line after it
// was sent.
func (p Program) Window(bps float64, rtt time.Duration) int {
	if p.Request == 0 || bps <= 0 || rtt <= 0 {
		return p.Bytes
	}
	return int(float64(p.Bytes) * rtt.Seconds() / (rtt.Seconds() + 8*float64(p.Request)/bps))
}

// FixesBuffers reports whether the program sets buffers of its own size on its TCP sockets.
func (p Program) FixesBuffers() bool { return p.ReceiveBuffer > 0 || p.SendBuffer > 0 }

// ProgramOfWindow returns the program whose fixed receive buffer is exactly the window in bytes that a host
// offered unscaled, whatever its port. Sizes that other causes give too (65,535 bytes: no scaling) name no program.
func ProgramOfWindow(bytes int) (Program, bool) {
	for _, p := range loadPrograms() {
		if p.Plateau && p.ReceiveBuffer == bytes && bytes < 65535 {
			return p, true
		}
	}
	return Program{}, false
}

// near is how far what is seen of a program's window may lie above or below it: what is
// under way is a packet or two more, and records and headers are part of it.
const near = 1.1

// ProgramAt is the one whose server has the port and whose window is what is under way,
// bytes.
func ProgramAt(port uint16, underWay float64) (Program, bool) {
	for _, p := range loadPrograms() {
		if slices.Contains(p.Ports, port) && underWay*near > float64(p.Bytes) && underWay < near*float64(p.Bytes) {
			return p, true
		}
	}
	return Program{}, false
}

// PortsOf returns the ports of the servers of a program by the name of its executable, the client's or the server's:
// 22 for ssh, sshd and sshd-session. It returns nil for an unknown one.
func PortsOf(executable string) []uint16 {
	for _, p := range loadPrograms() {
		if len(p.Ports) > 0 && (executable == p.Name || executable == p.Name+"d" || executable == p.Name+"d-session") {
			return p.Ports
		}
	}
	return nil
}
