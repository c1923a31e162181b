package requests

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// numberSize is the length of the numbers that follow the preface of each connection: of the stream (16 bits) and of
// the connection's first request (32 bits), big-endian.
const numberSize = 6

// Native returns the Dial of connections to a Server. Each begins with its stream's preface.
func Native(address string, o socket.Options, r transfer.Requests,
	prefaces []string) func(context.Context, int) (Conn, error) {
	buffers := make([][]byte, len(prefaces))
	for i, p := range prefaces {
		buffers[i] = make([]byte, max(len(p)+numberSize+min(r.RequestBytes, maxPiece), min(r.ResponseBytes, maxPiece)))
	}
	return func(ctx context.Context, stream int) (Conn, error) {
		conn, err := socket.Dial(ctx, address, o)
		if err != nil {
			return nil, err
		}
		return &native{TCPConn: conn, Requests: r, preface: prefaces[stream], stream: stream, buffer: buffers[stream]}, nil
	}
}

// maxPiece is the most that one system call moves.
const maxPiece = 64 << 10

type native struct {
	*net.TCPConn
	transfer.Requests
	preface string // empty once it was sent
	stream  int
	buffer  []byte
}

func (n *native) TCP() *net.TCPConn { return n.TCPConn }
func (n *native) Parts() Parts      { return Parts{} }

func (n *native) Exchange(number uint32) (response int64, last bool, err error) {
	request := n.RequestBytes
	if n.preface != "" { // it leaves with the request
		b := append(n.buffer[:0], n.preface...)
		b = binary.BigEndian.AppendUint16(b, uint16(n.stream))
		b = binary.BigEndian.AppendUint32(b, number)
		first := min(request, maxPiece)
		b = append(b, randomBytes()[:first]...)
		if _, err := n.Write(b); err != nil {
			return 0, false, err
		}
		n.preface = ""
		request -= first
	}
	if err := write(n.TCPConn, request); err != nil {
		return 0, false, err
	}
	return int64(n.ResponseBytes), n.NewConnections, read(n.TCPConn, n.ResponseBytes, n.buffer)
}

// Close waits for the server, which closes first: its end then keeps TIME_WAIT.
func (n *native) Close() error {
	if n.NewConnections && n.preface == "" {
		io.Copy(io.Discard, n.TCPConn)
	}
	return n.TCPConn.Close()
}

func write(conn net.Conn, n int) error {
	for n > 0 {
		wrote, err := conn.Write(randomBytes()[:min(n, maxPiece)])
		if err != nil {
			return err
		}
		n -= wrote
	}
	return nil
}

// read drops n bytes.
func read(conn net.Conn, n int, buffer []byte) error {
	for n > 0 {
		read, err := conn.Read(buffer[:min(n, len(buffer))])
		if err != nil {
			return err
		}
		n -= read
	}
	return nil
}

// randomBytes is payload that nothing on the way compresses.
var randomBytes = sync.OnceValue(func() []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	b := make([]byte, maxPiece)
	rand.NewChaCha8(seed).Read(b)
	return b
})
