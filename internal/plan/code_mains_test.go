package plan

// mains use the lines of a language: a program that connects to itself and prints what
// both ends' sockets have for buffers before and after the handshake.
var mains = map[string]string{
	"c": `#include "plan.c"
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
static int buffer(int fd, int option) {
	int v = 0; socklen_t n = sizeof v;
	getsockopt(fd, SOL_SOCKET, option, &v, &n);
	return v;
}
int main(void) {
	struct sockaddr_in a; memset(&a, 0, sizeof a); a.sin_family = AF_INET; a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	struct addrinfo i; memset(&i, 0, sizeof i); i.ai_family = AF_INET;
	i.ai_addr = (struct sockaddr *)&a; i.ai_addrlen = sizeof a;
	int l = listen_with_buffers(&i);
	if (l < 0) return 1;
	socklen_t n = sizeof a;
	getsockname(l, (struct sockaddr *)&a, &n);
	int c = connect_with_buffers(&i);
	if (c < 0) return 2;
	int s = accept(l, 0, 0);
	printf("%d %d %d\n", buffer(c, SO_SNDBUF), buffer(c, SO_RCVBUF), buffer(s, SO_RCVBUF));
	return 0;
}
`,
	"python": `import socket
from plan import *
l = listen_with_buffers("127.0.0.1", 0)
c = connect_with_buffers(*l.getsockname())
s, _ = l.accept()
print(c.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), c.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
      s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
`,
	"go": `package main

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"plan/buffers"
)

func buffer(c net.Conn, option int) (n int) {
	raw, _ := c.(*net.TCPConn).SyscallConn()
	_ = raw.Control(func(fd uintptr) { n, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, option) })
	return n
}

func main() {
	l, err := buffers.ListenConfig.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	c, err := buffers.Dialer.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	s, err := l.Accept()
	if err != nil {
		panic(err)
	}
	fmt.Println(buffer(c, syscall.SO_SNDBUF), buffer(c, syscall.SO_RCVBUF), buffer(s, syscall.SO_RCVBUF))
}
`,
	"rust": `mod plan;
use socket2::Socket;
fn main() {
    let l = plan::listen_with_buffers("127.0.0.1:0".parse().unwrap()).unwrap();
    let c = plan::connect_with_buffers(l.local_addr().unwrap()).unwrap();
    let (s, _) = l.accept().unwrap();
    let (c, s) = (Socket::from(c), Socket::from(s));
    println!("{} {} {}", c.send_buffer_size().unwrap(), c.recv_buffer_size().unwrap(), s.recv_buffer_size().unwrap());
}
`,
	"java": `import java.net.*;
class Main {
	public static void main(String[] args) throws Exception {
		ServerSocket l = Buffers.listen(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
		Socket c = Buffers.connect(l.getLocalSocketAddress(), 5000);
		Socket s = l.accept();
		System.out.println(c.getSendBufferSize() + " " + c.getReceiveBufferSize() + " " + s.getReceiveBufferSize());
	}
}
`,
}
