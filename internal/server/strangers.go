package server

import (
	"net"
	"net/netip"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// strangers are the connections that have not said yet what they are, or have not proven
// the key yet. There is room for most of them; who comes when it is full takes the place
// of the oldest one of the host that has the most, so that no single host keeps the
// others out.
type strangers struct {
	most int

	mu     sync.Mutex // guards what follows
	hosts  map[netip.Prefix][]*net.TCPConn
	number int
}

func (s *strangers) add(conn *net.TCPConn) {
	from := socket.Subscriber(remote(conn).Addr())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil {
		s.hosts = map[netip.Prefix][]*net.TCPConn{}
	}
	s.hosts[from] = append(s.hosts[from], conn)
	if s.number++; s.number <= s.most {
		return
	}
	var crowd netip.Prefix
	for host, conns := range s.hosts {
		if len(conns) > len(s.hosts[crowd]) {
			crowd = host
		}
	}
	oldest := s.hosts[crowd][0]
	s.drop(crowd, 0)
	oldest.Close()
}

// remove forgets a connection; one that had to make room is forgotten already.
func (s *strangers) remove(conn *net.TCPConn) {
	from := socket.Subscriber(remote(conn).Addr())
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.hosts[from] {
		if c == conn {
			s.drop(from, i)
			return
		}
	}
}

func (s *strangers) drop(host netip.Prefix, i int) {
	conns := s.hosts[host]
	s.hosts[host] = append(conns[:i], conns[i+1:]...)
	if s.number--; len(s.hosts[host]) == 0 {
		delete(s.hosts, host)
	}
}
