package plan

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
)

// snippet is code of one language that sets buffers: a function that connects and one that listens. %[1]d is the send
// buffer and %[2]d the receive buffer in bytes. Both are set before connect() and listen(), since the handshake fixes
// the window scale.
type snippet struct{ comment, code string }

var snippets = map[string]snippet{
	"c": {"//", `#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SEND_BUFFER = %[1]d, RECEIVE_BUFFER = %[2]d };

/* set_buffer sets a buffer and reads it back: a system may grant less. */
static int set_buffer(int fd, int option, const char *name, int bytes) {
	int granted = 0;
	socklen_t size = sizeof granted;
	if (bytes == 0)
		return 0;
	if (setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes) != 0 ||
	    getsockopt(fd, SOL_SOCKET, option, &granted, &size) != 0)
		return -1;
	if (granted < bytes)
		fprintf(stderr, "%%s: %%d bytes granted of %%d\n", name, granted, bytes);
	return 0;
}

static int set_buffers(int fd) {
	if (set_buffer(fd, SO_SNDBUF, "SO_SNDBUF", SEND_BUFFER) != 0)
		return -1;
	return set_buffer(fd, SO_RCVBUF, "SO_RCVBUF", RECEIVE_BUFFER);
}

/* connect_with_buffers returns a connected socket, or -1 with errno. */
int connect_with_buffers(const struct addrinfo *to) {
	int fd = socket(to->ai_family, SOCK_STREAM, 0);
	if (fd < 0)
		return -1;
	if (set_buffers(fd) == 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0)
		return fd;
	close(fd);
	return -1;
}

/* listen_with_buffers returns a listening socket; its connections inherit the buffers. */
int listen_with_buffers(const struct addrinfo *at) {
	int fd = socket(at->ai_family, SOCK_STREAM, 0);
	if (fd < 0)
		return -1;
	if (set_buffers(fd) == 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	close(fd);
	return -1;
}
`},
	"go": {"//", `package buffers

import (
	"net"
	"syscall"
)

const sendBuffer, receiveBuffer = %[1]d, %[2]d

// set is for Control of net.Dialer and net.ListenConfig: before connect and listen.
func set(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		for option, bytes := range map[int]int{syscall.SO_SNDBUF: sendBuffer, syscall.SO_RCVBUF: receiveBuffer} {
			if bytes == 0 {
				continue
			}
			if err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, option, bytes); err != nil {
				failed = err
			}
		}
	})
	if err != nil {
		return err
	}
	return failed
}

var (
	Dialer       = net.Dialer{Control: set}
	ListenConfig = net.ListenConfig{Control: set}
)
`},
	"python": {"#", `import socket
import sys

SEND_BUFFER, RECEIVE_BUFFER = %[1]d, %[2]d


def set_buffers(s):
    for name, size in ("SO_SNDBUF", SEND_BUFFER), ("SO_RCVBUF", RECEIVE_BUFFER):
        option = getattr(socket, name)
        if size:
            s.setsockopt(socket.SOL_SOCKET, option, size)
        granted = s.getsockopt(socket.SOL_SOCKET, option)
        if granted < size:
            print(f"{name}: {granted} bytes granted of {size}", file=sys.stderr)


def connect_with_buffers(host, port):
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    s = socket.socket(family, kind, protocol)
    try:
        set_buffers(s)
        s.connect(address)
    except OSError:
        s.close()
        raise
    return s


def listen_with_buffers(host, port):
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    s = socket.socket(family, kind, protocol)
    try:
        set_buffers(s)
        s.bind(address)
        s.listen()
    except OSError:
        s.close()
        raise
    return s
`},
	"java": {"//", `import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;

final class Buffers {
	static final int SEND = %[1]d, RECEIVE = %[2]d;

	static Socket connect(SocketAddress to, int timeoutMillis) throws IOException {
		Socket s = new Socket(); // not new Socket(host, port), which connects at once
		try {
			if (SEND > 0) s.setSendBufferSize(SEND);
			if (RECEIVE > 0) s.setReceiveBufferSize(RECEIVE);
			s.connect(to, timeoutMillis);
			return s;
		} catch (IOException e) {
			s.close();
			throw e;
		}
	}

	static ServerSocket listen(SocketAddress at) throws IOException {
		ServerSocket s = new ServerSocket(); // not new ServerSocket(port), which listens at once
		try {
			if (RECEIVE > 0) s.setReceiveBufferSize(RECEIVE);
			s.bind(at);
			return s; // of each accepted socket: setSendBufferSize(SEND)
		} catch (IOException e) {
			s.close();
			throw e;
		}
	}
}
`},
	"dotnet": {"//", `using System.Net;
using System.Net.Sockets;

static class Buffers
{
    const int Send = %[1]d, Receive = %[2]d;

    static Socket Make(EndPoint at)
    {
        var s = new Socket(at.AddressFamily, SocketType.Stream, ProtocolType.Tcp);
        if (Send > 0) s.SendBufferSize = Send;
        if (Receive > 0) s.ReceiveBufferSize = Receive;
        return s;
    }

    public static Socket Connect(EndPoint to)
    {
        var s = Make(to);
        try { s.Connect(to); return s; } catch { s.Dispose(); throw; }
    }

    public static Socket Listen(EndPoint at)
    {
        var s = Make(at);
        try { s.Bind(at); s.Listen(); return s; } catch { s.Dispose(); throw; }
    }
}
`},
	"rust": {"//", `// Cargo.toml: socket2 = "0.5"; the standard library cannot set buffers before it connects.
use socket2::{Domain, Socket, Type};
use std::io::Result;
use std::net::{SocketAddr, TcpListener, TcpStream};

const SEND_BUFFER: usize = %[1]d;
const RECEIVE_BUFFER: usize = %[2]d;

fn with_buffers(address: SocketAddr) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if SEND_BUFFER > 0 {
        socket.set_send_buffer_size(SEND_BUFFER)?;
    }
    if RECEIVE_BUFFER > 0 {
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    }
    Ok(socket)
}

pub fn connect_with_buffers(to: SocketAddr) -> Result<TcpStream> {
    let socket = with_buffers(to)?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

pub fn listen_with_buffers(at: SocketAddr) -> Result<TcpListener> {
    let socket = with_buffers(at)?;
    socket.bind(&at.into())?;
    socket.listen(128)?;
    Ok(socket.into())
}
`},
}

