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

// Program is a program with a window, a block or a buffer of its own in addition to TCP's.
type Program struct {
	Name  string   `toml:"name" json:"name"`
	Also  []string `toml:"also" json:"-"`                // other names, those of its executables among them
	Bytes int      `toml:"bytes" json:"bytes,omitempty"` // largest number in flight; 0: TCP alone limits it
	Ports []uint16 `toml:"ports" json:"-"`               // of its servers
	// Request is the size of one request in bytes, which the next follows when it has arrived completely. 0: each arriving
	// byte frees window at once.
	Request int `toml:"request" json:"-"`
	// ReceiveBuffer and SendBuffer are the bytes that it requests by SO_RCVBUF and SO_SNDBUF on every TCP socket, which
	// ends automatic sizing there. 0: the system sizes that buffer.
	ReceiveBuffer int `toml:"receive_buffer" json:"receive_buffer_bytes,omitempty"`
	SendBuffer    int `toml:"send_buffer" json:"send_buffer_bytes,omitempty"`
	// Plateau has the least and the largest size in bytes of a buffer of its own that names the program on a Windows
	// host: no default of Windows that scales windows is that size. Empty: none does.
	Plateau []int `toml:"plateau" json:"-"`
	// ReceiveDatagrams and SendDatagrams are the bytes that it requests by SO_RCVBUF and SO_SNDBUF for its UDP socket. The
	// host's net.core.rmem_max and wmem_max limit them. 0: no request.
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

// Programs returns the known programs.
func Programs() []Program { return slices.Clone(loadPrograms()) }

// ProgramNames returns the names of the known programs.
func ProgramNames() (names []string) {
	for _, p := range loadPrograms() {
		names = append(names, p.Name)
	}
	return names
}

// FindProgram returns the program with a name, or with the name of an executable, in any case.
func FindProgram(name string) (Program, bool) {
	name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	for _, p := range loadPrograms() {
		if p.Name == name || slices.Contains(p.Also, name) {
			return p, true
		}
	}
	return Program{}, false
}

// Window returns the window in bytes with the program's goodput on a path of bps bit/s (0: unlimited). The reply to a
// request arrives one round trip and the request's time on the line after it was sent.
func (p Program) Window(bps float64, rtt time.Duration) int {
	if p.Request == 0 || bps <= 0 || rtt <= 0 {
		return p.Bytes
	}
	return int(float64(p.Bytes) * rtt.Seconds() / (rtt.Seconds() + 8*float64(p.Request)/bps))
}

// FixesBuffers reports whether the program sets buffers of its own size on its TCP sockets.
func (p Program) FixesBuffers() bool { return p.ReceiveBuffer > 0 || p.SendBuffer > 0 }

// ProgramOfWindow returns the program whose fixed receive buffer fits the window in bytes that a host offered with a
// scale of 0, on any port: a system may offer only the whole segments of the buffer. Sizes with other causes too name
// no program (65,535 bytes: no scaling).
func ProgramOfWindow(bytes int) (Program, bool) {
	for _, p := range loadPrograms() {
		if len(p.Plateau) == 2 && bytes >= p.Plateau[0] && bytes <= p.ReceiveBuffer && bytes < 65535 {
			return p, true
		}
	}
	return Program{}, false
}

// WindowsProgramOfBuffer returns the program whose fixed buffers fit the largest window that a Windows host offered
// with a scale, or the most that it had in flight, on any port. Linux hosts have such windows for other causes.
func WindowsProgramOfBuffer(bytes int) (Program, bool) {
	for _, p := range loadPrograms() {
		if len(p.Plateau) == 2 && bytes >= p.Plateau[0] && bytes <= p.Plateau[1] {
			return p, true
		}
	}
	return Program{}, false
}

// near is the largest factor between the observed bytes in flight and a program's window: they may be a packet or two
// more, and include records and headers.
const near = 1.1

// ProgramAt returns the program with this server port and a window of the bytes in flight.
func ProgramAt(port uint16, inFlight float64) (Program, bool) {
	for _, p := range loadPrograms() {
		if slices.Contains(p.Ports, port) && inFlight*near > float64(p.Bytes) && inFlight < near*float64(p.Bytes) {
			return p, true
		}
	}
	return Program{}, false
}

// PortsOf returns the ports of the servers of a program by the name of its executable, the client's or the server's:
// 22 for ssh, sshd and sshd-session. It returns nil for an unknown one.
func PortsOf(executable string) []uint16 {
	p, _ := FindProgram(executable)
	return p.Ports
}