// onWindows are the replacements that make a language's lines compile for Windows.
var onWindows = map[string]*strings.Replacer{
	"c": strings.NewReplacer(`#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
`, `/* link with ws2_32, and call WSAStartup() before */
#include <stdio.h>
#include <winsock2.h>
#include <ws2tcpip.h>
`, "int fd", "SOCKET fd", "int connect_with_buffers", "SOCKET connect_with_buffers",
		"int listen_with_buffers", "SOCKET listen_with_buffers", "fd < 0", "fd == INVALID_SOCKET",
		"close(fd);\n	return -1;", "closesocket(fd);\n	return INVALID_SOCKET;",
		"&bytes, sizeof", "(const char *)&bytes, sizeof", "&granted, &size", "(char *)&granted, &size",
		"to->ai_addrlen)", "(int)to->ai_addrlen)", "at->ai_addrlen)", "(int)at->ai_addrlen)",
		"socket, or -1 with errno", "socket, or INVALID_SOCKET with WSAGetLastError()",
		"		return -1;\n	if (set_buffers", "		return INVALID_SOCKET;\n	if (set_buffers"),
	"go": strings.NewReplacer("SetsockoptInt(int(fd)", "SetsockoptInt(syscall.Handle(fd)"),
}

// scalesOnAIX switches window scaling on for a socket, which AIX does not do by itself (no command: rfc1323).
var scalesOnAIX = strings.NewReplacer("#include <stdio.h>\n", "#include <netinet/in.h>\n#include <netinet/tcp.h>\n"+
	"#include <stdio.h>\n", "static int set_buffers(int fd) {\n", "static int set_buffers(int fd) {\n"+
	"	int on = 1; /* more than 65,535 bytes: the socket has to scale */\n"+
	"	if (setsockopt(fd, IPPROTO_TCP, TCP_RFC1323, &on, sizeof on) != 0)\n		return -1;\n")

// isWindows reports whether a target is any Windows.
func (t Target) isWindows() bool {
	return t.Family == catalog.Windows || t.Family == catalog.Windows2000 || t.Family == catalog.Windows9x
}

// Languages lists the programming languages that Text writes lines in, for any target.
func Languages() []string { return []string{"c", "go", "python", "java", "dotnet", "rust"} }

// code is the lines that set a program's buffers. Linux doubles what a program asks for
// itself and bounds it by its maxima; the other systems grant what is asked for.
func (p *Plan) code(language string) []byte {
	target, _ := ParseTarget(p.Target)
	var send, receive int
	if p.Role.has(Sender) {
		send = p.SendBytes
	}
	if p.Role.has(Receiver) {
		receive = p.WindowBytes
	}
	s := snippets[language]
	notes := []string{fmt.Sprintf(
		"a fixed buffer ends automatic sizing: where %s sizes them itself, its maxima are the better way", p.Target)}
	if target.Family == catalog.Linux {
		notes = append(notes, fmt.Sprintf(
			"Linux grants no more than net.core.wmem_max (send %d) and net.core.rmem_max (receive %d)", send, receive))
	}
	if language == "go" && target.isWindows() && !catalog.AtLeast(target.Version, "10.0") {
		notes = append(notes, "Go 1.21 and later need Windows 10 or Server 2016: "+p.Target+" needs an older Go")
	}
	if p.LargeWindows {
		notes = append(notes, "before connect() and listen(): the handshake fixes the window's scale")
	}
	b := &strings.Builder{}
	b.WriteString(p.headline(s.comment, false))
	for _, note := range notes {
		b.WriteString(s.comment + " " + note + "\n")
	}
	b.WriteString("\n")
	code := s.code
	if other := onWindows[language]; other != nil && target.isWindows() {
		code = other.Replace(code)
	}
	if language == "c" && target.Family == catalog.AIX && max(send, receive) > model.MaxUnscaled {
		code = scalesOnAIX.Replace(code)
	}
	fmt.Fprintf(b, code, send, receive)
	return []byte(b.String())
}
